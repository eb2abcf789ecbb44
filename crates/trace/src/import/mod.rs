//! Reads what other tools recorded: the text of `perf`, of Valgrind's Lackey, and of DAMON.
//!
//! Each importer is a function from text to rows, handed out in batches, so that a file may be larger than memory. What
//! the source does not tell is set by a stated rule; each importer names its own.

mod damon;
mod lackey;
mod lines;
mod output;
mod perf;

pub use damon::{DamonOptions, damon};
pub use lackey::lackey;
pub use perf::{PerfOptions, perf};

use std::io;

/// What was imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Lines read.
    pub lines: u64,
    /// Accesses that the text tells of.
    pub accesses: u64,
    /// Rows made of them.
    pub rows: u64,
    /// Accesses that gave no row for another reason than a hit in a cache model, such as having no address.
    pub skipped: u64,
    /// The name of each process by its number, where the text tells it; otherwise what identifies it there.
    pub processes: Vec<String>,
}

/// Why a text could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is not of the format.
    #[error("line {line}: '{found}'; expected {expected}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// The start of the line.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The text could not be read.
    #[error("line {line}: cannot read: {source}")]
    Io {
        /// Counted from 1.
        line: u64,
        /// The operating system's reason.
        source: io::Error,
    },
}
