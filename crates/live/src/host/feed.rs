//! Defines how accesses come from the sources to the engine: drained, numbered, counted, batched.

use std::hint::black_box;
use std::ops::Range;

use isotherm_core::{
    Counters, DeviceReading, HintFault, Nanos, Operation, PageId, Sample, SampleBatch, Sampling,
    SamplingRate, Signal, TierCounters, TierId,
};

use super::memory::Memory;
use super::options::Options;
use super::queues::{CounterOrigin, Queues};
use super::summary::Recorder;
use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource, Cause, DeviceAnswer};

/// The share of the policy's last sampling rate that goes on, for the hit counters, while it has switched sampling off.
const SENTINEL_SHARE: u64 = 16;
/// The sentinel's rate where the policy samples by period, which says nothing about time.
const SENTINEL_FREQUENCY: u64 = 100;
/// Accesses whose pages are looked up together: enough that the lookups overlap, few enough to stay in the first-level cache.
const BLOCK: usize = 128;
/// Different warnings that are kept for the user.
const WARNINGS: usize = 20;

/// The sources and what came from them.
pub(crate) struct Feed {
    pub(crate) sources: Vec<Box<dyn AccessSource>>,
    /// The policy's request, with the last rate that was not off.
    sampling: Option<Sampling>,
    /// What the sources were asked for last.
    asked: Option<Sampling>,
    /// Sources watch nothing, whatever is asked for.
    suspended: bool,
    /// Whether samples reach the policy, or only the hit counters.
    delivering: bool,
    /// Accesses that the engine has not taken yet.
    waiting: Vec<Access>,
    /// So many of them, from the first, it has.
    taken: usize,
    /// The pages of the block under way; `None` where the memory is none that is tiered.
    pages: Vec<Option<PageId>>,
    lost: u64,
    /// Whether accesses carry the time of a source that has its own.
    own_clock: bool,
    pub(crate) counters: Counters,
    /// Whether the hardware counts hits of the tiers; otherwise samples are summed.
    measured: bool,
    /// Where the counters of the tiers' queues come from.
    pub(crate) origin: CounterOrigin,
    /// Their model, where they are not counted.
    queues: Option<Queues>,
    /// The first warnings, for the user.
    pub(crate) warnings: Vec<String>,
}

impl Feed {
    /// Counters of the hardware mean what is wanted where tiers are the kernel's, not where they are shadows.
    pub(crate) fn new(sources: Vec<Box<dyn AccessSource>>, options: &Options) -> Self {
        let origin = CounterOrigin::of(&sources, options.shadow, options.model_counters);
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

    /// Calls every source and keeps what troubled it.
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

    /// Keeps a warning for the user, each text once and not without end.
    pub(crate) fn warning(&mut self, text: String) {
        if self.warnings.len() < WARNINGS && !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Memory of the process that belongs to the sources.
    pub(crate) fn hidden(&self, process: Pid) -> Vec<Range<u64>> {
        self.sources.iter().flat_map(|source| source.hidden(process)).collect()
    }

    /// Whether the hardware counts hits of the tiers.
    pub(crate) fn measured(&self) -> bool {
        self.measured
    }

    /// Changes the sampling.
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

    /// Has the sources watch nothing, or again what was asked for.
    pub(crate) fn suspend(&mut self, suspended: bool) {
        self.suspended = suspended;
        self.ask();
    }

    /// Whether sources watch nothing.
    pub(crate) fn suspended(&self) -> bool {
        self.suspended
    }

    fn ask(&mut self) {
        let Some(asked) = self.asked else { return };
        let rate = if self.suspended { SamplingRate::Off } else { asked.rate };
        self.each(|source| source.request(&Sampling { rate, ..asked }));
    }

    /// After how many samples, and how long, a batch is full.
    pub(crate) fn batch(&self) -> (usize, Nanos) {
        self.sampling.map_or((1, Nanos::SECOND), |sampling| (sampling.batch.max(1), sampling.tick))
    }

    /// The time of a source that has its own.
    pub(crate) fn clock(&self) -> Option<Nanos> {
        self.sources.iter().find_map(|source| source.clock())
    }

    /// Whether a full batch waits.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.len() - self.taken >= self.batch().0
    }

    /// Takes what the sources have seen; returns how much that was.
    pub(crate) fn drain(&mut self) -> usize {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..std::mem::take(&mut self.taken));
        let before = waiting.len();
        self.each(|source| source.drain(&mut waiting));
        self.waiting = waiting;
        self.waiting.len() - before
    }

    /// Moves waiting accesses into the batch until it holds `full`.
    pub(crate) fn fill(
        &mut self,
        batch: &mut SampleBatch,
        full: usize,
        memory: &mut Memory,
        recorder: &mut Recorder,
    ) {
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
            // Nothing depends on what is read: the cache misses overlap (a prefetch that needs no `unsafe`).
            let peek = |page| memory.residency.peek(page) ^ recorder.peek(page);
            black_box(pages.iter().flatten().fold(0, |sum, &page| sum ^ peek(page)));
            for (access, &page) in block.iter().zip(&pages) {
                match page {
                    Some(page) => self.take(access, page, batch, memory, recorder),
                    None => recorder.count_foreign(),
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
        memory: &mut Memory,
        recorder: &mut Recorder,
    ) {
        let tier = memory.touch(page, access.tier);
        let tier = access.tier.filter(|_| !memory.shadow()).unwrap_or(tier);
        let time = if self.own_clock { access.time } else { recorder.since_start(access.time) };
        match access.cause {
            Cause::Armed { since_us } => {
                let latency = Nanos(u64::from(since_us) * 1000);
                memory.disarm(page);
                let operation = access.operation;
                batch.faults.push(HintFault { time, page, latency, tier, operation });
            }
            Cause::Sampled => {
                recorder.count(page, access.weight);
                self.count(tier.index(), access);
                if self.delivering {
                    let (weight, latency, operation) = (access.weight, access.latency, access.operation);
                    batch.samples.push(Sample { time, page, weight, latency, exposed: 0, tier, operation });
                }
            }
        }
    }

    /// Sums up hits where the hardware does not.
    fn count(&mut self, tier: usize, access: &Access) {
        if self.measured {
            return;
        }
        let counter = &mut self.counters.tiers[tier];
        match access.operation {
            Operation::Load => counter.load_misses += u64::from(access.weight),
            Operation::Store => counter.store_misses += u64::from(access.weight),
        }
        if let Some(queues) = &self.queues {
            queues.add(tier, access, counter);
        }
    }

    /// Reads the profiling devices into the batch. Their hot pages are known by number where the programs' memory is.
    fn read_devices(&mut self, batch: &mut SampleBatch, memory: &Memory) {
        let mut answers: Vec<DeviceAnswer> = Vec::new();
        self.each(|source| source.read_devices(&mut answers));
        batch.devices.clear();
        batch.devices.extend(answers.into_iter().map(|answer| {
            let number = |&(process, address): &(Pid, u64)| memory.page_at(process, address);
            let hot: Vec<PageId> = answer.hot.iter().filter_map(number).collect();
            // All of them are in front of memory that is not the fastest; two tiers are what a device splits.
            DeviceReading { tier: TierId::FAST.slower(), hot, report: answer.report }
        }));
    }

    /// Ends a batch: what devices tell, what was lost since the one before, and the counters.
    pub(crate) fn finish(&mut self, batch: &mut SampleBatch, memory: &Memory, now: Nanos) {
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
