//! Feeds accesses from the sources to the engine: drains, numbers, counts and batches them.

mod queues;

use std::hint::black_box;
use std::ops::Range;

use isotherm_core::live_result::CounterOrigin;
use isotherm_core::{
    Counters, DeviceReading, HintFault, Nanos, Operation, PageId, Sample, SampleBatch, Sampling,
    SamplingRate, Signal, TierCounters, TierId,
};
use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{
    Access, AccessSource, Cause, DeviceAnswer, Prices, Race, ScannedMapping, Untouched,
};

use super::options::Options;
use super::signals::counter_origin;
use super::tally::Tally;
use super::tiered_memory::TieredMemory;
use queues::Queues;

/// Divisor of the last sampling rate while sampling is off: samples then feed the hit counters only.
const SENTINEL_SHARE: u64 = 16;
/// Rate in that case for a policy that samples by period, which has no rate.
const SENTINEL_FREQUENCY: u64 = 100;
/// Accesses whose pages are looked up together: few enough for the first-level cache.
const BLOCK: usize = 128;
const WARNINGS: usize = 20;
/// Most samples that a policy gets for one touch in a window.
const MOST_COPIES: u64 = 64;

pub(crate) struct Feed {
    pub(crate) sources: Vec<Box<dyn AccessSource>>,
    /// The policy's request, with its last rate that was not off.
    sampling: Option<Sampling>,
    /// The last request to the sources.
    asked: Option<Sampling>,
    /// Whether sources watch nothing, whatever the request.
    pub(crate) suspended: bool,
    /// Whether samples reach the policy, not only the hit counters.
    delivering: bool,
    waiting: Vec<Access>,
    /// How many of them the engine has taken.
    taken: usize,
    /// Windows of the sources that have closed.
    closed: Vec<Untouched>,
    races: Vec<Race>,
    mappings: Vec<ScannedMapping>,
    /// Pages of the current block; `None` for memory that is not tiered.
    pages: Vec<Option<PageId>>,
    lost: u64,
    /// Whether accesses carry the time of a source's own clock.
    own_clock: bool,
    pub(crate) counters: Counters,
    /// Whether the hardware counts the tiers' hits; otherwise samples are summed.
    pub(crate) measured: bool,
    pub(crate) origin: CounterOrigin,
    /// Model of the tiers' queues, if nothing counts them.
    queues: Option<Queues>,
    pub(crate) warnings: Vec<String>,
}

impl Feed {
    pub(crate) fn new(sources: Vec<Box<dyn AccessSource>>, options: &Options) -> Self {
        let origin = counter_origin(&sources, options.shadow, options.model_counters);
        let measured = !options.shadow && sources.iter().any(|source| source.offers().has(Signal::TierHits));
        Self {
            own_clock: sources.iter().any(|source| source.clock().is_some()),
            sources,
            sampling: None,
            asked: None,
            suspended: false,
            delivering: true,
            waiting: Vec::new(),
            taken: 0,
            closed: Vec::new(),
            races: Vec::new(),
            mappings: Vec::new(),
            pages: Vec::with_capacity(BLOCK),
            lost: 0,
            counters: Counters {
                tiers: vec![TierCounters::default(); options.tiers.len()],
                ..Counters::default()
            },
            measured,
            origin,
            queues: Queues::new(origin, &options.tiers),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn each(&mut self, mut call: impl FnMut(&mut dyn AccessSource) -> Result<(), LinuxError>) {
        let mut warnings = Vec::new();
        for source in &mut self.sources {
            match call(source.as_mut()) {
                Ok(()) | Err(LinuxError::Ended(_)) => {}
                Err(error) => warnings.push(format!("{}: {error}", source.name())),
            }
        }
        warnings.into_iter().for_each(|warning| self.warning(warning));
    }

    /// Keeps a warning, each text once.
    pub(crate) fn warning(&mut self, text: String) {
        if self.warnings.len() < WARNINGS && !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    pub(crate) fn hidden(&self, process: Pid) -> Vec<Range<u64>> {
        self.sources.iter().flat_map(|source| source.hidden(process)).collect()
    }

    pub(crate) fn request(&mut self, request: Sampling) {
        let last = self.sampling.map_or(request.rate, |before| before.rate);
        self.delivering = request.rate != SamplingRate::Off;
        let rate = match request.rate {
            SamplingRate::Off if self.measured => SamplingRate::Off,
            SamplingRate::Off => SamplingRate::Frequency(match last {
                SamplingRate::Frequency(before) => (before / SENTINEL_SHARE).max(1),
                _ => SENTINEL_FREQUENCY,
            }),
            rate => rate,
        };
        self.asked = Some(Sampling { rate, ..request });
        self.ask();
        self.sampling = Some(Sampling { rate: if self.delivering { rate } else { last }, ..request });
    }

    /// Makes the sources watch nothing, or resumes the last request.
    pub(crate) fn suspend(&mut self, suspended: bool) {
        self.suspended = suspended;
        self.ask();
    }

    fn ask(&mut self) {
        let Some(asked) = self.asked else { return };
        let rate = if self.suspended { SamplingRate::Off } else { asked.rate };
        self.each(|source| source.request(&Sampling { rate, ..asked }));
    }

    /// Returns the number of samples and the time that fill a batch.
    pub(crate) fn batch(&self) -> (usize, Nanos) {
        self.sampling.map_or((1, Nanos::SECOND), |sampling| (sampling.batch.max(1), sampling.tick))
    }

    /// Returns whether the policy has a budget of its own, beside the user's.
    pub(crate) fn is_bounded(&self) -> bool {
        self.sampling.is_some_and(|sampling| sampling.budget.is_some())
    }

    pub(crate) fn clock(&self) -> Option<Nanos> {
        self.sources.iter().find_map(|source| source.clock())
    }

    /// Returns what moves cost, where the machine is a modelled one.
    pub(crate) fn prices(&self) -> Option<Prices> {
        self.sources.iter().find_map(|source| source.prices())
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.len() - self.taken >= self.batch().0
    }

    pub(crate) fn drain(&mut self) -> usize {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..std::mem::take(&mut self.taken));
        let before = waiting.len();
        let mut closed = std::mem::take(&mut self.closed);
        let mut races = std::mem::take(&mut self.races);
        let mut mappings = std::mem::take(&mut self.mappings);
        self.each(|source| {
            source.drain(&mut waiting)?;
            source.untouched(&mut closed);
            source.races(&mut races);
            source.mappings(&mut mappings);
            Ok(())
        });
        (self.closed, self.races, self.mappings) = (closed, races, mappings);
        let told: Vec<_> = self.sources.iter_mut().flat_map(|source| source.warnings()).collect();
        told.into_iter().for_each(|warning| self.warning(warning));
        self.waiting = waiting;
        self.waiting.len() - before
    }

    /// Moves waiting accesses into the batch until it holds `full`.
    pub(crate) fn fill(
        &mut self,
        batch: &mut SampleBatch,
        full: usize,
        memory: &mut TieredMemory,
        tally: &mut Tally,
    ) {
        self.closed.drain(..).for_each(|window| tally.evidence.untouched(&window, memory));
        self.races.drain(..).for_each(|race| tally.evidence.raced(&race));
        if !self.mappings.is_empty() {
            tally.evidence.scanned(&std::mem::take(&mut self.mappings), memory);
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut pages = std::mem::take(&mut self.pages);
        loop {
            let room = full.saturating_sub(batch.samples.len() + batch.faults.len());
            let rest = &waiting[self.taken..];
            let block = &rest[..rest.len().min(room).min(BLOCK)];
            if block.is_empty() {
                break;
            }
            pages.clear();
            memory.numbers.find_all(block, &mut pages);
            // Nothing depends on these reads, so the cache misses overlap: a prefetch without `unsafe`.
            let peek = |page| memory.residency.peek(page) ^ tally.heat.of(page);
            black_box(pages.iter().flatten().fold(0, |sum, &page| sum ^ peek(page)));
            for (access, &page) in block.iter().zip(&pages) {
                match page {
                    Some(page) => self.take(access, page, batch, memory, tally),
                    None => tally.foreign += 1,
                }
            }
            self.taken += block.len();
        }
        (self.waiting, self.pages) = (waiting, pages);
    }

    #[inline]
    fn take(
        &mut self,
        access: &Access,
        page: PageId,
        batch: &mut SampleBatch,
        memory: &mut TieredMemory,
        tally: &mut Tally,
    ) {
        let tier = memory.touch(page, access.tier);
        let tier = access.tier.filter(|_| !memory.shadow).unwrap_or(tier);
        let time = if self.own_clock { access.time } else { tally.since_start(access.time) };
        match access.cause {
            Cause::Armed { since_us } => {
                let latency = Nanos(u64::from(since_us) * 1000);
                memory.residency.set_armed(page, false);
                let operation = access.operation;
                batch.faults.push(HintFault { time, page, latency, tier, operation });
            }
            Cause::Sampled | Cause::Region { .. } | Cause::Touched { .. } => {
                let at = if self.own_clock { tally.now() } else { time };
                let accesses = tally.evidence.saw(at, page, tier, access, memory);
                tally.count(page, accesses.min(u64::from(u32::MAX)) as u32);
                if !self.measured {
                    self.count(tier.index(), access, accesses);
                }
                if self.delivering {
                    let windows = matches!(access.cause, Cause::Touched { .. });
                    // Policies count samples, which windows show once however often a page is accessed.
                    let (weight, times) = match access.weight {
                        weight if windows || weight == 1 => (1, accesses.min(MOST_COPIES) as usize),
                        weight => (weight, 1),
                    };
                    let (latency, operation) = (access.latency, access.operation);
                    let sample = Sample { time, page, weight, latency, exposed: 0, tier, operation };
                    batch.samples.extend(std::iter::repeat_n(sample, times));
                }
            }
        }
    }

    /// Counts the accesses that a sample stands for.
    fn count(&mut self, tier: usize, access: &Access, accesses: u64) {
        let counter = &mut self.counters.tiers[tier];
        match access.operation {
            Operation::Load => counter.load_misses += accesses,
            Operation::Store => counter.store_misses += accesses,
        }
        if let Some(queues) = &self.queues {
            queues.add(tier, access, accesses, counter);
        }
    }

    /// Reads the profiling devices into the batch. Hot addresses outside of the programs' memory are dropped.
    fn read_devices(&mut self, batch: &mut SampleBatch, memory: &TieredMemory) {
        let mut answers: Vec<DeviceAnswer> = Vec::new();
        self.each(|source| source.read_devices(&mut answers));
        batch.devices.clear();
        batch.devices.extend(answers.into_iter().map(|answer| {
            let number = |&(process, address): &(Pid, u64)| memory.numbers.at(process, address);
            let hot: Vec<PageId> = answer.hot.iter().filter_map(number).collect();
            // Every device sits in front of slower memory, and splits two tiers.
            DeviceReading { tier: TierId::FAST.slower(), hot, again: answer.again, report: answer.report }
        }));
    }

    /// Ends a batch: adds the devices' reports, the losses since the last batch, and the counters.
    pub(crate) fn finish(&mut self, batch: &mut SampleBatch, memory: &TieredMemory, now: Nanos) {
        self.read_devices(batch, memory);
        let lost = self.sources.iter().map(|source| source.statistics().lost).sum::<u64>();
        batch.lost = lost.saturating_sub(self.lost);
        self.lost = lost;
        if self.measured {
            let mut counters = std::mem::take(&mut self.counters);
            self.each(|source| source.count(&mut counters));
            self.counters = counters;
        }
        if let Some(queues) = &mut self.queues {
            queues.close(now, &mut self.counters);
        }
        batch.counters.clone_from(&self.counters);
    }
}
