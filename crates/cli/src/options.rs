//! The options of a verb, for callers in other languages.

use clap::{ArgAction, CommandFactory};

use crate::args::Cli;

/// An option or operand of a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbOption {
    /// Its name, as a name of a variable: `page_size`.
    pub name: String,
    /// Its long form, `page-size`; `None` for an operand.
    pub long: Option<String>,
    /// Whether it takes no value.
    pub flag: bool,
    /// The character between the values of a list.
    pub delimiter: Option<char>,
    /// Whether it may be given several times.
    pub repeats: bool,
    /// Its default as text; empty without one.
    pub default: String,
    /// Its meaning.
    pub help: String,
}

/// Returns the options of a verb; `None` if there is no such verb.
pub fn options(verb: &str) -> Option<Vec<VerbOption>> {
    let command = Cli::command();
    let verb = command.find_subcommand(verb)?;
    let options = verb.get_arguments().filter(|argument| !argument.is_hide_set()).map(|argument| {
        let default = argument.get_default_values().iter().map(|value| value.to_string_lossy());
        let flag = !argument.get_action().takes_values();
        VerbOption {
            name: argument.get_long().unwrap_or(argument.get_id().as_str()).replace('-', "_"),
            long: argument.get_long().map(str::to_owned),
            flag,
            delimiter: argument.get_value_delimiter(),
            repeats: matches!(argument.get_action(), ArgAction::Append),
            default: if flag { String::new() } else { default.collect::<Vec<_>>().join(",") },
            help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        }
    });
    Some(options.collect())
}
