//! Errors of the lab, one line each.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("{file}: {field}: {problem}; expected {expected}")]
    Machine { file: String, field: String, problem: String, expected: String },
    #[error("{file}: line {line}: {message}")]
    Syntax { file: String, line: usize, message: String },
    #[error("{file}: {error}")]
    Profile { file: String, error: Box<isotherm_machine::ProfileError> },
    #[error("there is no lab machine '{name}' (a name, or the path of a TOML file); {advice}")]
    UnknownMachine { name: String, advice: String },
    #[error("there is no kernel tiering '{name}'; {advice}")]
    UnknownTiering { name: String, advice: String },
    #[error("the lab is not set up: {} is missing; run `make lab-setup` (or scripts/lab-setup.sh)", path.display())]
    NotSetUp { path: PathBuf },
    #[error("the lab's plugin {name} is not beside isotherm ({}); run `make build`, or name it in ISOTHERM_LAB_PLUGIN", folder.display())]
    NoPlugin { name: &'static str, folder: PathBuf },
    #[error("machine {machine}: its simulated NeoProf {name} is not beside the plugin ({}); run `make hw-library` (needs verilator), or name it in ISOTHERM_NEOPROF_RTL", folder.display())]
    NoHardware { machine: String, name: &'static str, folder: PathBuf },
    #[error("{what}; expected {expected}")]
    Unfit { what: String, expected: String },
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error("the guest's kernel panicked: {reason}; the console is in {}", console.display())]
    Panic { reason: String, console: PathBuf },
    #[error("the guest was still running after {} s and was stopped (--time-limit); the console is in {}", limit.as_secs_f64(), console.display())]
    TimeLimit { limit: Duration, console: PathBuf },
    #[error("the guest failed: {reason}; the console is in {}", console.display())]
    Guest { reason: String, console: PathBuf },
    #[error("QEMU ended without a result ({reason}); the console is in {}", console.display())]
    Ended { reason: String, console: PathBuf },
    #[error("interrupted; the guest was stopped")]
    Interrupted,
    #[error("standard output was closed; the guest was stopped")]
    OutputClosed,
}

impl LabError {
    /// Returns a function that turns an [`io::Error`] about `path` into one line.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, action, source }
    }

    /// Returns whether the user's input is at fault.
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

/// Makes foreign text fit for a message: at most 80 letters, without line breaks and control characters.
pub(crate) fn shortened(text: &str) -> String {
    limited(text, 80)
}

/// Likewise for the messages of a kernel or of QEMU, which may be longer.
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
