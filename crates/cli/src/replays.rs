//! The verbs that replay, as functions: they take the verbs' command lines, and return what these print.

use std::ffi::OsString;

use isotherm_sim::{Loaded, Report};

use crate::args::{Cli, Verb};
use crate::commands;
use crate::failure::Failure;
use crate::progress::Watch;

/// Does the work of `isotherm simulate`. Returns its result, and the input that was replayed.
///
/// # Errors
/// As the verb: bad input is [`Failure::Usage`].
pub fn simulate(line: &[OsString], watch: &Watch) -> Result<(Report, Loaded), Failure> {
    match parse("simulate", line)? {
        Verb::Simulate(args) => commands::simulate::compute(&args, watch),
        _ => Err(other("simulate")),
    }
}

/// Does the work of `isotherm size`, and returns its result as JSON.
///
/// # Errors
/// As [`simulate`].
pub fn size(line: &[OsString], watch: &Watch) -> Result<String, Failure> {
    match parse("size", line)? {
        Verb::Size(args) => commands::size::compute(&args, watch)
            .map(|(report, plan)| isotherm_report::size_json(&report, &plan)),
        _ => Err(other("size")),
    }
}

/// Loads the input of `isotherm simulate` without replaying it.
///
/// # Errors
/// As [`simulate`].
pub fn load(line: &[OsString], watch: &Watch) -> Result<Loaded, Failure> {
    match parse("simulate", line)? {
        Verb::Simulate(args) => commands::simulate::load_only(&args, watch),
        _ => Err(other("simulate")),
    }
}

fn parse(verb: &str, line: &[OsString]) -> Result<Verb, Failure> {
    let line = ["isotherm", verb].map(OsString::from).into_iter().chain(line.iter().cloned());
    Ok(Cli::parse_line(line)?.verb)
}

fn other(expected: &str) -> Failure {
    Failure::Usage(format!("expected options of `isotherm {expected}`"))
}
