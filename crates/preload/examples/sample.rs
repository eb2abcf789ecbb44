//! Runs a program with hint faults and reports what they cost: `sample LIBRARY SECONDS PROGRAM ARGUMENT...`.
//!
//! If the environment names the report of a planted program (`PLANTED`), it also reports how well the hot
//! pages were found.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use isotherm_core::{Nanos, Sampling, SamplingRate, SamplingScope};
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sample: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let library = arguments.next().ok_or("a library is needed")?;
    let seconds: f64 =
        arguments.next().and_then(|word| word.to_str()?.parse().ok()).ok_or("seconds are needed")?;
    let program = arguments.next().ok_or("a program is needed")?;
    let mut source = HintFaultSource::open(HintFaultOptions::default())?;
    let rate = SamplingRate::Frequency(1_000_000);
    let tick = Nanos(10_000_000);
    source.request(&Sampling::loads(rate, SamplingScope::AllTiers, 1 << 12, tick).and_stores())?;
    let mut child =
        Command::new(program).args(arguments).envs(source.environment(Path::new(&library))).spawn()?;
    source.follow(Pid(child.id()))?;
    let (start, mut accesses) = (Instant::now(), Vec::new());
    let mut status = None;
    let mut last = Default::default();
    while start.elapsed().as_secs_f64() < seconds && status.is_none() {
        std::thread::sleep(Duration::from_millis(10));
        source.drain(&mut accesses)?;
        last = (source.statistics(), source.counted());
        if std::env::var_os("TRACE").is_some() {
            eprintln!("{:?}", last.1);
        }
        status = child.try_wait()?;
    }
    let time = start.elapsed().as_secs_f64();
    eprintln!("{:?}\n{:?}", last.0, last.1);
    eprintln!(
        "{} accesses in {time:.2} s; agent {:.2} % of a core, program lost {:.2} % (estimated)",
        accesses.len(),
        last.0.agent_cpu.0 as f64 / time / 1e7,
        last.0.program_time.0 as f64 / time / 1e7
    );
    for (process, reason) in source.refusals() {
        eprintln!("{}: {reason}", process.0);
    }
    if let Ok(report) = std::env::var("PLANTED") {
        judge(&std::fs::read_to_string(report)?, &accesses)?;
    }
    drop(source);
    let status = match status {
        Some(status) => status,
        None => child.wait()?,
    };
    eprintln!("{status}");
    Ok(())
}

/// Ranks pages by their samples and compares them with the planted ones.
fn judge(report: &str, accesses: &[Access]) -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = report.lines();
    let range: Vec<_> = lines.next().unwrap_or_default().split(' ').skip(1).collect();
    let start = u64::from_str_radix(range.first().ok_or("no range")?, 16)?;
    let end = u64::from_str_radix(range.get(1).ok_or("no range")?, 16)?;
    let hot: Vec<u64> =
        lines.next().unwrap_or_default().split(' ').skip(2).filter_map(|word| word.parse().ok()).collect();
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for access in accesses.iter().filter(|access| (start..end).contains(&access.address)) {
        *counts.entry((access.address - start) / 4096).or_default() += 1;
    }
    let mut ranked: Vec<_> = counts.iter().map(|(page, count)| (*count, *page)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    let found = ranked.iter().take(hot.len()).filter(|(_, page)| hot.binary_search(page).is_ok()).count();
    let on_hot: u32 = hot.iter().filter_map(|page| counts.get(page)).sum();
    eprintln!(
        "hot {}, found {found} ({:.1} %); samples {} on hot, {} on others",
        hot.len(),
        100.0 * found as f64 / hot.len() as f64,
        on_hot,
        counts.values().sum::<u32>() - on_hot
    );
    Ok(())
}
