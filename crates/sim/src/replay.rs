//! Defines one replay of a stream on a machine: what comparing policies and sizing have in common.

use isotherm_core::parameters::Scale;
use isotherm_core::{Allocation, Bytes, Counters, EngineError, EngineStatistics, Nanos, Pages, Policy};
use isotherm_policies::Setup;

use crate::host::SimHost;
use crate::machine::{IntervalCount, Machine};
use crate::placement::{Locator, PageTable};
use crate::sampler::Sampler;
use crate::stream::Stream;
use crate::{Charges, NamedRange, SimulateError};
use isotherm_machine::Profile;

/// Samples that the ring holds at any scale: the program runs in blocks, and a block's samples must fit.
const SMALLEST_RING: u64 = 1024;

/// What every replay of one stream shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replay<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) profile: &'a Profile,
    /// Who allocated what, where known.
    pub(crate) ranges: &'a [NamedRange],
    /// The random generator's seed.
    pub(crate) seed: u64,
    /// By what scaled parameters are divided.
    pub(crate) scale: Scale,
    /// Accesses in an interval of the timeline.
    pub(crate) interval_length: usize,
}

/// The machine after a replay, in numbers.
pub(crate) struct Finished {
    pub(crate) end: Nanos,
    pub(crate) intervals: Vec<IntervalCount>,
    pub(crate) stall: Vec<Nanos>,
    pub(crate) bytes: Vec<Bytes>,
    pub(crate) charges: Charges,
}

impl Finished {
    pub(crate) fn of<L: Locator>(machine: &Machine<'_, L>) -> Self {
        let mut counters = Counters::default();
        machine.counters(&mut counters);
        Self {
            end: machine.now(),
            intervals: machine.intervals.clone(),
            stall: counters.tiers.iter().map(|tier| tier.stall).collect(),
            bytes: counters.tiers.iter().map(|tier| tier.bytes_read + tier.bytes_written).collect(),
            charges: machine.charges,
        }
    }
}

/// Refuses machines that the model cannot run.
pub(crate) fn check(profile: &Profile) -> Result<(), SimulateError> {
    match profile.tiers.len() {
        0 | 1 => Err(SimulateError::OneTier(profile.name.clone())),
        2..=isotherm_machine::thread_model::MAX_TIERS => Ok(()),
        _ => Err(SimulateError::ManyTiers(profile.name.clone())),
    }
}

impl<'a> Replay<'a> {
    pub(crate) fn machine<L: Locator>(&self, locator: L) -> Machine<'a, L> {
        // The ring, too, holds samples that stand for the whole footprint.
        let ring = (self.profile.costs.ring_samples as f64 / self.scale.footprint) as u64;
        let sampler = Sampler::new(ring.max(SMALLEST_RING), self.seed);
        Machine::new(self.stream, self.profile, locator, self.interval_length, sampler)
    }

    /// The sizes of the tiers: the fast one as asked, the last as large as needed, those between as the profile says.
    fn capacities(&self, fast: Pages) -> Vec<u64> {
        let pages = self.stream.pages.len() as u64;
        let shift = self.stream.page_size.shift();
        let tiers = &self.profile.tiers;
        let between =
            tiers[1..tiers.len() - 1].iter().map(|tier| tier.capacity.map_or(fast.0, |size| size.0 >> shift));
        std::iter::once(fast.0).chain(between).chain([pages]).collect()
    }

    /// What a policy may size its structures by.
    pub(crate) fn setup(&self, fast: Pages) -> Setup {
        Setup {
            pages: self.stream.pages.len(),
            fast,
            page_size: self.stream.page_size,
            tiers: self.profile.tiers.len(),
            seed: self.seed,
        }
    }

    /// Replays with pages where `locator` says.
    pub(crate) fn bound<L: Locator>(&self, locator: L) -> Finished {
        let mut machine = self.machine(locator);
        while machine.run_block() {}
        Finished::of(&machine)
    }

    /// Replays with every page in the first or in the last tier.
    pub(crate) fn fixed(&self, fast: bool) -> Finished {
        let pages = self.stream.pages.len();
        let tiers = self.profile.tiers.len();
        let mut capacity = vec![0; tiers];
        capacity[if fast { 0 } else { tiers - 1 }] = pages as u64 + 1;
        self.bound(PageTable::new(pages, capacity, 0.0, Allocation::FastFirst))
    }

    /// Replays under a policy with `fast` pages in the first tier; returns the machine as the policy left it.
    pub(crate) fn policy(
        &self,
        fast: Pages,
        policy: &mut dyn Policy,
    ) -> Result<(SimHost<'a>, EngineStatistics), EngineError> {
        let reserve = self.profile.costs.reserve;
        let allocation = policy.allocation();
        let page_size = self.stream.page_size;
        let mut table = PageTable::new(self.stream.pages.len(), self.capacities(fast), reserve, allocation);
        if self.profile.costs.reclaim_lists == Some(2) {
            let gib_per_page = page_size.bytes().0 as f64 * self.scale.footprint / f64::from(1 << 30);
            table = table.with_lists(gib_per_page);
        }
        let mut host = SimHost::new(
            self.machine(table),
            self.profile,
            page_size,
            policy.migration_context(),
            self.scale.footprint,
        );
        let statistics = isotherm_core::run(&mut host, policy, |host, policy| {
            host.note_gauges(|gauges| policy.gauges(gauges));
        })?;
        Ok((host, statistics))
    }
}
