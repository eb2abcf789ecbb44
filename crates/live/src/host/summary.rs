//! Defines what is reported of a live run.

use isotherm_core::{Bytes, Counters, Gauge, MoveStatus, Nanos, PageId, PageSize, TierId};
use serde::Serialize;

use super::feed::Feed;
use super::heat::{Heat, HotSet};
use super::memory::Memory;
use super::{CounterOrigin, Options};
use isotherm_linux::clock;
use isotherm_linux::source::AccessSource;

/// Points of the timeline that are kept: when there are more, every second one goes.
const POINTS: usize = 600;
/// Names of processes that are kept.
const NAMES: usize = 100;
/// Samples from which on a share of them is known to 5 % at 95 % confidence: 1 / sqrt(n), the normal approximation at its widest.
const SAMPLES_FOR_A_SHARE: u64 = 400;
/// Samples a page in use from which on hot pages are told from others: of pages with this mean, 13 % are never seen.
const SAMPLES_FOR_A_PAGE: u64 = 2;
/// The first distance between two points.
const DISTANCE: Nanos = Nanos(Nanos::MILLISECOND.0 * 200);

/// Moves that the kernel, or a full tier, refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The target tier was full, or at its limit (ENOMEM).
    pub no_room: u64,
    /// Pinned or under I/O, after the retries (EBUSY).
    pub busy: u64,
    /// Not mapped any more (ENOENT, EFAULT).
    pub gone: u64,
    /// Not allowed (EPERM, EACCES).
    pub denied: u64,
}

/// What moved, or would have moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Pages moved to a faster tier.
    pub promotions: u64,
    /// Pages moved to a slower tier by name.
    pub demotions: u64,
    /// Pages that the kernel's LRU took off a tier.
    pub reclaimed: u64,
    /// Bytes of promotions and demotions.
    pub bytes_moved: Bytes,
    /// Moves refused.
    pub refused: Refused,
}

/// One tier at the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierUse {
    /// Its NUMA nodes; none where tiers are shadows.
    pub nodes: Vec<u32>,
    /// Its idle latency.
    pub latency_ns: Nanos,
    /// What the programs could use of it.
    pub capacity_bytes: Bytes,
    /// What they use of it.
    pub resident_bytes: Bytes,
    /// Accesses that it served, as counted by the hardware or summed over samples ([`Summary::hits_measured`]).
    pub hits: u64,
    /// Time that the programs stood still for it, as counted by the hardware, summed over threads; 0 where it does not count.
    pub stall_ns: Nanos,
}

/// One access source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceUse {
    /// Its name, as in `--source`.
    pub name: &'static str,
    /// Accesses delivered.
    pub delivered: u64,
    /// Accesses lost because a buffer was full.
    pub lost: u64,
    /// How often the kernel throttled it.
    pub throttled: u64,
    /// Accesses outside of followed memory, or that could not be decoded.
    pub foreign: u64,
    /// Processor time of its agents inside of programs.
    pub agent_cpu_ns: Nanos,
    /// Time that the programs' threads lost to it, as far as it knows.
    pub program_ns: Nanos,
    /// Its memory.
    pub memory_bytes: Bytes,
}

/// What the engine itself took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EngineUse {
    /// Processor time of the engine, agents apart.
    pub cpu_ns: Nanos,
    /// The same as a share of one processor, agents included.
    pub cpu_share: f64,
    /// The policy's and its trackers' memory, at its largest.
    pub metadata_bytes: Bytes,
    /// Memory for page numbers, residency and heat.
    pub host_bytes: Bytes,
}

/// A moment of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// Since the start.
    pub time_ns: Nanos,
    /// Bytes on each tier, fastest first.
    pub resident_bytes: Vec<Bytes>,
    /// Accesses sampled or counted on each tier since the start.
    pub hits: Vec<u64>,
    /// What moved since the start.
    pub traffic: Traffic,
    /// Samples delivered since the start.
    pub samples: u64,
    /// The policy's numbers, by name.
    pub gauges: Vec<(&'static str, f64)>,
}

/// What came of a live run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// When it began: seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took.
    pub duration_ns: Nanos,
    /// Names of the processes that were followed, each once, in the order of their appearance, at most a hundred.
    pub process_names: Vec<String>,
    /// Processes that were followed.
    pub processes: u64,
    /// Whether nothing moved.
    pub shadow: bool,
    /// The granularity of tracking.
    pub page_size: PageSize,
    /// The most memory that was mapped.
    pub footprint_bytes: Bytes,
    /// The tiers, fastest first.
    pub tiers: Vec<TierUse>,
    /// Whether the hardware counted the tiers' hits; otherwise they are summed over samples.
    pub hits_measured: bool,
    /// Where stall and occupancy counters, which some policies decide by, came from.
    pub counters: CounterOrigin,
    /// The fast tier's share of all accesses counted; `None` where none was.
    pub hit_ratio: Option<f64>,
    /// The same over the second half of the run.
    pub final_hit_ratio: Option<f64>,
    /// How much longer the programs take than with all memory fast, at most: as if they did nothing but wait for accesses of
    /// the run's second half, one after the other, at idle latencies. `None` where no access was counted.
    pub slowdown_at_most: Option<f64>,
    /// What moved.
    pub traffic: Traffic,
    /// The sources.
    pub sources: Vec<SourceUse>,
    /// Accesses outside of tiered memory.
    pub samples_foreign: u64,
    /// What the engine took.
    pub engine: EngineUse,
    /// Where the accesses went.
    pub hot_set: HotSet,
    /// The course of the run.
    pub timeline: Vec<Moment>,
    /// What the figures do not bear, since the samples are too few for it.
    pub cautions: Vec<String>,
    /// What went wrong, each once.
    pub warnings: Vec<String>,
}

/// Collects what a summary needs.
pub(crate) struct Recorder {
    start: Nanos,
    started_unix_s: u64,
    names: Vec<String>,
    /// Reads the engine's processor time.
    cpu: fn() -> Nanos,
    cpu_at_start: Nanos,
    pub(crate) processes: u64,
    foreign: u64,
    pub(crate) traffic: Traffic,
    metadata: Bytes,
    samples: u64,
    heat: Heat,
    timeline: Vec<Moment>,
    distance: Nanos,
}

impl Recorder {
    /// `inside` says that the engine is a thread of the program.
    pub(crate) fn new(inside: bool) -> Self {
        let cpu = if inside { clock::thread_cpu } else { clock::process_cpu };
        Self {
            start: clock::monotonic(),
            started_unix_s: clock::unix_seconds(),
            names: Vec::new(),
            cpu,
            cpu_at_start: cpu(),
            processes: 0,
            foreign: 0,
            traffic: Traffic::default(),
            metadata: Bytes(0),
            samples: 0,
            heat: Heat::default(),
            timeline: Vec::new(),
            distance: DISTANCE,
        }
    }

    /// The time of an access, on the run's clock.
    pub(crate) fn since_start(&self, monotonic: Nanos) -> Nanos {
        monotonic - self.start
    }

    /// The run's clock.
    pub(crate) fn now(&self) -> Nanos {
        clock::monotonic() - self.start
    }

    /// What [`Self::count`] will change, for a loop that only reads.
    #[inline]
    pub(crate) fn peek(&self, page: PageId) -> u32 {
        self.heat.peek(page)
    }

    /// Counts a sampled access by the page that it went to.
    #[inline]
    pub(crate) fn count(&mut self, page: PageId, weight: u32) {
        self.samples += 1;
        self.heat.add(page, weight);
    }

    /// Counts an access to memory that is not tiered.
    pub(crate) fn count_foreign(&mut self) {
        self.foreign += 1;
    }

    /// A process of this name is followed.
    pub(crate) fn named(&mut self, name: String) {
        if self.names.len() < NAMES && !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    pub(crate) fn moved(
        &mut self,
        from: Option<TierId>,
        to: TierId,
        status: MoveStatus,
        page_size: PageSize,
    ) {
        let traffic = &mut self.traffic;
        match status {
            MoveStatus::Moved => {
                let up = from.is_some_and(|from| from > to);
                *(if up { &mut traffic.promotions } else { &mut traffic.demotions }) += 1;
                traffic.bytes_moved += page_size.bytes();
            }
            MoveStatus::AlreadyThere => {}
            MoveStatus::NoRoom => traffic.refused.no_room += 1,
            MoveStatus::Busy => traffic.refused.busy += 1,
            MoveStatus::Gone => traffic.refused.gone += 1,
            MoveStatus::Denied => traffic.refused.denied += 1,
        }
    }

    /// Pages whose numbers mean other memory from now on.
    pub(crate) fn forget(&mut self, pages: std::ops::Range<u32>) {
        self.heat.forget(pages);
    }

    /// Lets the heat of long ago fade.
    pub(crate) fn age(&mut self, mapped: isotherm_core::Pages) {
        self.heat.age(mapped.0);
    }

    /// Takes what the engine's last step left.
    pub(crate) fn note(
        &mut self,
        metadata: Bytes,
        memory: &Memory,
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

    fn push(&mut self, now: Nanos, memory: &Memory, counters: &Counters, gauges: Vec<(&'static str, f64)>) {
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
            resident_bytes: memory.tiers().map(|tier| memory.bytes_on(tier)).collect(),
            hits: hits(counters),
            traffic: self.traffic,
            samples: self.samples,
            gauges,
        });
    }

    pub(crate) fn summary(&mut self, memory: &Memory, options: &Options, feed: &Feed) -> Summary {
        let (counters, sources, warnings) = (&feed.counters, &feed.sources[..], &feed.warnings[..]);
        let latencies: Vec<Nanos> = options.tiers.iter().map(|tier| tier.latency).collect();
        let latencies = &latencies[..];
        let now = self.now();
        self.push(now, memory, counters, Vec::new());
        let sources: Vec<SourceUse> = sources.iter().map(|source| source_use(source.as_ref())).collect();
        let hits = hits(counters);
        let halfway = self.timeline.iter().find(|moment| moment.time_ns.0 >= now.0 / 2);
        let before = halfway.map_or_else(|| vec![0; hits.len()], |moment| moment.hits.clone());
        let late: Vec<u64> = hits.iter().zip(&before).map(|(now, then)| now - then).collect();
        let cpu = (self.cpu)() - self.cpu_at_start;
        let agents = sources.iter().map(|source| source.agent_cpu_ns).sum::<Nanos>();
        let stall = |tier: TierId| counters.tiers.get(tier.index()).map(|counted| counted.stall);
        let tier = |((tier, &hits), &latency_ns): ((TierId, &u64), &Nanos)| TierUse {
            nodes: options.nodes.get(tier.index()).cloned().unwrap_or_default(),
            stall_ns: stall(tier).unwrap_or_default(),
            latency_ns,
            capacity_bytes: memory.capacity_bytes(tier),
            resident_bytes: memory.bytes_on(tier),
            hits,
        };
        Summary {
            started_unix_s: self.started_unix_s,
            process_names: self.names.clone(),
            hits_measured: feed.measured(),
            counters: feed.origin,
            cautions: cautions(self.samples, memory.most_mapped().0),
            duration_ns: now,
            processes: self.processes,
            shadow: memory.shadow(),
            page_size: memory.page_size(),
            footprint_bytes: memory.bytes_of(memory.most_mapped()),
            tiers: memory.tiers().zip(&hits).zip(latencies).map(tier).collect(),
            hit_ratio: ratio(&hits),
            final_hit_ratio: ratio(&late),
            slowdown_at_most: slowdown(&late, latencies).or_else(|| slowdown(&hits, latencies)),
            traffic: self.traffic,
            sources,
            samples_foreign: self.foreign,
            engine: EngineUse {
                cpu_ns: cpu,
                cpu_share: (cpu + agents).0 as f64 / now.0.max(1) as f64,
                metadata_bytes: self.metadata,
                host_bytes: Bytes((memory.bytes() + self.heat.bytes()) as u64),
            },
            hot_set: self.heat.hot_set(memory),
            timeline: self.timeline.clone(),
            warnings: warnings.to_vec(),
        }
    }
}

/// What so many samples of so many pages in use do not bear.
fn cautions(samples: u64, pages: u64) -> Vec<String> {
    let mut cautions = Vec::new();
    if samples > 0 && samples < SAMPLES_FOR_A_SHARE {
        let error = 100.0 / (samples as f64).sqrt();
        cautions.push(format!(
            "{samples} samples: shares of them are known to +-{error:.0} % only; {SAMPLES_FOR_A_SHARE} would tell +-5 %"
        ));
    }
    if samples > 0 && samples < SAMPLES_FOR_A_PAGE * pages {
        cautions.push(format!(
            "{:.2} samples for each page in use: below {SAMPLES_FOR_A_PAGE}, hot pages are missed; run longer, or raise --overhead",
            samples as f64 / pages as f64
        ));
    }
    cautions
}

/// The fast tier's share.
fn ratio(hits: &[u64]) -> Option<f64> {
    let all = hits.iter().sum::<u64>();
    (all > 0).then(|| hits[0] as f64 / all as f64)
}

/// The time of these accesses against that with all of them fast.
fn slowdown(hits: &[u64], latencies: &[Nanos]) -> Option<f64> {
    let time = |latency: &dyn Fn(usize) -> f64| {
        hits.iter().enumerate().map(|(tier, &hits)| hits as f64 * latency(tier)).sum::<f64>()
    };
    let fast = latencies.first()?.0 as f64;
    let all_fast = time(&|_| fast);
    (all_fast > 0.0).then(|| time(&|tier| latencies[tier].0 as f64) / all_fast)
}

fn hits(counters: &Counters) -> Vec<u64> {
    counters.tiers.iter().map(|tier| tier.load_misses + tier.store_misses).collect()
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_told_with_the_bound_that_they_miss() {
        assert!(cautions(0, 100).is_empty(), "that nothing was counted is said otherwise");
        assert!(cautions(400, 200).is_empty());
        let few = cautions(100, 1000);
        assert!(few[0].starts_with("100 samples: ") && few[0].contains("+-10 %"), "{few:?}");
        assert!(few[1].starts_with("0.10 samples for each page in use"), "{few:?}");
        assert_eq!(cautions(399, 100).len(), 1);
        assert_eq!(cautions(1999, 1000).len(), 1);
    }
}
