//! Imports what other tools recorded: the text of `perf`, of Valgrind's Lackey and of memtierd, the records
//! of DAMON, and the traces of DynamoRIO, ChampSim and libCacheSim.
//!
//! Each importer is a function from its input to rows in batches, so the input may be larger than memory. It
//! sets what the source does not tell by rules stated in its module.

mod champsim;
mod damon;
mod drmemtrace;
mod lackey;
mod lines;
mod memtierd;
mod misses;
pub(crate) mod oracle_general;
mod output;
mod packed;
mod perf;
mod records;
mod rounds;
mod zip;

pub use champsim::champsim;
pub use damon::damon;
pub use drmemtrace::{TraceFile, drmemtrace, drmemtrace_files};
pub use lackey::lackey;
pub use memtierd::memtierd;
pub use oracle_general::oracle_general;
pub use perf::{PerfOptions, perf};
pub use rounds::HeatOptions;

use std::io;

/// First of the kernel's addresses.
const KERNEL: u64 = 1 << 63;

/// Counts of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Lines or records read.
    pub lines: u64,
    /// Accesses in the input.
    pub accesses: u64,
    /// Rows made of them.
    pub rows: u64,
    /// Accesses without a row for another reason than a hit in a cache model, such as a missing address.
    pub skipped: u64,
    /// Name of each process by its number, where the input tells it; otherwise its identity there.
    pub processes: Vec<String>,
}

/// Reason why an input could not be imported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ImportError {
    #[error("line {line}: '{found}'; expected {expected}")]
    Line { line: u64, found: String, expected: &'static str },
    #[error("line {line}: cannot read: {source}")]
    Io { line: u64, source: io::Error },
    #[error("record {record}: {found}; expected {expected}")]
    Record { record: u64, found: String, expected: &'static str },
    #[error("record {record}: cannot read: {source}")]
    Unreadable { record: u64, source: io::Error },
    #[error("{file}: {source}")]
    File { file: String, source: Box<ImportError> },
}
