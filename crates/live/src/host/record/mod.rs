//! The record of a run: counts, timeline and summary.

mod hot_set;
mod known;
mod poisson_mixture;

use isotherm_core::live_result::{EngineUse, Moment, SourceUse, Summary, TierUse};
use isotherm_core::{Bytes, Counters, Gauge, Nanos, TierId};
use isotherm_linux::clock;
use isotherm_linux::source::AccessSource;

use super::feed::Feed;
use super::options::Options;
use super::tally::Tally;
use super::tiered_memory::TieredMemory;
pub(super) use hot_set::ranges;
pub(crate) use known::Known;

/// Maximum number of moments on the timeline: when it is full, every second one is dropped.
const POINTS: usize = 600;
const NAMES: usize = 100;
/// Samples per page in use that tell hot pages from others: of pages with this mean, 13 % are never sampled.
const SAMPLES_FOR_A_PAGE: u64 = 2;
const DISTANCE: Nanos = Nanos(Nanos::MILLISECOND.0 * 200);

pub(super) struct Recorder {
    pub(super) tally: Tally,
    pub(super) processes: u64,
    started_unix_s: u64,
    names: Vec<String>,
    cpu: fn() -> Nanos,
    cpu_at_start: Nanos,
    metadata: Bytes,
    timeline: Vec<Moment>,
    distance: Nanos,
}

impl Recorder {
    /// Starts the run's clock. `inside` says that the engine is a thread of the program.
    pub(super) fn new(inside: bool) -> Self {
        let cpu = if inside { clock::thread_cpu } else { clock::process_cpu };
        Self {
            tally: Tally::new(),
            processes: 0,
            started_unix_s: clock::unix_seconds(),
            names: Vec::new(),
            cpu,
            cpu_at_start: cpu(),
            metadata: Bytes(0),
            timeline: Vec::new(),
            distance: DISTANCE,
        }
    }

    /// Returns the engine's processor time since the start.
    pub(super) fn cpu(&self) -> Nanos {
        (self.cpu)() - self.cpu_at_start
    }

    pub(super) fn now(&self) -> Nanos {
        self.tally.now()
    }

    pub(super) fn named(&mut self, name: String) {
        if self.names.len() < NAMES && !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    /// Records the policy's memory, and its gauges if the next moment is due.
    pub(super) fn note(
        &mut self,
        metadata: Bytes,
        memory: &TieredMemory,
        counters: &Counters,
        fill: impl FnOnce(&mut Vec<Gauge>),
    ) {
        self.metadata = self.metadata.max(metadata);
        let now = self.now();
        let due = self.timeline.last().map_or(Nanos(0), |last| last.time_ns + self.distance);
        if now < due {
            return;
        }
        let mut gauges = Vec::new();
        fill(&mut gauges);
        self.push(now, memory, counters, gauges.iter().map(|gauge| (gauge.name, gauge.value)).collect());
    }

    fn push(
        &mut self,
        now: Nanos,
        memory: &TieredMemory,
        counters: &Counters,
        gauges: Vec<(&'static str, f64)>,
    ) {
        if self.timeline.len() == POINTS {
            let mut index = 0;
            self.timeline.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.distance += self.distance;
        }
        self.timeline.push(Moment {
            time_ns: now,
            resident_bytes: memory.tiers().map(|tier| memory.bytes_of(memory.residency.used(tier))).collect(),
            hits: hits(counters),
            traffic: self.tally.traffic,
            samples: self.tally.samples,
            gauges,
        });
    }

    pub(super) fn summary(&mut self, memory: &TieredMemory, options: &Options, feed: &Feed) -> Summary {
        let (counters, warnings) = (&feed.counters, &feed.warnings[..]);
        let latencies: Vec<Nanos> = options.tiers.iter().map(|tier| tier.latency).collect();
        let latencies = &latencies[..];
        let now = self.now();
        self.push(now, memory, counters, Vec::new());
        let sources: Vec<SourceUse> = feed.sources.iter().map(|source| source_use(source.as_ref())).collect();
        let known = self.known(memory, options, feed, now);
        let hits = if feed.measured {
            hits(counters)
        } else {
            self.tally.evidence.hits(latencies.len(), now, memory)
        };
        let cpu = self.cpu();
        let agents = sources.iter().map(|source| source.agent_cpu_ns).sum::<Nanos>();
        let stall = |tier: TierId| counters.tiers.get(tier.index()).map(|counted| counted.stall);
        let tier = |((tier, &hits), &latency_ns): ((TierId, &u64), &Nanos)| TierUse {
            nodes: options.nodes.get(tier.index()).cloned().unwrap_or_default(),
            stall_ns: stall(tier).unwrap_or_default(),
            latency_ns,
            capacity_bytes: memory.bytes_of(memory.residency.capacity(tier)),
            resident_bytes: memory.bytes_of(memory.residency.used(tier)),
            hits,
        };
        let (swapped_bytes, zswapped_bytes) = memory.swapped();
        Summary {
            swapped_bytes,
            zswapped_bytes,
            started_unix_s: self.started_unix_s,
            process_names: self.names.clone(),
            hits_measured: feed.measured,
            counters: feed.origin,
            cautions: cautions(self.tally.samples, memory.most.0, feed.is_bounded()),
            intervals: known.intervals(),
            duration_ns: now,
            processes: self.processes,
            shadow: memory.shadow,
            page_size: memory.page_size,
            footprint_bytes: memory.bytes_of(memory.most),
            tiers: memory.tiers().zip(&hits).zip(latencies).map(tier).collect(),
            hit_ratio: known.hit_ratio.map(|estimate| estimate.value),
            final_hit_ratio: known.final_hit_ratio.map(|estimate| estimate.value),
            slowdown_at_most: known.slowdown.map(|estimate| estimate.value),
            missing: known.missing,
            traffic: self.tally.traffic,
            sources,
            samples_foreign: self.tally.foreign,
            engine: EngineUse {
                cpu_ns: cpu,
                cpu_share: (cpu + agents).0 as f64 / now.0.max(1) as f64,
                metadata_bytes: self.metadata,
                host_bytes: Bytes(memory.bytes() as u64 + self.tally.bytes().0),
            },
            hot_set: hot_set::hot_set(&self.tally, memory, now),
            timeline: self.timeline.clone(),
            warnings: warnings.to_vec(),
        }
    }
}

/// Returns the figures that so many samples of so many pages in use do not support; `bounded`: whether the
/// policy has a budget of its own.
fn cautions(samples: u64, pages: u64, bounded: bool) -> Vec<String> {
    let mut cautions = Vec::new();
    if samples > 0 && samples < SAMPLES_FOR_A_PAGE * pages {
        let also = if bounded { "" } else { ", or raise --overhead" };
        cautions.push(format!(
            "{:.2} samples for each page in use: below {SAMPLES_FOR_A_PAGE}, hot pages are missed; run \
             longer{also}",
            samples as f64 / pages as f64
        ));
    }
    cautions
}

fn hits(counters: &Counters) -> Vec<u64> {
    counters.tiers.iter().map(|tier| tier.load_misses + tier.store_misses).collect()
}

fn left_out(left_out: u64, observable: u64) -> Option<f64> {
    let all = left_out + observable;
    (all > 0).then(|| left_out as f64 / all as f64)
}

fn source_use(source: &dyn AccessSource) -> SourceUse {
    let statistics = source.statistics();
    SourceUse {
        name: source.name(),
        delivered: statistics.delivered,
        lost: statistics.lost,
        throttled: statistics.throttled,
        foreign: statistics.foreign,
        agent_cpu_ns: statistics.agent_cpu,
        program_ns: statistics.program_time,
        memory_bytes: statistics.memory,
        left_out_share: left_out(statistics.left_out.0, statistics.observable.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_samples_are_reported_with_the_bound_that_they_miss() {
        assert!(cautions(0, 100, false).is_empty(), "a run without samples is reported elsewhere");
        assert!(cautions(400, 200, false).is_empty());
        let few = cautions(100, 1000, false);
        assert!(few[0].starts_with("0.10 samples for each page in use"), "{few:?}");
        assert_eq!(cautions(1999, 1000, true).len(), 1);
    }
}
