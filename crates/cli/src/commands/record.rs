//! `isotherm record`: traces a real program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_trace::record::{
    Avx512, Progress, RECORDER_MEMORY, RecordError, RecordOptions, RecordSummary, Setting, Stopped, record,
    setting_of, settings,
};
use isotherm_trace::{Contents, INCOMPRESSIBLE, Shares};

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::memory::Memory;
use crate::output::say;
use crate::symbols::Symbols;
use crate::{libraries, program, progress};

pub(crate) fn run(args: RecordArgs) -> Result<(), Failure> {
    let output = args.output.display().to_string();
    let quiet = args.quiet;
    Memory::new(&args.memory, quiet).say("the recorder", RECORDER_MEMORY, "more memory")?;
    for Setting { variable, safe, .. } in settings().filter(|_| !quiet) {
        let value = std::env::var(variable).unwrap_or_default();
        say(&format!(
            "isotherm: {variable}={value} chooses AVX-512, which QEMU does not emulate: recorded with {safe}\n"
        ));
    }
    let line = progress::line(quiet);
    let sites = args.sites;
    let summary = record(&options(args)?, &mut |progress| {
        line.set_message(describe(progress));
        line.tick();
    });
    line.finish_and_clear();
    let summary = summary.map_err(|error: RecordError| {
        Failure::Command(u8::try_from(error.exit_code()).unwrap_or(1), error.to_string())
    })?;
    if !quiet {
        report(&output, &summary);
    }
    if sites && summary.sites == 0 {
        say(
            "isotherm: no allocation site: the program allocates less than 64K at each, is linked statically, or \
             brings its own malloc\n",
        );
    }
    if let Some(found) = &summary.avx512 {
        say(&unsupported(found));
    }
    match u8::try_from(summary.status).unwrap_or(1) {
        0 => Ok(()),
        status => Err(Failure::Exit(status)),
    }
}

fn options(args: RecordArgs) -> Result<RecordOptions, Failure> {
    let cache = args.cache.geometry()?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).map_err(Failure::failed)?;
    let mut options = RecordOptions::new(args.command, args.output);
    options.cache = cache;
    options.dependence = !args.no_dependence;
    options.aslr = !args.no_aslr;
    options.process = args.process;
    options.compressibility = args.compressibility;
    if args.sites {
        options.allocator = Some(libraries::require(libraries::ALLOCATOR, "--sites")?);
    }
    options.max_bytes = args.max_size.map(|size| size.0);
    options.max_time = args.max_time.map(|time| Duration::from_nanos(time.0));
    // The recorder looks beside the running program, which an embedding is not.
    options.plugin = program::embedding().and_then(|_| libraries::find(libraries::RECORDER));
    options.stop = stop;
    Ok(options)
}

/// Says where a process reached AVX-512, and what keeps it from that.
fn unsupported(found: &Avx512) -> String {
    let command = found.command.split(' ').next().unwrap_or_default();
    let place = found.place.as_ref();
    let name = place.map_or_else(
        || "code of no file".into(),
        |place| Symbols::default().name_of_instruction(&place.file, place.offset),
    );
    let expected = match place.and_then(|place| setting_of(&place.file)) {
        Some(Setting { variable, safe, .. }) => format!("set {variable}={safe}"),
        None => "expected code for older processors, such as gcc's -march=x86-64-v3".into(),
    };
    format!(
        "isotherm: {command}: an instruction of AVX-512, which QEMU does not emulate (SIGILL), in {name}: \
         {expected}\n"
    )
}

fn describe(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64().max(1e-3);
    let stopped = if progress.stopped.is_some() { "; recording stopped, the program runs on" } else { "" };
    format!(
        "recording: {:.0} s, {:.1} G accesses ({:.0} M/s), {:.1} M misses, {}, {} processes{stopped}",
        seconds,
        progress.accesses as f64 / 1e9,
        progress.accesses as f64 / 1e6 / seconds,
        progress.rows as f64 / 1e6,
        Bytes(progress.bytes),
        progress.processes
    )
}

/// Says how well the program's pages compress.
fn compressed(contents: &Contents) -> String {
    let by = |name: &str, shares: &Shares| {
        let taken: u64 = shares.values().map(|&share| u64::from(share)).sum();
        let kept = shares.values().filter(|&&share| share >= INCOMPRESSIBLE).count();
        let percent = |part: f64| 100.0 * part / shares.len().max(1) as f64;
        let (taken, kept) = (percent(taken as f64 / 256.0), percent(kept as f64));
        format!("{name} to {taken:.0} % of their size, {kept:.0} % of them do not compress")
    };
    let (zstd, lz4) = (by("zstd", &contents.zstd), by("lz4", &contents.lz4));
    format!("isotherm: {} pages were compressed: by {zstd}; by {lz4}\n", contents.zstd.len())
}

fn report(output: &str, summary: &RecordSummary) {
    let processes = match (summary.recorded, summary.processes.len()) {
        (recorded, all) if recorded == all => all.to_string(),
        (recorded, all) => format!("{recorded} of {all}"),
    };
    say(&format!(
        "isotherm: {output}: {:.2} M misses of {:.2} G accesses, {} in {} parts, {processes} processes, {} threads, \
         {:.1} s\n",
        summary.trace.rows as f64 / 1e6,
        summary.accesses as f64 / 1e9,
        Bytes(summary.trace.bytes),
        summary.trace.parts,
        summary.threads,
        summary.elapsed.as_secs_f64()
    ));
    if let Some(contents) = &summary.compressed {
        say(&compressed(contents));
    }
    if summary.lost > 0 {
        say(&format!("isotherm: {} misses were lost\n", summary.lost));
    }
    if summary.untraced > 0 {
        let programs = summary.untraced_programs.join(", ");
        say(&format!(
            "isotherm: {} programs ran untraced (not x86-64 or setuid): {programs}\n",
            summary.untraced
        ));
    }
    let why = match summary.stopped {
        None => return,
        Some(Stopped::Bytes) => "--max-size was reached",
        Some(Stopped::Time) => "--max-time was reached",
        Some(Stopped::Asked) => "it was interrupted",
        Some(Stopped::Failed) => "the trace could not be written",
    };
    say(&format!("isotherm: recording ended before the program: {why}\n"));
}
