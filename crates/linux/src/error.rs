//! Errors of calls to the kernel.

use std::io;
use std::path::PathBuf;

/// A failed request to the kernel, in one line: what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// A file does not hold what the kernel's documentation says.
    #[error("{}: expected {expected}, found '{found}'", path.display())]
    Format { path: PathBuf, expected: &'static str, found: String },
    #[error("{call}: {error}")]
    Call { call: &'static str, error: io::Error },
    #[error("{what} needs {needs}: {remedy}")]
    Permission { what: &'static str, needs: &'static str, remedy: String },
    #[error("{what} is not supported here: {remedy}")]
    Unsupported { what: &'static str, remedy: String },
    #[error(transparent)]
    Device(Box<dyn std::error::Error + Send + Sync>),
    /// The process has ended, which is normal.
    #[error("process {0} has ended")]
    Ended(u32),
}

impl LinuxError {
    /// Returns a constructor for failures of `call`.
    pub(crate) fn of_call(call: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self::Call { call, error }
    }

    pub fn file(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::File { path: path.into(), error }
    }
}
