//! Defines what a run is known by: two comparisons that ask for the same run share it.

use crate::figures::Settings;

/// What a stream is made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) workload: String,
    pub(crate) set: Settings,
    /// At most so many accesses.
    pub(crate) accesses: u64,
    pub(crate) huge: bool,
    pub(crate) seed: u64,
    /// The machine, and the numbers set on it, on whose slow tier its threads keep their own pace; none where they wait for each other
    /// as recorded.
    pub(crate) own_pace: Option<(String, Settings)>,
}

/// A stream on a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BenchKey {
    pub(crate) stream: StreamKey,
    pub(crate) machine: String,
    pub(crate) machine_set: Settings,
    /// The paper's footprint, for the scale; the workload's own if absent.
    pub(crate) reference: Option<String>,
    /// The paper's threads, likewise.
    pub(crate) reference_threads: Option<u32>,
    /// In place of the automatic scale.
    pub(crate) scale: Option<u32>,
    pub(crate) intervals: usize,
    /// Seeds sampling and policies.
    pub(crate) seed: u64,
}

/// A policy on it. Streams come first in the order, so that runs of one stream stand together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKey {
    pub(crate) bench: BenchKey,
    pub(crate) fast: String,
    pub(crate) policy: String,
    pub(crate) set: Settings,
}
