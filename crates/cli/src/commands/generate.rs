//! `isotherm completions` and `isotherm man`, generated from the command line's definition.

use std::fs;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use isotherm_lab::machine::Machine;
use isotherm_machine::Profile;
use isotherm_policies::{ALL, Kind};

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output::print;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    let command = Cli::command().mut_subcommands(|verb| with_names("", verb));
    clap_complete::generate(args.shell, &mut { command }, "isotherm", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Lets scripts complete the names of policies, workloads and machines. The parser does not restrict
/// arguments to them: files and lists are allowed too, and the verbs' own errors suggest the nearest name.
fn with_names(parent: &str, verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    let verb = verb.mut_subcommands(|below| with_names(&name, below));
    verb.mut_args(|argument| {
        let names = names(parent, &name, &argument);
        if names.is_empty() { argument } else { argument.value_parser(PossibleValuesParser::new(names)) }
    })
}

/// Returns the names that an argument of a verb takes; none where it takes others.
fn names(parent: &str, verb: &str, argument: &Arg) -> Vec<&'static str> {
    let is_replayed = ["simulate", "size"].contains(&verb);
    let is_listed = |of: &str| verb == of && argument.get_id() == "name";
    match argument.get_id().as_str() {
        "policy" | "policies" if is_replayed => ALL.iter().map(|entry| entry.name).chain(["all"]).collect(),
        "policy" | "policies" => {
            let policies = ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_)));
            policies.map(|entry| entry.name).collect()
        }
        _ if is_listed("policies") => ALL.iter().map(|entry| entry.name).collect(),
        "workload" => isotherm_workloads::ALL.iter().map(|workload| workload.name).collect(),
        _ if is_listed("workloads") => isotherm_workloads::ALL.iter().map(|workload| workload.name).collect(),
        "machine" if parent == "lab" => Machine::builtin_names().collect(),
        _ if parent == "lab" && is_listed("machines") => Machine::builtin_names().collect(),
        "machine" => Profile::builtin_names().collect(),
        _ if is_listed("machines") => Profile::builtin_names().collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed_at(&args.folder, error);
    fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.folder).map_err(failed)
}
