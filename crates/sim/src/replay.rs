//! One replay of a stream on a machine: shared by comparing policies and sizing.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{
    Allocation, Bytes, Counters, EngineError, EngineStatistics, Nanos, Pages, Policy, Signals,
};
use isotherm_machine::{MAX_TIERS, Profile, TierProfile, Walks};
use isotherm_policies::Setup;

use crate::bounds::{Belady, IntervalRanks, NextUses};
use crate::compression::Compression;
use crate::host::SimHost;
use crate::long::{Long, Rounds, Scaled};
use crate::lookups::Lookups;
use crate::page_table::{Locator, PageTable};
use crate::processor::Processor;
use crate::sampler::Sampler;
use crate::soar::Profiled;
use crate::stream::{CompressedShares, Stream};
use crate::{Charges, Interval, NamedRange, SimulateError, TimeParts};

/// Smallest ring at any scale: the program runs in blocks, and a block's samples must fit.
const MIN_RING: u64 = 1024;

#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) profile: &'a Profile,
    pub(crate) ranges: &'a [NamedRange],
    pub(crate) seed: u64,
    pub(crate) scale: Scale,
    pub(crate) interval_length: usize,
    /// The rounds of a long run; `None` for a single replay.
    pub(crate) long: Option<Long>,
    /// Ends the replay early once it is set.
    pub(crate) stop: Option<&'a AtomicBool>,
    /// Computed for the first run.
    pub(crate) lookups: OnceLock<Arc<Lookups>>,
    /// Computed for the first bound that needs them.
    ranks: OnceLock<IntervalRanks>,
    /// The runs with every page in one tier, whatever the fast tier's size: all slow, all fast.
    fixed: [OnceLock<Finished>; 2],
    /// Computed for the first size of the fast tier.
    soar: OnceLock<Profiled>,
}

#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) end: Nanos,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) stall: Vec<Nanos>,
    pub(crate) served: Vec<u64>,
    pub(crate) bytes: Vec<Bytes>,
    pub(crate) charges: Charges,
    pub(crate) walks: Walks,
    pub(crate) throttled: u64,
    pub(crate) parts: TimeParts,
    pub(crate) fast_cells: Vec<u8>,
    pub(crate) rounds: Option<Rounds>,
}

impl Finished {
    pub(crate) fn of<L: Locator>(processor: &Processor<'_, L>, rounds: Option<Rounds>) -> Self {
        let mut counters = Counters::default();
        processor.cores.counters(&mut counters);
        Self {
            end: processor.now(),
            intervals: processor.intervals.clone(),
            stall: counters.tiers.iter().map(|tier| tier.stall).collect(),
            served: processor.cores.tiers.iter().map(|tier| tier.loads() + tier.stores()).collect(),
            bytes: counters.tiers.iter().map(|tier| tier.bytes_read + tier.bytes_written).collect(),
            charges: processor.charges,
            walks: processor.cores.walks(),
            throttled: processor.sampler.throttled(),
            parts: processor.counted().parts(),
            fast_cells: processor.fast_cells.clone(),
            rounds,
        }
    }
}

impl<'a> Replay<'a> {
    /// Sets a stream on a machine, with a timeline of `intervals`.
    ///
    /// # Errors
    /// A machine with a number of tiers that the model does not run.
    pub(crate) fn new(
        stream: &'a Stream,
        ranges: &'a [NamedRange],
        profile: &'a Profile,
        scale: Scale,
        seed: u64,
        intervals: usize,
    ) -> Result<Self, SimulateError> {
        match profile.tiers.len() {
            0 | 1 => return Err(SimulateError::OneTier(profile.name.clone())),
            2..=MAX_TIERS => {}
            _ => return Err(SimulateError::ManyTiers(profile.name.clone())),
        }
        let interval_length = stream.accesses.len().div_ceil(intervals.max(1)).max(1);
        Ok(Self {
            stream,
            profile,
            ranges,
            seed,
            scale,
            interval_length,
            long: None,
            stop: None,
            lookups: OnceLock::new(),
            ranks: OnceLock::new(),
            fixed: Default::default(),
            soar: OnceLock::new(),
        })
    }

    /// Makes each run one of several rounds.
    pub(crate) fn lengthened(self, long: Long) -> Self {
        Self { long: Some(long), fixed: Default::default(), ..self }
    }

    /// Scales a policy's parameters for the run.
    ///
    /// # Errors
    /// A long run that is too short for the policy.
    pub(crate) fn scaled(&self, parameters: &Parameters) -> Result<Scaled, SimulateError> {
        if let Some(long) = &self.long {
            return long.scaled(parameters, self.scale);
        }
        let mut parameters = parameters.clone();
        parameters.scale(self.scale);
        Ok(Scaled { parameters, times: self.scale.time, control_loop: Nanos(0) })
    }

    /// Starts to count rounds, with a policy's slowest control loop.
    pub(crate) fn rounds(&self, control_loop: Option<Nanos>) -> Option<Rounds> {
        self.long.map(|long| Rounds::new(long, self.stream.pages.len(), control_loop))
    }

    /// Returns the intervals that one of a policy's timeline spans: in a run of many rounds more than one, so
    /// that all rounds together have hardly more than one replay.
    pub(crate) fn intervals_merged(&self) -> usize {
        // With loading apart, rounds begin at an interval's start.
        let long = self.long.filter(|long| long.loading == 0);
        let most =
            long.map_or(1, |long| usize::try_from(long.simulated(Nanos(u64::MAX))).unwrap_or(usize::MAX));
        most.min(self.stream.accesses.len().div_ceil(self.interval_length))
    }

    pub(crate) fn lookups(&self) -> Arc<Lookups> {
        let new = || Lookups::new(self.stream, self.profile, self.scale.footprint, self.stop);
        Arc::clone(self.lookups.get_or_init(|| Arc::new(new())))
    }

    pub(crate) fn ranks(&self) -> &IntervalRanks {
        self.ranks.get_or_init(|| IntervalRanks::new(self.stream, self.interval_length, false))
    }

    /// Returns MIN for the fast tier, and for it with each further tier but the last.
    pub(crate) fn belady(&self, uses: &NextUses, fast: Pages) -> Vec<Belady> {
        let belady = |pages| Belady::new(self.stream, uses, pages, self.long.is_some());
        self.levels(fast).into_iter().map(belady).collect()
    }

    pub(crate) fn processor<L: Locator>(&self, locator: L) -> Processor<'a, L> {
        self.processor_with(locator, self.interval_length, self.scale.time)
    }

    fn processor_with<L: Locator>(&self, locator: L, interval_length: usize, times: f64) -> Processor<'a, L> {
        // The ring has to hold what a policy leaves in it between two steps.
        let ring = (self.profile.costs.ring_samples as f64 / self.scale.rates(times)) as u64;
        let sampler = Sampler::new(ring.max(MIN_RING), self.seed, &self.profile.costs);
        let processor =
            Processor::new(self.stream, self.profile, locator, interval_length, sampler, self.lookups())
                .stopping(self.stop);
        match &self.long {
            Some(long) => processor.repeating(long.loading),
            None => processor,
        }
    }

    /// Returns the objects that Soar places.
    pub(crate) fn soar(&self) -> &Profiled {
        self.soar.get_or_init(|| Profiled::new(self))
    }

    /// Returns the tiers' sizes: the fast one as asked, the last for all pages, the others by the profile.
    pub(crate) fn capacities(&self, fast: Pages) -> Vec<u64> {
        let pages = self.stream.pages.len() as u64;
        let shift = self.stream.page_size.shift();
        let tiers = &self.profile.tiers;
        // Before compressed memory, the usual tier leaves a quarter of all pages to it.
        let usual = match self.profile.compressed() {
            Some(_) => (pages * 3 / 4).saturating_sub(fast.0).max(1),
            None => fast.0,
        };
        let between =
            tiers[1..tiers.len() - 1].iter().map(|tier| tier.capacity.map_or(usual, |size| size.0 >> shift));
        std::iter::once(fast.0).chain(between).chain([pages]).collect()
    }

    /// Returns the sizes of the fast tier, and of it with each further tier but the last.
    pub(crate) fn levels(&self, fast: Pages) -> Vec<Pages> {
        let capacities = self.capacities(fast);
        let mut sum = 0;
        let add = |&pages: &u64| {
            sum += pages;
            Pages(sum)
        };
        capacities[..capacities.len() - 1].iter().map(add).collect()
    }

    pub(crate) fn setup(&self, fast: Pages) -> Setup {
        Setup {
            pages: self.stream.pages.len(),
            fast,
            page_size: self.stream.page_size,
            tiers: self.profile.tiers.len(),
            seed: self.seed,
        }
    }

    pub(crate) fn placed<L: Locator>(&self, locator: L) -> Finished {
        let (mut processor, mut rounds) = (self.processor(locator), self.rounds(None));
        loop {
            while processor.run_block() {}
            if !rounds.as_mut().is_some_and(|rounds| rounds.end(processor.counted())) {
                return Finished::of(&processor, rounds);
            }
            processor.rewind();
        }
    }

    /// Replays with every page in the first tier, or in the last whose pages can be accessed.
    pub(crate) fn fixed(&self, fast: bool) -> &Finished {
        let run = || {
            let pages = self.stream.pages.len();
            let tiers = self.profile.tiers.len();
            let slowest = tiers - 1 - usize::from(self.profile.compressed().is_some());
            let mut capacity = vec![0; tiers];
            capacity[if fast { 0 } else { slowest }] = pages as u64 + 1;
            self.placed(PageTable::new(pages, capacity, 0.0, Allocation::FastFirst))
        };
        self.fixed[usize::from(fast)].get_or_init(run)
    }

    /// Returns a host on which a policy, built with the scaled parameters, can run with `fast` pages in the
    /// first tier.
    pub(crate) fn host(&self, fast: Pages, policy: &dyn Policy, scaled: &Scaled) -> SimHost<'a> {
        let reserve = self.profile.costs.reserve;
        let bandwidths: Vec<u64> = self.profile.tiers.iter().map(|tier| tier.read_bandwidth).collect();
        let allocation = policy.allocation().with_bandwidths(&bandwidths);
        let page_size = self.stream.page_size;
        let mut table = PageTable::new(self.stream.pages.len(), self.capacities(fast), reserve, allocation);
        if self.profile.costs.reclaim_lists == Some(2) {
            let gib_per_page = page_size.bytes().0 as f64 * self.scale.footprint / f64::from(1 << 30);
            table = table.with_lists(gib_per_page);
        }
        if let Some(tier) = self.profile.compressed() {
            let CompressedShares { zstd, lz4 } = &self.stream.compressed_shares;
            let shares = if tier.compressed == Some(TierProfile::LZ4) { lz4 } else { zstd };
            table = table.with_compression(Compression::new(self.stream.pages.len(), page_size, shares));
        }
        let interval_length = self.interval_length * self.intervals_merged();
        let mut processor = self.processor_with(table, interval_length, scaled.times);
        processor.sampler.set_record(policy.record());
        let context = policy.migration_context();
        let mut host = SimHost::new(processor, self.profile, page_size, context, self.scale.footprint);
        let control_loop = match &self.long {
            Some(long) if scaled.control_loop == Nanos(0) && policy.signals() != Signals::NONE => {
                long.learning()
            }
            _ => scaled.control_loop,
        };
        host.rounds = self.rounds(Some(control_loop));
        host
    }

    /// Replays under a policy, built with the scaled parameters, with `fast` pages in the first tier; returns
    /// the host as the policy left it.
    pub(crate) fn policy(
        &self,
        fast: Pages,
        policy: &mut dyn Policy,
        scaled: &Scaled,
    ) -> Result<(SimHost<'a>, EngineStatistics), EngineError> {
        let mut host = self.host(fast, policy, scaled);
        let statistics = isotherm_core::run(&mut host, policy, |host, policy| {
            host.note_gauges(|gauges| policy.gauges(gauges));
        })?;
        Ok((host, statistics))
    }
}
