//! Defines what can go wrong with a trace on disk.

use std::io;
use std::path::PathBuf;

/// Why a trace could not be written or read: one line that names the file, the field and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The trace to be written is there already.
    #[error("{}: exists already; expected a new name for the trace", path.display())]
    Exists {
        /// The trace.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A part could not be written, for a reason other than the operating system's.
    #[error("{}: cannot write the part: {reason}", path.display())]
    Write {
        /// The part.
        path: PathBuf,
        /// The encoder's reason.
        reason: String,
    },
    /// The file is no trace.
    #[error("{}: not a trace: {reason}; expected a Parquet file that Isotherm wrote", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file ends too early.
    #[error("{}: truncated: {reason}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The directory holds no finished part.
    #[error("{}: holds no finished part; expected part-00000.parquet{hint}", path.display())]
    NoParts {
        /// The directory.
        path: PathBuf,
        /// What was found instead, or nothing.
        hint: &'static str,
    },
    /// A part between two others, or before the first, is missing.
    #[error("{}: missing; expected parts numbered from 0 without a gap", path.display())]
    MissingPart {
        /// The part.
        path: PathBuf,
    },
    /// The format's version is not one that this crate reads.
    #[error("{}: {key} is '{found}'; expected {expected}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// The version that is read.
        expected: &'static str,
    },
    /// The provenance is missing or unreadable.
    #[error("{}: {key}: {reason}; expected provenance as JSON", path.display())]
    Provenance {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A column is missing, of another type, or its values are impossible.
    #[error("{}: column '{column}' {problem}; expected {expected}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// What is wrong.
        problem: String,
        /// What was expected.
        expected: String,
    },
}
