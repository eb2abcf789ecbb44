//! Results of a simulation: plain data, from which tables, JSON and HTML are made.

use std::collections::BTreeMap;

use isotherm_core::manifest::Manifest;
use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, Nanos, PageSize};
use serde::Serialize;

/// In [`RunResult::page_tiers`]: a page that is in no tier.
pub const UNMAPPED: u8 = u8::MAX;

/// Every run over one input on one machine.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Isotherm's version.
    pub version: String,
    /// Where the result comes from.
    pub manifest: Manifest,
    /// The input.
    pub input: InputSummary,
    /// The machine profile, every number with its source.
    pub machine: isotherm_machine::MachineSummary,
    /// One entry per policy and fast-tier size, in the order asked for.
    pub runs: Vec<RunResult>,
}

/// Summary of the replayed accesses.
#[derive(Debug, Clone, Serialize)]
pub struct InputSummary {
    /// Workload's name or trace's path.
    pub name: String,
    /// `"workload"` or `"trace"`.
    pub kind: &'static str,
    /// The workload's parameters; `None` for a trace.
    pub parameters: Option<Parameters>,
    /// Origin, as key and value: command, recorder, cache model.
    pub provenance: BTreeMap<String, String>,
    /// The random generator's seed.
    pub seed: u64,
    /// Divisor of policies' sample counts: the paper's footprint over this one's.
    pub scale: f64,
    /// Divisor of policies' time constants: `scale` x threads / the paper's threads.
    pub time_scale: f64,
    /// Accesses that missed the last-level cache.
    pub accesses: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Number of threads.
    pub threads: usize,
    /// Bytes of the pages touched.
    pub footprint_bytes: Bytes,
    /// Accesses by time and address.
    pub heatmap: Heatmap,
    /// Cumulative share of accesses over pages, hottest first: points `(share of pages, share of accesses)`.
    pub page_cdf: Vec<(f64, f64)>,
    /// Misses of each allocation site or mapping, largest first, where known.
    pub regions: Vec<Region>,
}

/// One allocation site.
#[derive(Debug, Clone, Serialize)]
pub struct Region {
    /// Name of the allocation site.
    pub name: String,
    /// Bytes allocated.
    pub bytes: Bytes,
    /// Misses.
    pub accesses: u64,
}

/// Accesses counted on a grid.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Heatmap {
    /// Number of columns, of equally many accesses each.
    pub columns: usize,
    /// Number of rows, of equally many pages each, in address order without unmapped gaps.
    pub rows: usize,
    /// Accesses that a column spans.
    pub accesses_per_column: u64,
    /// Pages that a row spans.
    pub pages_per_row: f64,
    /// First address of each row.
    pub addresses: Vec<u64>,
    /// Accesses in each cell, row by row.
    pub counts: Vec<u32>,
    /// Content of the rows, from the lowest address up: neighbouring pages of one object each. Empty where
    /// that is not known.
    pub objects: Vec<Held>,
}

/// Neighbouring pages that hold one mapping or one allocation site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Name of the mapping or the allocation site; empty where it is not known.
    pub name: String,
    /// Number of pages.
    pub pages: u64,
    /// Misses in them.
    pub accesses: u64,
}

/// Failed moves by the kernel's error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FailedMoves {
    /// ENOMEM: no room on the target.
    pub no_room: u64,
    /// EBUSY.
    pub busy: u64,
    /// ENOENT, EFAULT.
    pub gone: u64,
    /// EPERM, EACCES.
    pub denied: u64,
}

/// Costs of tiering by mechanism.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Charges {
    /// Program threads: taking samples, summed over threads.
    pub sampling: Nanos,
    /// Program threads: TLB shootdowns, summed over threads.
    pub shootdowns: Nanos,
    /// Program threads: hint faults, and write faults that drop a shadow copy, summed over threads.
    pub faulting: Nanos,
    /// Tiering thread: reading samples from the ring, and registers of profiling devices.
    pub draining: Nanos,
    /// Tiering thread: tracker and policy.
    pub tracking: Nanos,
    /// Tiering thread, or the program's where it does the work itself: page-table scans.
    pub scanning: Nanos,
    /// As scanning: making pages fault at their next access.
    pub arming: Nanos,
    /// As scanning: moving pages.
    pub moving: Nanos,
    /// Faults on pages of a compressed tier, and the kernel's compressing of others for their room, summed
    /// over the program's threads and kswapd.
    pub swapping: Nanos,
    /// Tiering thread: reclaim's search for pages.
    pub reclaiming: Nanos,
}

/// Modelled time by what it went into. The parts add up to the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TimeParts {
    /// The program's instructions and its waits for memory.
    pub program: Nanos,
    /// Samples and hint faults.
    pub sampling: Nanos,
    /// Moved pages: work and interrupts in the program's threads, waits for bandwidth and locks.
    pub moving: Nanos,
    /// The tiering system's own processor time, as far as the program waited for it.
    pub deciding: Nanos,
}

impl TimeParts {
    /// Divides `whole`, of which tiering took so much by [`isotherm_machine::Cause`].
    pub(crate) fn new(whole: Nanos, taken: [Nanos; 3]) -> Self {
        let [sampling, moving, deciding] = taken;
        Self { program: whole - sampling - moving - deciding, sampling, moving, deciding }
    }

    pub(crate) fn taken(&self) -> [Nanos; 3] {
        [self.sampling, self.moving, self.deciding]
    }

    /// Returns the sum of the parts.
    pub fn whole(&self) -> Nanos {
        self.program + self.sampling + self.moving + self.deciding
    }
}

impl std::ops::Sub for TimeParts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            program: self.program - before.program,
            sampling: self.sampling - before.sampling,
            moving: self.moving - before.moving,
            deciding: self.deciding - before.deciding,
        }
    }
}

/// One policy at one size of the fast tier.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunResult {
    /// Name of the policy or bound.
    pub policy: String,
    /// Its scaled parameters.
    pub parameters: Parameters,
    /// The workload's name, if the input is one.
    pub workload: Option<String>,
    /// The trace's path, if the input is one.
    pub trace: Option<String>,
    /// The machine profile's name.
    pub machine: String,
    /// The random generator's seed.
    pub seed: u64,
    /// See [`InputSummary::scale`].
    pub scale: f64,
    /// See [`InputSummary::time_scale`].
    pub time_scale: f64,
    /// Isotherm's version.
    pub version: String,
    /// The run's page size.
    pub page_size: PageSize,
    /// Bytes of the pages touched.
    pub footprint_bytes: Bytes,
    /// Size of the fast tier.
    pub fast_bytes: Bytes,
    /// The size as asked for: `1:8`, `25%`, `64M`.
    pub fast: String,
    /// Accesses replayed.
    pub accesses: u64,
    /// Share of accesses that the fast tier served.
    pub hit_ratio: f64,
    /// The same over the last quarter of the run.
    pub final_hit_ratio: f64,
    /// Share of loads that the fast tier served: what the papers' PMU events count.
    pub load_hit_ratio: f64,
    /// The same over the last quarter of the run.
    pub final_load_hit_ratio: f64,
    /// Hit ratio of the interval oracle: the best placement of each interval.
    pub oracle_hit_ratio: f64,
    /// The same over the last quarter of the run.
    pub oracle_final_hit_ratio: f64,
    /// Load hit ratio of an interval oracle that places pages by their loads.
    pub oracle_load_hit_ratio: f64,
    /// The same over the last quarter of the run.
    pub oracle_final_load_hit_ratio: f64,
    /// Hit ratio of MIN with bypass.
    pub belady_hit_ratio: f64,
    /// Whether the policy beats the interval oracle, as it may where misses come in bursts.
    pub beats_oracle: bool,
    /// Modelled time over that with all memory fast.
    pub slowdown: f64,
    /// Modelled time.
    pub modelled_ns: Nanos,
    /// The same with all memory fast.
    pub all_fast_ns: Nanos,
    /// The modelled time by what it went into.
    pub parts: TimeParts,
    /// Time for which retirement stalled on each tier's misses, summed over threads.
    pub stall_ns: Vec<Nanos>,
    /// Accesses that each tier served.
    pub tier_accesses: Vec<u64>,
    /// Bytes read and written on each tier by page copies and program.
    pub tier_bytes: Vec<Bytes>,
    /// Pages moved to a faster tier.
    pub promotions: u64,
    /// Pages moved to a slower tier, by the policy or by reclaim.
    pub demotions: u64,
    /// Moves that failed.
    pub failed_moves: FailedMoves,
    /// Bytes copied between tiers.
    pub bytes_moved: Bytes,
    /// Largest memory of shadow copies at any time.
    pub shadow_bytes: Bytes,
    /// Faults on pages of a compressed tier.
    pub swap_ins: u64,
    /// Largest memory that the pages of a compressed tier took.
    pub stored_bytes: Bytes,
    /// Hint faults that the program took.
    pub hint_faults: u64,
    /// Samples that reached the policy.
    pub samples: u64,
    /// Samples lost to a full ring.
    pub samples_lost: u64,
    /// Samples not taken because the kernel had throttled their event.
    pub samples_throttled: u64,
    /// Accesses whose page was in no TLB.
    pub page_walks: u64,
    /// Page walks that read a page table from memory.
    pub page_walk_reads: u64,
    /// The policy's own memory.
    pub metadata_bytes: Bytes,
    /// CPU time of the tiering thread.
    pub tiering_cpu_ns: Nanos,
    /// Costs of tiering by mechanism.
    pub charges: Charges,
    /// Duration of the simulation in seconds. The only field that differs between two equal runs.
    pub wall_s: f64,
    /// The run over time.
    pub timeline: Vec<Interval>,
    /// Share of the pages of each cell of the input's [`Heatmap`] that were fast, in 255ths, at the end of
    /// its time: in the last round of several. Empty for a bound that keeps no page table.
    #[serde(skip)]
    pub fast_cells: Vec<u8>,
    /// Tier of each page of the stream at the end, [`UNMAPPED`] for one that is not mapped. Empty for a
    /// bound.
    #[serde(skip)]
    pub page_tiers: Vec<u8>,
    /// The run as one of many rounds; `None` for a single replay. The fields above tell of the rounds that
    /// were simulated.
    pub long_run: Option<LongRun>,
}

/// A run of several rounds over the input.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LongRun {
    /// Rounds asked for.
    pub rounds: u64,
    /// The first of them, which were simulated.
    pub simulated: u64,
    /// Whether rounds no longer changed.
    pub settled: bool,
    /// The policy's slowest control loop in force; 0 without one.
    pub control_loop_ns: Nanos,
    /// Number of last rounds that [`Self::round_ns`] and others are means of.
    #[serde(skip)]
    pub averaged: u64,
    /// Time of a round in the long run: the mean of the last that were simulated.
    pub round_ns: Nanos,
    /// The same over that of a round with all memory fast.
    pub slowdown: f64,
    /// Share of accesses that the fast tier serves in the long run.
    pub hit_ratio: f64,
    /// Time of all rounds asked for; those not simulated take `round_ns`.
    pub modelled_ns: Nanos,
    /// The same with all memory fast.
    pub all_fast_ns: Nanos,
    /// The time of all rounds asked for by what it goes into.
    pub parts: TimeParts,
    /// The same under first-touch.
    pub first_touch_ns: Nanos,
    /// Length of a run from which on the policy is ahead of first-touch; `None` for never.
    pub pays_back_ns: Option<Nanos>,
    /// The rounds that were simulated.
    pub each: Vec<Round>,
}

/// One round of a run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Round {
    /// Its modelled time.
    pub modelled_ns: Nanos,
    /// The same over that of a round with all memory fast.
    pub slowdown: f64,
    /// Share of its accesses that the fast tier served.
    pub hit_ratio: f64,
    /// Pages promoted in it.
    pub promotions: u64,
    /// Pages demoted in it.
    pub demotions: u64,
    /// Its time by what it went into.
    #[serde(skip)]
    pub parts: TimeParts,
    /// Its accesses.
    #[serde(skip)]
    pub accesses: u64,
    /// Its loads.
    #[serde(skip)]
    pub loads: u64,
    /// Its loads that the fast tier served.
    #[serde(skip)]
    pub load_hits: u64,
    /// Bytes read and written on the last tier in it, by page copies and program.
    #[serde(skip)]
    pub slow_bytes: Bytes,
}

/// One interval of a run: a fixed number of accesses.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Interval {
    /// Modelled time at its end.
    pub end_ns: Nanos,
    /// Accesses in it.
    pub accesses: u64,
    /// Accesses that the fast tier served.
    pub hits: u64,
    /// Loads in it.
    pub loads: u64,
    /// Loads that the fast tier served.
    pub load_hits: u64,
    /// Hits of the interval oracle in it.
    pub oracle_hits: u64,
    /// Pages promoted in it.
    pub promotions: u64,
    /// Pages demoted in it.
    pub demotions: u64,
    /// Samples that reached the policy in it.
    pub samples: u64,
    /// Gauges of the policy at its end, such as `hot-threshold`.
    pub gauges: BTreeMap<&'static str, f64>,
}

impl Interval {
    /// Merges neighbours: adds counts, keeps times and gauges at the end.
    pub fn merged(neighbours: &[Self]) -> Self {
        let sum = |part: fn(&Self) -> u64| neighbours.iter().map(part).sum();
        let last = neighbours.last();
        Self {
            end_ns: last.map_or(Nanos(0), |interval| interval.end_ns),
            accesses: sum(|interval| interval.accesses),
            hits: sum(|interval| interval.hits),
            loads: sum(|interval| interval.loads),
            load_hits: sum(|interval| interval.load_hits),
            oracle_hits: sum(|interval| interval.oracle_hits),
            promotions: sum(|interval| interval.promotions),
            demotions: sum(|interval| interval.demotions),
            samples: sum(|interval| interval.samples),
            gauges: last.map(|interval| interval.gauges.clone()).unwrap_or_default(),
        }
    }
}
