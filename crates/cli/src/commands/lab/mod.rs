//! `isotherm lab`: programs in a virtual machine with two tiers of memory.

mod compare;
mod machines;
mod plan;
mod single;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::Nanos;
use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::console::Console;
use isotherm_lab::job::Job;
use isotherm_lab::machine::Machine;
use isotherm_lab::result::LabResult;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::{self, Output, SessionOptions};

use crate::args::lab::{GuestArgs, LabArgs, LabVerb};
use crate::failure::Failure;

/// Exit statuses of ours that are not the program's, as `timeout` and `env` have them.
const TIME_OVER: u8 = 124;
const NO_RESULT: u8 = 125;
/// Lines of a console that are shown where a guest failed.
const CONSOLE_LINES: usize = 12;

/// Runs the verb.
pub(crate) fn run(args: LabArgs) -> Result<(), Failure> {
    match args.verb {
        LabVerb::Run(args) => single::run(args),
        LabVerb::Compare(args) => compare::run(args),
        LabVerb::Shell(args) => single::shell(&args),
        LabVerb::Machines(args) => machines::run(&args),
    }
}

/// What ends a guest before it ends itself.
fn session_options(time_limit: Option<Nanos>, output: Output) -> Result<SessionOptions, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).map_err(Failure::failed)?;
    let time_limit = time_limit.map(|time| Duration::from_nanos(time.0));
    Ok(SessionOptions { time_limit, output, stop })
}

/// Boots a guest for one job and gathers what it has left.
fn boot(
    machine: &Machine,
    job: &Job,
    (name, cache, run): (&str, &Cache, &RunDirectory),
    options: &SessionOptions,
) -> Result<LabResult, Failure> {
    let ended = session::run(machine, job, cache, run, options).map_err(|error| failure(&error))?;
    Ok(LabResult::gather(machine, job, name.into(), cache, run, &ended))
}

/// The failure that an error of the lab is, after the console's last lines where a guest did not end as it should.
fn failure(error: &LabError) -> Failure {
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
        Console::read(console).tail(CONSOLE_LINES).iter().for_each(|line| eprintln!("guest: {line}"));
    }
    Failure::Command(status, error.to_string())
}

/// Writes results where they are asked for.
fn report(args: &GuestArgs, results: &[LabResult], text: impl FnOnce() -> String) -> Result<(), Failure> {
    if let Some(path) = &args.summary {
        let failed = |error| Failure::failed(format!("{}: {error}", path.display()));
        std::fs::write(path, isotherm_report::lab_json(results)).map_err(failed)?;
    }
    if !args.quiet {
        eprint!("{}", if args.json { isotherm_report::lab_json(results) } else { text() });
    }
    Ok(())
}
