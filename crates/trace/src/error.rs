//! Errors of a trace on disk.

use std::io;
use std::path::PathBuf;

/// Reason why a trace could not be written or read: a line with the file, the field and what was expected.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("{}: exists already; expected a new name for the trace", path.display())]
    Exists { path: PathBuf },
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error("{}: cannot write the part: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
    #[error("{}: not a trace: {reason}; expected a Parquet file that Isotherm wrote", path.display())]
    NotATrace { path: PathBuf, reason: String },
    #[error("{}: truncated: {reason}", path.display())]
    Truncated { path: PathBuf, reason: String },
    #[error("{}: holds no finished part; expected part-00000.parquet{hint}", path.display())]
    NoParts { path: PathBuf, hint: &'static str },
    #[error("{}: missing; expected parts numbered from 0 without a gap", path.display())]
    MissingPart { path: PathBuf },
    #[error("{}: {key} is '{found}'; expected {expected}", path.display())]
    Version { path: PathBuf, key: &'static str, found: String, expected: &'static str },
    #[error("{}: {key}: {reason}; expected provenance as JSON", path.display())]
    Provenance { path: PathBuf, key: &'static str, reason: String },
    #[error("{}: line {line}: {reason}; expected mappings that Isotherm wrote", path.display())]
    Mappings { path: PathBuf, line: usize, reason: String },
    #[error("{}: line {line}: {reason}; expected shares that Isotherm wrote", path.display())]
    Contents { path: PathBuf, line: usize, reason: String },
    #[error("--process {name}: no process has this name; expected one of: {names}")]
    NoProcess { name: String, names: String },
    #[error("{}: column '{column}' {problem}; expected {expected}", path.display())]
    Column { path: PathBuf, column: &'static str, problem: String, expected: String },
}
