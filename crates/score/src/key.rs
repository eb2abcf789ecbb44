//! Identities of runs: comparisons that ask for the same run share it.

use crate::figures::Settings;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) workload: String,
    pub(crate) set: Settings,
    pub(crate) accesses: u64,
    pub(crate) huge: bool,
    pub(crate) seed: u64,
    /// Machine, with its settings, on whose slow tier each thread keeps its own pace; `None` if threads wait
    /// for each other as recorded.
    pub(crate) own_pace: Option<(String, Settings)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestbedKey {
    pub(crate) stream: StreamKey,
    pub(crate) machine: String,
    pub(crate) machine_set: Settings,
    pub(crate) reference: Option<String>,
    pub(crate) reference_threads: Option<u32>,
    pub(crate) scale: Option<u32>,
    pub(crate) intervals: usize,
    /// Accesses simulated at most of a run of many rounds; `None` for a single replay.
    pub(crate) rounds: Option<u64>,
    /// Seed of sampling and policies.
    pub(crate) seed: u64,
}

impl TestbedKey {
    /// Returns the testbed without what has no part in a run with all memory fast.
    pub(crate) fn all_fast(&self) -> Self {
        // A touch of what is cached is a cost of the program's own page walks.
        let costs = |path: &String| path.starts_with("costs.") && path != "costs.cached_touch";
        let machine_set = self.machine_set.clone().into_iter().filter(|(path, _)| !costs(path)).collect();
        Self { machine_set, seed: 0, ..self.clone() }
    }
}

/// A policy on a testbed. The stream comes first in the order, so that runs of one stream are adjacent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKey {
    pub(crate) testbed: TestbedKey,
    pub(crate) fast: String,
    pub(crate) policy: String,
    pub(crate) set: Settings,
}
