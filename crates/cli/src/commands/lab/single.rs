//! `isotherm lab run` and `isotherm lab shell`: one guest.

use std::io::{IsTerminal, stdin};

use isotherm_core::Nanos;
use isotherm_lab::LabError;
use isotherm_lab::cache::Cache;
use isotherm_lab::job::{Job, PolicyRun, Start, Task};
use isotherm_lab::kernel_tiering::KernelTiering;
use isotherm_lab::machine::Machine;
use isotherm_lab::run_directory::RunDirectory;
use isotherm_lab::session::{self, Output};

use super::guest::{boot, failure, measure_share, report, session_options};
use super::plan::{check_settings, counting, engine, environment, job, load_machine};
use crate::args::DEFAULT_POLICY;
use crate::args::lab::{LabRunArgs, LabShellArgs};
use crate::failure::Failure;
use crate::output::{self, say};
use crate::policies;

/// Runs a program in a guest. The exit status is the program's.
pub(super) fn run(mut args: LabRunArgs) -> Result<(), Failure> {
    let machine = load_machine(&args.guest.machine)?;
    let (mut name, mut job) = planned(&args, &machine)?;
    let summary = output::open(args.guest.summary.as_ref())?;
    let cache = Cache::find().map_err(|error| failure(&error))?;
    let options = session_options(Some(args.guest.time_limit), Output::Ours)?;
    if measure_share(&mut args.guest, &machine, &args.command, (&cache, &options))? {
        (name, job) = planned(&args, &machine)?;
    }
    let run = match args.folder {
        None => RunDirectory::create(&cache.runs()),
        Some(folder) => RunDirectory::at(folder),
    };
    let run = run.map_err(|error| failure(&error))?;
    let results = [boot(&machine, &job, (&name, &cache, &run), &options)?];
    report(&args.guest, summary, &results, || isotherm_report::lab_text(&results[0]))?;
    Failure::exit(Some(results[0].exit_status.into()))
}

fn planned(args: &LabRunArgs, machine: &Machine) -> Result<(String, Job), Failure> {
    let (name, tiering) = tiering(args)?;
    Ok((name, job(&args.guest, machine, tiering, &args.command)?))
}

fn tiering(args: &LabRunArgs) -> Result<(String, PolicyRun), Failure> {
    if let Some(name) = &args.kernel_tiering {
        let kernel: KernelTiering = name.parse().map_err(|error: LabError| Failure::usage(error))?;
        check_settings(&args.guest, &[])?;
        return Ok((kernel.to_string(), PolicyRun::Kernel(kernel)));
    }
    let entry = policies::find(args.policy.as_deref().unwrap_or(DEFAULT_POLICY))?;
    let tiering = engine(&args.guest, entry)?;
    check_settings(&args.guest, &[entry.name])?;
    Ok((entry.name.into(), tiering))
}

/// Opens a shell in a guest; without a terminal, runs the commands of standard input.
pub(super) fn shell(args: &LabShellArgs) -> Result<(), Failure> {
    let machine = load_machine(&args.machine)?;
    let kernel: KernelTiering =
        args.kernel_tiering.parse().map_err(|error: LabError| Failure::usage(error))?;
    if args.uncounted && machine.device.is_some() {
        let expected = "expected a machine without a profiling device, which the plugin answers";
        return Err(Failure::Usage(format!("--uncounted: machine {}: {expected}", machine.name)));
    }
    let job = Job {
        task: if stdin().is_terminal() { Task::Shell } else { Task::Commands },
        tiering: PolicyRun::Kernel(kernel),
        start: Start::FirstTouch,
        clock_ratio: 1,
        room: Vec::new(),
        counting: if args.uncounted { None } else { Some(counting()?) },
        environment: environment(),
        directory: std::env::current_dir().map_err(Failure::failed)?,
    };
    let cache = Cache::find().map_err(|error| failure(&error))?;
    let run = RunDirectory::create(&cache.runs()).map_err(|error| failure(&error))?;
    say(&format!("isotherm: booting; `exit` ends the guest; logs: {}\n", run.path().display()));
    let options = session_options(None::<Nanos>, Output::Ours)?;
    let ended = session::run(&machine, &job, &cache, &run, &options).map_err(|error| failure(&error))?;
    Failure::exit(Some(ended.status.into()))
}
