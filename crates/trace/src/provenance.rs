//! Origin of a trace, which every part carries beside the rows.

use isotherm_core::cache::Geometry;
use serde::{Deserialize, Serialize};

/// Source, tools and gaps of a trace. Stored as JSON in every part.
///
/// A part holds the state at the time it was written; the last part's is in force for the whole trace. The
/// caller supplies times (in [`Provenance::note`]): this crate reads no clock, so the same input gives the
/// same bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Command that ran, as a user would type it.
    pub command: String,
    /// Recorder's name and version, such as `qemu-user 7.2`.
    pub recorder: String,
    /// Machine it ran on, in free text.
    pub machine: String,
    /// Cache whose misses the rows are; `None` where the source tells none (a PMU) or there was none.
    pub cache: Option<Geometry>,
    /// Each thread's cache in front of `cache`, which sees only its misses; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Geometry>,
    /// Allocator that recording gave the program in place of its own, which changes addresses; empty without.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub allocator: String,
    /// Whether [`crate::Rows::dependence`] was recorded; without it the column is all 0.
    pub dependence: bool,
    /// Command of each process, by its number in [`crate::Rows::process`].
    pub processes: Vec<String>,
    /// Accesses before the cache filtered them; 0 if unknown.
    pub accesses: u64,
    /// Rows that the recorder lost.
    pub lost: u64,
    /// Child programs that ran untraced.
    pub untraced: u64,
    /// Version of Isotherm that wrote the trace.
    pub version: String,
    /// Workload, parameters and seed, where a workload was exported instead of a program recorded.
    pub workload: Option<String>,
    /// Note of the trace's author.
    pub note: String,
}

impl Provenance {
    /// Makes the provenance of a trace of `command`, written by this version of Isotherm.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), version: env!("CARGO_PKG_VERSION").into(), ..Self::default() }
    }
}
