//! Defines what can go wrong in the lab: one line each.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a machine could not be used, or a guest gave no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A machine file that cannot be used.
    #[error("{file}: {field}: {problem}; expected {expected}")]
    Machine {
        /// The file.
        file: String,
        /// The field's path.
        field: String,
        /// What is wrong.
        problem: String,
        /// What belongs there.
        expected: String,
    },
    /// A machine file that is no TOML.
    #[error("{file}: line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What the TOML parser says.
        message: String,
    },
    /// The profile of a machine, or a change to it, is not valid.
    #[error("{file}: {error}")]
    Profile {
        /// The file.
        file: String,
        /// What the profile says.
        error: Box<isotherm_machine::ProfileError>,
    },
    /// No machine of that name comes with Isotherm.
    #[error("there is no lab machine '{name}' (a name, or the path of a TOML file); {advice}")]
    UnknownMachine {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them where none is near.
        advice: String,
    },
    /// No kernel tiering of that name.
    #[error("there is no kernel tiering '{name}'; {advice}")]
    UnknownTiering {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them where none is near.
        advice: String,
    },
    /// Kernel and QEMU are not there.
    #[error("the lab is not set up: {} is missing; run `make lab-setup` (or scripts/lab-setup.sh)", path.display())]
    NotSetUp {
        /// What was looked for.
        path: PathBuf,
    },
    /// QEMU's plugin is not there.
    #[error("{name}, which counts what the program does, is not beside isotherm ({}); `make build` puts it there, ISOTHERM_LAB_PLUGIN names another", folder.display())]
    NoPlugin {
        /// Its file.
        name: &'static str,
        /// Where it was expected.
        folder: PathBuf,
    },
    /// The simulated hardware of a profiling device is not there.
    #[error("machine {machine}: {name}, its simulated NeoProf, is not beside the plugin ({}); `make hw-library` builds it (verilator), ISOTHERM_NEOPROF_RTL names another", folder.display())]
    NoHardware {
        /// The machine that needs it.
        machine: String,
        /// Its file.
        name: &'static str,
        /// Where it was expected.
        folder: PathBuf,
    },
    /// What the run asks for does not fit the machine.
    #[error("{what}; expected {expected}")]
    Unfit {
        /// What does not.
        what: String,
        /// What would.
        expected: String,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file, directory or program.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked: {reason}; the console is in {}", console.display())]
    Panic {
        /// The kernel's line.
        reason: String,
        /// Where all of it is.
        console: PathBuf,
    },
    /// The guest was still running when its time was over.
    #[error("the guest was still running after {} s and was stopped (--time-limit); the console is in {}", limit.as_secs_f64(), console.display())]
    TimeLimit {
        /// The limit.
        limit: Duration,
        /// Where the console is.
        console: PathBuf,
    },
    /// The guest's own part could not prepare or end the run.
    #[error("the guest could not do it: {reason}; the console is in {}", console.display())]
    Guest {
        /// What it says.
        reason: String,
        /// Where the console is.
        console: PathBuf,
    },
    /// QEMU ended and left no result.
    #[error("QEMU ended without a result ({reason}); the console is in {}", console.display())]
    Ended {
        /// Its last words or its status.
        reason: String,
        /// Where the console is.
        console: PathBuf,
    },
    /// A signal or Ctrl-C came first.
    #[error("interrupted; the guest was stopped")]
    Interrupted,
    /// The program's output could not be passed on.
    #[error("standard output was closed; the guest was stopped")]
    OutputClosed,
}

impl LabError {
    /// What turns an [`io::Error`] about `path` into one line.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, action, source }
    }

    /// Whether what the user gave is at fault, rather than the work.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Machine { .. }
                | Self::Syntax { .. }
                | Self::Profile { .. }
                | Self::UnknownMachine { .. }
                | Self::UnknownTiering { .. }
                | Self::Unfit { .. }
        )
    }
}

/// Foreign text as it may stand in a message: at most 80 letters, without line breaks and control characters.
pub(crate) fn shortened(text: &str) -> String {
    limited(text, 80)
}

/// The same for the words of a kernel or of QEMU, which are ours to understand.
pub(crate) fn sentence(text: &str) -> String {
    limited(text, 300)
}

fn limited(text: &str, longest: usize) -> String {
    let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let escape =
        |letter: char| if breaks(letter) { letter.escape_default().to_string() } else { letter.into() };
    let mut short: String = text.chars().take(longest).map(escape).collect();
    if text.chars().nth(longest).is_some() {
        short.push_str("...");
    }
    short
}
