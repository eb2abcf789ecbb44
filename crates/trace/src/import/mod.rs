//! Imports what other tools recorded: the text of `perf`, of Valgrind's Lackey, and of DAMON, and the records
//! of libCacheSim.
//!
//! Each importer is a function from its input to rows in batches, so the input may be larger than memory. It
//! sets what the source does not tell by rules stated in its module.

mod damon;
mod lackey;
mod lines;
pub(crate) mod oracle_general;
mod output;
mod perf;

pub use damon::{DamonOptions, damon};
pub use lackey::lackey;
pub use oracle_general::oracle_general;
pub use perf::{PerfOptions, perf};

use std::io;

/// Counts of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Lines read.
    pub lines: u64,
    /// Accesses in the text.
    pub accesses: u64,
    /// Rows made of them.
    pub rows: u64,
    /// Accesses without a row for another reason than a hit in a cache model, such as a missing address.
    pub skipped: u64,
    /// Name of each process by its number, where the text tells it; otherwise its identity there.
    pub processes: Vec<String>,
}

/// Reason why a text could not be imported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ImportError {
    #[error("line {line}: '{found}'; expected {expected}")]
    Line { line: u64, found: String, expected: &'static str },
    #[error("line {line}: cannot read: {source}")]
    Io { line: u64, source: io::Error },
    #[error("record {record}: {found}; expected {expected}")]
    Record { record: u64, found: String, expected: &'static str },
}
