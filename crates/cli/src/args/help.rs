//! The grouped list of verbs in `isotherm --help`.

use clap::Command;

/// The verbs by task, in the order of `isotherm --help`.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["record", "trace", "workloads", "alloc-profile"]),
    ("Decide", &["simulate", "size", "objects", "compare"]),
    ("Run", &["run", "attach", "daemon", "top", "replay", "ps", "doctor", "calibrate"]),
    ("Lab", &["lab"]),
    ("Reference", &["policies", "machines", "completions", "man"]),
    ("Development", &["policy", "score"]),
];

/// Makes the help list the verbs by task.
pub(super) fn grouped(command: Command) -> Command {
    let mut verbs = String::new();
    for (task, names) in GROUPS {
        verbs += &format!("\n{task}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            verbs += &format!("  {name:<13} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{verbs}\nOptions:\n{{options}}\n\n\
         `isotherm VERB --help` explains a verb and its options.\n"
    ))
}
