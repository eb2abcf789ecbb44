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
    Call {
        /// The call, as in its manual page.
        call: &'static str,
        error: io::Error,
    },
    #[error("{what} needs {needs}: {remedy}")]
    Permission {
        what: &'static str,
        /// The capability or setting, such as `CAP_PERFMON`.
        needs: &'static str,
        /// The exact command that grants it.
        remedy: String,
    },
    #[error("{what} is not supported here: {remedy}")]
    Unsupported { what: &'static str, remedy: String },
    #[error(transparent)]
    Device(Box<dyn std::error::Error + Send + Sync>),
    /// The process has ended, which is normal.
    #[error("process {0} has ended")]
    Ended(u32),
}

impl LinuxError {
    /// Returns the error of a failed call, from the current `errno`.
    pub fn last(call: &'static str) -> Self {
        Self::Call { call, error: io::Error::last_os_error() }
    }

    pub fn file(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::File { path: path.into(), error }
    }
}
