//! The `isotherm` command, for its binary and for the Python package.
//!
//! [`main`] runs a command line. [`replays`] does the work of the verbs that replay, and returns their
//! results in place of printing them.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod date;
mod failure;
mod fingerprint;
mod input;
mod libraries;
mod memory;
mod options;
mod output;
mod policies;
mod program;
mod progress;
pub mod replays;
mod settings;
mod symbols;

use std::ffi::OsString;

pub use crate::failure::Failure;
pub use crate::fingerprint::of as fingerprint;
pub use crate::options::{VerbOption, options};
pub use crate::program::{Embedding, embed};
pub use crate::progress::Watch;

use crate::args::{Cli, Verb};

/// Runs a command line, whose first word is the program's name, and returns the exit status. Ends the process
/// itself where there is nothing to run: at `--help`, or a command line that is wrong.
pub fn main(line: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = Cli::read(line);
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
        Ok(()) => 0,
        Err(Failure::Exit(code)) => code,
        Err(failure) => {
            output::say(&format!("isotherm: {}\n", output::one_line(&failure.to_string())));
            failure.code()
        }
    }
}
