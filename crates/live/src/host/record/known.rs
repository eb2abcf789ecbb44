//! Estimates of a run, and what is missing where they do not suffice for a statement.

use isotherm_core::live_result::{Estimate, Intervals, Missing, Moment};
use isotherm_core::{Nanos, PageSize, Signal};

use super::Recorder;
use crate::host::evidence::{Block, estimate};
use crate::host::feed::Feed;
use crate::host::options::Options;
use crate::host::tiered_memory::TieredMemory;

/// Half of the widest interval with which a hit ratio is a statement.
const WIDEST: f64 = 0.1;
/// Half of the interval that a longer run aims at.
const WANTED: f64 = 0.08;
/// The largest overhead that is proposed.
const MOST_OVERHEAD: f64 = 0.5;
/// Samples per page in use below which larger pages help.
const ENOUGH_PER_PAGE: f64 = 2.0;

/// Figures of a run; those that too little supports are `None`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) hit_ratio: Option<Estimate>,
    pub(super) final_hit_ratio: Option<Estimate>,
    pub(super) slowdown: Option<Estimate>,
    pub(crate) missing: Option<Missing>,
}

impl Known {
    pub(super) fn intervals(&self) -> Intervals {
        let bounds = |estimate: Option<Estimate>| estimate.map(Estimate::bounds);
        Intervals {
            hit_ratio: bounds(self.hit_ratio),
            final_hit_ratio: bounds(self.final_hit_ratio),
            slowdown_at_most: bounds(self.slowdown),
        }
    }
}

impl Recorder {
    /// Returns what is known by `now`.
    pub(in crate::host) fn known(
        &self,
        memory: &TieredMemory,
        options: &Options,
        feed: &Feed,
        now: Nanos,
    ) -> Known {
        let latencies: Vec<f64> = options.tiers.iter().map(|tier| tier.latency.0.max(1) as f64).collect();
        let slowest = latencies.iter().copied().fold(latencies[0], f64::max);
        let fastest = latencies.iter().copied().fold(latencies[0], f64::min);
        let range = (slowest - fastest).max(f64::MIN_POSITIVE);
        let waits: Vec<f64> = latencies.iter().map(|latency| (latency - fastest) / range).collect();
        let fast: Vec<f64> = (0..latencies.len()).map(|tier| f64::from(u8::from(tier == 0))).collect();
        let mean = |values: &[f64], from| match feed.measured {
            true => counted(&self.timeline, values, from),
            false => self.tally.evidence.mean(values, (from, now), memory),
        };
        let late = Nanos(now.0 / 2);
        let all = mean(&fast, Nanos(0));
        let missing = missing(all, self, memory, options, feed, now);
        let enough = |estimate: Estimate| half(estimate) <= WIDEST;
        let stated =
            |estimate: Option<Estimate>| estimate.filter(|&known| enough(known) && missing.is_none());
        let slowdown = mean(&waits, late).filter(|&waits| enough(waits) && missing.is_none());
        Known {
            hit_ratio: stated(all),
            final_hit_ratio: stated(mean(&fast, late)),
            slowdown: slowdown.map(|waits| waits.map(|wait| (fastest + range * wait) / latencies[0])),
            missing,
        }
    }
}

fn half(estimate: Estimate) -> f64 {
    (estimate.high - estimate.low) / 2.0
}

/// Estimates a mean of the tiers' values from what the hardware counted between moments.
fn counted(timeline: &[Moment], values: &[f64], from: Nanos) -> Option<Estimate> {
    let first = timeline.iter().position(|moment| moment.time_ns >= from)?.saturating_sub(1);
    let block = |pair: &[Moment]| {
        let counted =
            pair[0].hits.iter().zip(&pair[1].hits).map(|(then, now)| now.saturating_sub(*then) as f64);
        counted.zip(values).fold(Block::default(), |sum, (hits, value)| Block {
            values: sum.values + hits * value,
            accesses: sum.accesses + hits,
        })
    };
    let blocks: Vec<Block> = timeline[first..].windows(2).map(block).collect();
    let accesses: f64 = blocks.iter().map(|block| block.accesses).sum();
    (accesses > 0.0).then(|| estimate(&blocks, 0.0, accesses))
}

/// Returns what a statement lacks, and how a run would have it: errors fall with the root of the samples.
fn missing(
    hits: Option<Estimate>,
    recorder: &Recorder,
    memory: &TieredMemory,
    options: &Options,
    feed: &Feed,
    now: Nanos,
) -> Option<Missing> {
    if hits.is_some_and(|hits| half(hits) <= WIDEST) {
        return None;
    }
    let samples = recorder.tally.samples;
    let per_page = samples as f64 / memory.most.0.max(1) as f64;
    let more = hits.map(|hits| (half(hits) / WANTED).powi(2));
    let faults = feed.sources.iter().any(|source| source.offers().has(Signal::HintFaults));
    let budgeted = faults && !feed.is_bounded();
    let sees_all = |source: &str| ["pmu", "virtual-pmu"].contains(&source);
    Some(Missing {
        samples,
        per_page,
        hit_ratio: hits.map(Estimate::bounds),
        run_ns: more.map(|more| Nanos((now.0 as f64 * more) as u64)),
        overhead: more
            .map(|more| more * options.overhead)
            .filter(|&share| budgeted && share <= MOST_OVERHEAD),
        huge_pages: memory.page_size == PageSize::Base && per_page < ENOUGH_PER_PAGE,
        source: (!feed.sources.iter().any(|source| sees_all(source.name()))).then_some("pmu"),
    })
}
