//! The result of a live run: plain data that the live host fills in and reports print.
//!
//! The JSON form is documented in `docs/reference/live-schema.md`.

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::parameters::Parameters;
use crate::{Bytes, Nanos, PageSize};

/// Result of a live run, as `--json` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct LiveResult {
    /// Isotherm's version.
    pub version: String,
    /// Where the result comes from.
    pub manifest: Manifest,
    /// The program and its arguments, or the number of the process that was attached to.
    pub program: Vec<String>,
    /// The policy's name.
    pub policy: String,
    /// The policy's parameters in force, scaled.
    pub parameters: Parameters,
    /// Seed of every random choice.
    pub seed: u64,
    /// Divisor of sample counts and sizes.
    pub scale: f64,
    /// Divisor of durations.
    pub time_scale: f64,
    /// How often the policy was rebuilt because the memory in use had outgrown it.
    pub resized: u32,
    /// Steps of the engine.
    pub steps: u64,
    /// Samples that reached the policy.
    pub samples: u64,
    /// Hint faults that reached the policy.
    pub hint_faults: u64,
    /// Samples lost on the way to the policy.
    pub samples_lost: u64,
    /// The program's exit status, 128 + signal if a signal ended it; `None` if it was attached to.
    pub exit_status: Option<i32>,
    /// Everything that the host observed.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The host's observations in a live run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Start of the run in seconds since 1970.
    pub started_unix_s: u64,
    /// Duration of the run.
    pub duration_ns: Nanos,
    /// Distinct names of the followed processes in order of appearance, at most a hundred.
    pub process_names: Vec<String>,
    /// Number of followed processes.
    pub processes: u64,
    /// Whether tiers are virtual and nothing moved.
    pub shadow: bool,
    /// Granularity of tracking.
    pub page_size: PageSize,
    /// The most memory that was mapped at once.
    pub footprint_bytes: Bytes,
    /// Memory of the programs in swap at the end.
    pub swapped_bytes: Bytes,
    /// How much of it the kernel's zswap held, or less; `None` if nothing tells.
    pub zswapped_bytes: Option<Bytes>,
    /// The tiers, fastest first.
    pub tiers: Vec<TierUse>,
    /// Whether the hardware counted the tiers' hits; otherwise they are summed over samples.
    pub hits_measured: bool,
    /// Origin of the stall and occupancy counters that some policies decide by.
    pub counters: CounterOrigin,
    /// The fast tier's share of all accesses; `None` while too little is known ([`Self::missing`]).
    pub hit_ratio: Option<f64>,
    /// The same over the second half of the run.
    pub final_hit_ratio: Option<f64>,
    /// Upper bound on the slowdown against all memory fast: as if the programs only waited, at idle
    /// latencies, for each access of the run's second half in turn. `None` as the hit ratios.
    pub slowdown_at_most: Option<f64>,
    /// The bounds of those three figures.
    pub intervals: Intervals,
    /// Evidence that a statement about this run still needs; `None` where it needs no more.
    pub missing: Option<Missing>,
    /// Pages moved.
    pub traffic: Traffic,
    /// The access sources.
    pub sources: Vec<SourceUse>,
    /// Accesses outside of tiered memory.
    pub samples_foreign: u64,
    /// The engine's own cost.
    pub engine: EngineUse,
    /// Where the accesses went.
    pub hot_set: HotSet,
    /// Moments of the run, in order.
    pub timeline: Vec<Moment>,
    /// Figures that too few samples support.
    pub cautions: Vec<String>,
    /// Problems of the run, each once.
    pub warnings: Vec<String>,
}

/// A figure and its bounds: of 20 runs of the same program, the bounds of 19 hold the middle one's figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
}

impl Estimate {
    /// Returns the lower and the upper bound.
    pub fn bounds(self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Returns the estimate of a figure that grows, or falls, with this one.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let (low, high) = (of(self.low), of(self.high));
        Self { value: of(self.value), low: low.min(high), high: low.max(high) }
    }
}

/// Lower and upper bounds of a run's figures; `None` as the figure itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Intervals {
    /// Of [`Summary::hit_ratio`].
    pub hit_ratio: Option<[f64; 2]>,
    /// Of [`Summary::final_hit_ratio`].
    pub final_hit_ratio: Option<[f64; 2]>,
    /// Of [`Summary::slowdown_at_most`].
    pub slowdown_at_most: Option<[f64; 2]>,
}

/// Evidence that a run lacks, and ways to it, computed from the run itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Missing {
    /// Samples taken.
    pub samples: u64,
    /// Samples for each page in use.
    pub per_page: f64,
    /// Bounds of the hit ratio, as far as it is known.
    pub hit_ratio: Option<[f64; 2]>,
    /// Length of a run that would do, all else alike; `None` without any sample.
    pub run_ns: Option<Nanos>,
    /// Share of the program's time for observing it that would do in a run as long as this one; `None` where
    /// that is not set, or too much.
    pub overhead: Option<f64>,
    /// Whether larger pages would help: samples are spread over fewer of them.
    pub huge_pages: bool,
    /// A source that sees more and is not in use.
    pub source: Option<&'static str>,
}

/// Origin of the tiers' stall and occupancy counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterOrigin {
    /// No counters.
    #[default]
    None,
    /// Counted by the hardware.
    Counted,
    /// Occupancy by Little's law from the latency that each sample carries.
    LittlesLaw,
    /// Occupancy by Little's law from a machine profile's latencies: not measured.
    Modelled,
}

/// Moves that the kernel or a full tier refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The target tier was full or at its limit (ENOMEM).
    pub no_room: u64,
    /// The page was pinned or under I/O even after retries (EBUSY).
    pub busy: u64,
    /// The page was no longer mapped (ENOENT, EFAULT).
    pub gone: u64,
    /// The page was in swap (ENOENT).
    #[serde(default)]
    pub swapped: u64,
    /// The move was not allowed (EPERM, EACCES).
    pub denied: u64,
}

/// Pages moved, or, in shadow mode, pages that would have been moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Pages moved to a faster tier.
    pub promotions: u64,
    /// Pages moved to a slower tier by name.
    pub demotions: u64,
    /// Pages that the kernel's LRU took off a tier.
    pub reclaimed: u64,
    /// Bytes of promotions and demotions.
    pub bytes_moved: Bytes,
    /// Huge pages split into base pages for a policy.
    #[serde(default)]
    pub splits: u64,
    /// Ranges of base pages that became huge pages for a policy.
    #[serde(default)]
    pub collapses: u64,
    /// Refused moves.
    pub refused: Refused,
}

/// One tier at the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierUse {
    /// NUMA nodes of the tier; empty in shadow mode.
    pub nodes: Vec<u32>,
    /// Idle latency.
    pub latency_ns: Nanos,
    /// Capacity available to the programs.
    pub capacity_bytes: Bytes,
    /// Memory of the programs on the tier.
    pub resident_bytes: Bytes,
    /// Accesses served, counted by the hardware or summed over samples ([`Summary::hits_measured`]).
    pub hits: u64,
    /// Stall time for this tier, counted by the hardware and summed over threads; 0 if it is not counted.
    pub stall_ns: Nanos,
}

/// One access source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceUse {
    /// Name as in `--source`.
    pub name: &'static str,
    /// Accesses delivered.
    pub delivered: u64,
    /// Accesses lost to full buffers.
    pub lost: u64,
    /// How often the kernel throttled the source.
    pub throttled: u64,
    /// Accesses outside of followed memory or not decodable.
    pub foreign: u64,
    /// Processor time of the source's agents.
    pub agent_cpu_ns: Nanos,
    /// Time that the programs' threads lost to the source, as far as it knows.
    pub program_ns: Nanos,
    /// Memory of the source.
    pub memory_bytes: Bytes,
    /// Share of the programs' present memory that the source cannot observe, as of its last look at each;
    /// `None` where it observes all, or does not tell.
    pub left_out_share: Option<f64>,
}

/// The engine's own cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EngineUse {
    /// Processor time of the engine without agents.
    pub cpu_ns: Nanos,
    /// Share of one processor, agents included.
    pub cpu_share: f64,
    /// Peak memory of the policy and its trackers.
    pub metadata_bytes: Bytes,
    /// Memory for page numbers, residency, heat and kept samples.
    pub host_bytes: Bytes,
}

/// State of the run at one moment; counts are since the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// Time since the start.
    pub time_ns: Nanos,
    /// Bytes on each tier, fastest first.
    pub resident_bytes: Vec<Bytes>,
    /// Accesses sampled or counted on each tier.
    pub hits: Vec<u64>,
    /// Pages moved.
    pub traffic: Traffic,
    /// Samples delivered.
    pub samples: u64,
    /// The policy's gauges by name.
    pub gauges: Vec<(&'static str, f64)>,
}

/// The memory that takes a share of the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HotShare {
    /// Share of the sampled accesses.
    pub accesses: f64,
    /// Size of the hottest memory that took them.
    pub bytes: Bytes,
    /// Its lower bound: of the pages that have most samples, by those samples. Chance looks like heat there.
    pub low_bytes: Bytes,
    /// Its upper bound: of the pages that have most of one half of the samples, by the other half.
    pub high_bytes: Bytes,
}

/// Adjacent pages of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryRange {
    /// Number of the process.
    pub process: u32,
    /// First address.
    pub start: u64,
    /// Length.
    pub bytes: Bytes,
    /// Sampled accesses to the range.
    pub accesses: u64,
}

/// Hot pages: those accessed at the higher of two rates that explain the samples of all pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HotPages {
    /// Least number of samples of a hot page; 0 if pages do not fall into two groups.
    pub at_least: u32,
    /// Memory of the hot pages.
    pub bytes: Bytes,
    /// Its lower bound.
    pub low_bytes: Bytes,
    /// Its upper bound.
    pub high_bytes: Bytes,
    /// Their share of the sampled accesses.
    pub accesses: f64,
    /// Its lower bound.
    pub low_accesses: f64,
    /// Its upper bound.
    pub high_accesses: f64,
    /// Their ranges in address order, at most ten thousand.
    pub ranges: Vec<MemoryRange>,
}

/// Where the accesses went; old accesses count for less.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HotSet {
    /// Memory for several shares of the accesses; without those that too few samples support.
    pub shares: Vec<HotShare>,
    /// The hot pages.
    pub hot: HotPages,
    /// Contents of the fast tier at the end, the most accessed ranges first, at most a thousand.
    pub fast_ranges: Vec<MemoryRange>,
}
