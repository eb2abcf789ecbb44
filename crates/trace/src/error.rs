//! Errors of a trace on disk.

use std::io;
use std::path::PathBuf;

/// Reason why a trace could not be written or read: one line that names the file, the field and what was
/// expected.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The trace to write exists already.
    #[error("{}: exists already; expected a new name for the trace", path.display())]
    Exists {
        /// Trace.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Attempted action.
        action: &'static str,
        /// Operating system's reason.
        source: io::Error,
    },
    /// A part could not be written for a reason other than the operating system's.
    #[error("{}: cannot write the part: {reason}", path.display())]
    Write {
        /// Part.
        path: PathBuf,
        /// Encoder's reason.
        reason: String,
    },
    /// The file is not a trace.
    #[error("{}: not a trace: {reason}; expected a Parquet file that Isotherm wrote", path.display())]
    NotATrace {
        /// File.
        path: PathBuf,
        /// Fault.
        reason: String,
    },
    /// The file ends too early.
    #[error("{}: truncated: {reason}", path.display())]
    Truncated {
        /// File.
        path: PathBuf,
        /// Missing piece.
        reason: String,
    },
    /// The directory holds no finished part.
    #[error("{}: holds no finished part; expected part-00000.parquet{hint}", path.display())]
    NoParts {
        /// Directory.
        path: PathBuf,
        /// What was found instead, if anything.
        hint: &'static str,
    },
    /// A part before the last is missing.
    #[error("{}: missing; expected parts numbered from 0 without a gap", path.display())]
    MissingPart {
        /// Part.
        path: PathBuf,
    },
    /// The trace has an unknown version.
    #[error("{}: {key} is '{found}'; expected {expected}", path.display())]
    Version {
        /// File.
        path: PathBuf,
        /// Key.
        key: &'static str,
        /// Value of the key.
        found: String,
        /// Version that is read.
        expected: &'static str,
    },
    /// The provenance is missing or unreadable.
    #[error("{}: {key}: {reason}; expected provenance as JSON", path.display())]
    Provenance {
        /// File.
        path: PathBuf,
        /// Key.
        key: &'static str,
        /// Fault.
        reason: String,
    },
    /// A column is missing, has another type or holds impossible values.
    #[error("{}: column '{column}' {problem}; expected {expected}", path.display())]
    Column {
        /// File.
        path: PathBuf,
        /// Column.
        column: &'static str,
        /// Fault.
        problem: String,
        /// Expectation.
        expected: String,
    },
}
