//! Boots guests and reports their results.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::{Bytes, FastLimit, Nanos, PageSize};
use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::console::Console;
use isotherm_lab::job::{Job, PolicyRun, Task};
use isotherm_lab::machine::Machine;
use isotherm_lab::result::LabResult;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::{self, Output, SessionOptions};

use super::plan::job;
use crate::args::lab::GuestArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::{fingerprint, policies};

/// Exit statuses that are not the program's, as those of `timeout` and `env`.
const TIME_OVER: u8 = 124;
const NO_RESULT: u8 = 125;
/// Lines of the console that are shown when a guest fails.
const CONSOLE_LINES: usize = 12;

/// Returns options that stop the guest at the time limit or at Ctrl-C.
pub(super) fn session_options(time_limit: Option<Nanos>, output: Output) -> Result<SessionOptions, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).map_err(Failure::failed)?;
    let time_limit = time_limit.map(|time| Duration::from_nanos(time.0));
    let note = |line: &str| say(&format!("isotherm: {line}\n"));
    Ok(SessionOptions { time_limit, output, stop, note })
}

/// Runs a guest; says what its kernel wrote about the program's end.
pub(super) fn boot(
    machine: &Machine,
    job: &Job,
    named: (&str, &Cache, &RunDirectory),
    options: &SessionOptions,
) -> Result<LabResult, Failure> {
    let (result, log) = attempt(machine, job, named, options).map_err(|error| failure(&error))?;
    say_log(log);
    Ok(result)
}

pub(super) fn say_log(log: Option<String>) {
    if let Some(line) = log {
        say(&format!("guest: {line}\n"));
    }
}

/// Runs a guest without a word; returns also what its kernel wrote about the program's end.
pub(super) fn attempt(
    machine: &Machine,
    job: &Job,
    (name, cache, run): (&str, &Cache, &RunDirectory),
    options: &SessionOptions,
) -> Result<(LabResult, Option<String>), LabError> {
    let ended = session::run(machine, job, cache, run, options)?;
    let mut result = LabResult::gather(machine, job, name.into(), cache, run, &ended);
    result.manifest.binary = fingerprint::own();
    result.manifest.policy_libraries = policies::libraries([name]);
    if let Task::Program(words) = &job.task {
        result.manifest.input = words.first().and_then(|name| fingerprint::of_program(name));
    }
    Ok((result, ended.kernel_log))
}

/// Turns shares of memory into bytes: runs the program once without limit to see how much it uses.
/// Returns whether it did, so that jobs made before lack the limit.
pub(super) fn measure_share(
    args: &mut GuestArgs,
    machine: &Machine,
    command: &[OsString],
    (cache, options): (&Cache, &SessionOptions),
) -> Result<bool, Failure> {
    let Some(limit @ (FastLimit::Share(_) | FastLimit::Parts(_))) = args.fast.clone() else {
        return Ok(false);
    };
    if !args.quiet {
        say("isotherm: measuring the program's memory, for --fast\n");
    }
    let tiering = PolicyRun::Kernel("none".parse().map_err(|error: LabError| Failure::usage(error))?);
    let job = job(args, machine, tiering, command)?;
    let run = RunDirectory::create(&cache.runs()).map_err(|error| failure(&error))?;
    let options = SessionOptions { output: Output::Files, ..options.clone() };
    let used = boot(machine, &job, ("none", cache, &run), &options)?.footprint_bytes();
    let whole = |bytes: u64| Bytes(bytes >> PageSize::Base.shift() << PageSize::Base.shift());
    args.measured = limit.limits(used, |bytes| bytes.0).into_iter().map(whole).collect();
    let (shown, used) = (args.measured.iter().map(Bytes::to_string).collect::<Vec<_>>(), Bytes(used));
    if args.measured.first() == Some(&Bytes(0)) {
        let expected = format!("of {used} that the program used: expected bytes");
        return Err(Failure::Usage(format!("--fast {limit}: {expected}")));
    }
    if !args.quiet {
        say(&format!("isotherm: --fast {}, of {used} that the program used\n", shown.join(", ")));
    }
    Ok(true)
}

/// Converts an error of the lab; prints the console's last lines if a guest failed.
pub(super) fn failure(error: &LabError) -> Failure {
    let status = match error {
        LabError::TimeLimit { .. } => TIME_OVER,
        LabError::Interrupted => 130,
        LabError::OutputClosed => 141,
        error if error.is_usage() => return Failure::usage(error),
        _ => NO_RESULT,
    };
    if let LabError::Panic { console, .. }
    | LabError::TimeLimit { console, .. }
    | LabError::Guest { console, .. }
    | LabError::Ended { console, .. } = error
    {
        Console::read(console).tail(CONSOLE_LINES).iter().for_each(|line| say(&format!("guest: {line}\n")));
    }
    Failure::Command(status, error.to_string())
}

pub(super) fn report(
    args: &GuestArgs,
    summary: Option<output::Output>,
    results: &[LabResult],
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    output::write(summary, || isotherm_report::lab_json(results))?;
    if args.json {
        say(&isotherm_report::lab_json(results));
    } else if !args.quiet {
        say(&text());
    }
    Ok(())
}
