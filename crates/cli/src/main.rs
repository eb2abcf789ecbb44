//! The `isotherm` command.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod date;
mod failure;
mod fingerprint;
mod input;
mod libraries;
mod memory;
mod output;
mod policies;
mod progress;
mod settings;
mod symbols;

use std::process::ExitCode;

use crate::args::{Cli, Verb};
use crate::failure::Failure;

/// Uses huge pages: samples and replays look pages up at random in large arrays. Where memory is refused, the
/// process ends with one line. Tests are linked with the crate of `libisotherm.so`, which has its own
/// allocator.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePagesOrEnd = isotherm_linux::HugePagesOrEnd;

fn main() -> ExitCode {
    let cli = Cli::read();
    let result = match cli.verb {
        Verb::Record(args) => commands::record::run(args),
        Verb::Simulate(args) => commands::simulate::run(&args),
        Verb::Size(args) => commands::size::run(&args),
        Verb::Objects(args) => commands::objects::run(&args),
        Verb::Compare(args) => commands::compare::run(&args),
        Verb::Run(args) => commands::live::run(args),
        Verb::Attach(args) => commands::live::attach(&args),
        Verb::Daemon(args) => commands::daemon::run(args),
        Verb::Top(args) => commands::top::run(&args),
        Verb::Replay(args) => commands::replay::run(&args),
        Verb::Ps(args) => commands::ps::run(&args),
        Verb::Lab(args) => commands::lab::run(args),
        Verb::AllocProfile(args) => commands::alloc_profile::run(&args),
        Verb::Doctor(args) => commands::doctor::run(&args),
        Verb::Calibrate(args) => commands::calibrate::run(&args),
        Verb::Score(args) => commands::score::run(&args),
        Verb::Policy(args) => commands::policy::run(&args.verb),
        Verb::Policies(args) => commands::policies::run(&args),
        Verb::Machines(args) => commands::machines::run(&args),
        Verb::Workloads(args) => commands::workloads::run(&args),
        Verb::Trace(args) => commands::trace::run(&args.verb),
        Verb::Completions(args) => commands::generate::completions(&args),
        Verb::Man(args) => commands::generate::man(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Exit(code)) => ExitCode::from(code),
        Err(failure) => {
            output::say(&format!("isotherm: {}\n", output::one_line(&failure.to_string())));
            ExitCode::from(failure.code())
        }
    }
}
