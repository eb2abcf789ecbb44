//! Defines how a command fails: one line for the user and an exit code.

use std::fmt;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input or usage: exit code 2.
    Usage(String),
    /// The work itself failed: exit code 1.
    Failed(String),
    /// A command cannot be run, as a shell says it: 126 or 127.
    Command(u8, String),
    /// Nothing to say: the exit status of the program that ran.
    Exit(u8),
}

impl Failure {
    /// Bad input.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// Failed work.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
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
