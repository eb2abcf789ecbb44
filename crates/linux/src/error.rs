//! Errors of calls to the kernel.

use std::io;
use std::path::PathBuf;

/// A failed request to the kernel, in one line: what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// A file of `/proc`, `/sys` or `/dev` could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// A file does not hold what the kernel's documentation says.
    #[error("{}: expected {expected}, found '{found}'", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// The text found, shortened.
        found: String,
    },
    /// A system call failed.
    #[error("{call}: {error}")]
    Call {
        /// The call, as in its manual page.
        call: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The user is not permitted to do this.
    #[error("{what} needs {needs}: {remedy}")]
    Permission {
        /// What was tried.
        what: &'static str,
        /// The capability or setting, such as `CAP_PERFMON`.
        needs: &'static str,
        /// The exact command that grants it.
        remedy: String,
    },
    /// The kernel or the processor cannot do this.
    #[error("{what} is not supported here: {remedy}")]
    Unsupported {
        /// What was tried.
        what: &'static str,
        /// What is needed instead.
        remedy: String,
    },
    /// A profiling device cannot be used, or no longer.
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

    /// Returns the error of a failed access to a file.
    pub fn file(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::File { path: path.into(), error }
    }
}
