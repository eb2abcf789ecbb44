//! Failures of commands: one line for the user and an exit code.

use std::fmt;
use std::path::Path;

/// Why a verb failed.
#[derive(Debug)]
pub enum Failure {
    /// Bad input or usage: exit code 2.
    Usage(String),
    /// The work itself failed: exit code 1.
    Failed(String),
    /// The program cannot be run or tiered; the code is a shell's (126, 127, 128 + a signal) or as above.
    Command(u8, String),
    /// The program ran and ended with this exit status; prints nothing.
    Exit(u8),
}

impl Failure {
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    pub(crate) fn failed_at(path: &Path, error: impl fmt::Display) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }

    /// Returns a failure at a file that the user named.
    pub(crate) fn usage_at(path: &Path, error: impl fmt::Display) -> Self {
        Self::Usage(format!("{}: {error}", path.display()))
    }

    /// Passes on a program's exit status; one that is unknown counts as success.
    pub(crate) fn exit(status: Option<i32>) -> Result<(), Self> {
        match status {
            None | Some(0) => Ok(()),
            Some(status) => Err(Self::Exit(u8::try_from(status).unwrap_or(u8::MAX))),
        }
    }

    /// Returns the exit status that says it.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
            Self::Command(code, _) | Self::Exit(code) => *code,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) | Self::Command(_, message) => f.write_str(message),
            Self::Exit(code) => write!(f, "exit status {code}"),
        }
    }
}
