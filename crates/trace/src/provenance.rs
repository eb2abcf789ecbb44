//! Defines where a trace comes from: what every part of it carries beside the rows.

use isotherm_core::cache::Geometry;
use serde::{Deserialize, Serialize};

/// What was recorded, by what, and what is missing. Stored as JSON in every part.
///
/// A part tells the state at the time it was written; the last part's is in force for the whole trace.
/// Times are the caller's to give (in [`Provenance::note`]): this crate reads no clock, so that the same input gives the
/// same bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The command that ran, as a user would type it.
    pub command: String,
    /// Who recorded: name and version, such as `qemu-user 7.2`.
    pub recorder: String,
    /// The machine it ran on, in free text.
    pub machine: String,
    /// The cache whose misses the rows are; `None` where the source tells no geometry (a PMU) or none stood before.
    pub cache: Option<Geometry>,
    /// The cache of each thread before that one, which sees only what misses here; `None` where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Geometry>,
    /// Whether [`crate::Rows::dependence`] was recorded; without it the column is all 0.
    pub dependence: bool,
    /// The command of each process, by its number in [`crate::Rows::process`].
    pub processes: Vec<String>,
    /// Accesses before the cache filtered them; 0 if unknown.
    pub accesses: u64,
    /// Rows that the recorder lost.
    pub lost: u64,
    /// Child programs that ran untraced.
    pub untraced: u64,
    /// The version of Isotherm that wrote the trace.
    pub version: String,
    /// Workload, parameters and seed, where a workload was exported instead of a program recorded.
    pub workload: Option<String>,
    /// A note of whoever made the trace.
    pub note: String,
}

impl Provenance {
    /// The provenance of a trace of `command`, written by this version of Isotherm.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), version: env!("CARGO_PKG_VERSION").into(), ..Self::default() }
    }
}
