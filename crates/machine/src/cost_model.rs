//! Cost model for a host that sees misses as they happen.

use isotherm_core::{Counters, Nanos};

use crate::cores::Cores;
use crate::limits;
use crate::lookup::Walks;
use crate::profile::Profile;
use crate::reorder::ReorderWindows;
use crate::streamer::Triggers;
use crate::thread_model::Request;
use crate::translation::{Footprint, Translator};

/// Misses between two updates of bandwidth and clocks.
pub const BLOCK: usize = 1024;

/// A miss of the last-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Thread that missed, below the number of threads.
    pub thread: u16,
    /// Instructions since that thread's previous miss, this one included.
    pub instructions: u32,
    /// Distance in the thread's misses to the one that its address depends on; 0 for none.
    pub dependence: u8,
    /// Whether it is a store rather than a load.
    pub store: bool,
    /// Index of the serving tier in the profile.
    pub tier: u8,
    /// Its page, below the number of pages.
    pub page: u32,
}

/// Cost of a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissCost {
    /// Latency of its tier under the current load.
    pub latency: Nanos,
    /// Time in picoseconds for which the thread's retirement stalled.
    pub stall_ps: u64,
}

/// Charges misses on the cores and tiers of a profile, one by one. Each thread has one core's pipeline.
/// Clocks, bandwidth and loaded latency are updated every [`BLOCK`] misses and by [`Self::settle`].
pub struct CostModel {
    cores: Cores,
    translator: Translator,
    windows: ReorderWindows,
    pages: usize,
    block: usize,
}

impl CostModel {
    /// Maximum number of tiers of a profile.
    pub const MAX_TIERS: usize = limits::MAX_TIERS;

    /// Creates an idle machine; `None` without threads or tiers, and above [`Self::MAX_TIERS`].
    pub fn new(profile: &Profile, threads: u16, footprint: Footprint) -> Option<Self> {
        let valid = (1..=Self::MAX_TIERS).contains(&profile.tiers.len()) && threads > 0;
        valid.then(|| {
            let mut cores = Cores::new(profile, threads.into());
            cores.begin_block();
            let translator = Translator::new(profile, threads.into(), footprint);
            let windows = ReorderWindows::new(profile, threads.into());
            Self { cores, translator, windows, pages: footprint.pages, block: 0 }
        })
    }

    /// Charges a miss. Returns `None` and charges nothing if its tier, thread or page does not exist.
    #[inline]
    pub fn miss(&mut self, miss: Miss) -> Option<MissCost> {
        let Miss { thread, instructions, dependence, store, tier, page } = miss;
        let tier = usize::from(tier);
        let exists = tier < self.cores.tiers.len()
            && usize::from(thread) < self.cores.threads()
            && (page as usize) < self.pages;
        if !exists {
            return None;
        }
        let latency = Nanos(self.cores.tiers[tier].latency / 1000);
        self.cores.enter(thread);
        let request = Request {
            instructions,
            left: self.windows.miss(thread, instructions),
            dependence,
            triggers: Triggers::default(),
            lone: false,
            useless: 0,
            store,
        };
        let lookup = self.translator.look_up(thread, page, request.triggers);
        let timing = self.cores.access(thread, request, lookup, tier);
        self.block += 1;
        if self.block == BLOCK {
            self.settle();
        }
        Some(MissCost { latency, stall_ps: timing.stall })
    }

    /// Charges instructions of a thread that do not miss.
    pub fn run(&mut self, thread: u16, instructions: u64) {
        if usize::from(thread) < self.cores.threads() {
            self.cores.enter(thread);
            let left = self.windows.run(thread, instructions);
            self.cores.run(thread, instructions, left);
        }
    }

    /// Updates clocks, bandwidth and loaded latencies.
    pub fn settle(&mut self) {
        self.cores.end_block();
        self.cores.begin_block();
        self.block = 0;
    }

    /// Returns a thread's clock; 0 if the thread does not exist.
    #[inline]
    pub fn clock(&self, thread: u16) -> Nanos {
        let exists = usize::from(thread) < self.cores.threads();
        Nanos(if exists { self.cores.clock(thread) / 1000 } else { 0 })
    }

    /// Returns the modelled time at the end of the last block.
    pub fn now(&self) -> Nanos {
        Nanos(self.cores.now() / 1000)
    }

    /// Returns the page walks so far.
    pub fn walks(&self) -> Walks {
        self.cores.walks()
    }

    /// Copies the tiers' counters into `counters`.
    pub fn counters(&self, counters: &mut Counters) {
        self.cores.counters(counters);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::PageSize;

    use super::*;

    const MEMORY: Footprint = Footprint { pages: 8, page_size: PageSize::Base, scale: 1.0 };

    fn profile() -> Profile {
        Profile::builtin("pact").expect("it comes with Isotherm")
    }

    fn miss(tier: u8) -> Miss {
        Miss { thread: 0, instructions: 10, dependence: 1, store: false, tier, page: 1 }
    }

    #[test]
    fn a_chain_of_dependent_misses_takes_their_latencies() {
        let profile = profile();
        let mut model = CostModel::new(&profile, 1, MEMORY).expect("a valid machine");
        let stalls: u64 = (0..5000).map(|_| model.miss(miss(1)).expect("a tier").stall_ps).sum();
        model.settle();
        let chain = 5000 * profile.tiers[1].latency.0;
        assert!(model.now().0.abs_diff(chain) < chain / 50, "{} against {chain}", model.now());
        let mut counters = Counters::default();
        model.counters(&mut counters);
        assert_eq!(counters.tiers[1].load_misses, 5000);
        assert_eq!(counters.tiers[1].stall.0, stalls / 1000);
        assert_eq!(counters.tiers[0].load_misses, 0);
    }

    #[test]
    fn instructions_without_misses_take_their_time() {
        let profile = profile();
        let mut model = CostModel::new(&profile, 1, MEMORY).expect("a valid machine");
        model.run(0, 1_000_000);
        model.settle();
        assert_eq!(model.now().0, 1_000_000 * profile.core.instruction_ps / 1000);
    }

    #[test]
    fn what_does_not_exist_costs_nothing() {
        let mut model = CostModel::new(&profile(), 1, MEMORY).expect("a valid machine");
        assert_eq!(model.miss(miss(2)), None);
        assert_eq!(model.miss(Miss { thread: 1, ..miss(0) }), None);
        assert_eq!(model.miss(Miss { page: 8, ..miss(0) }), None);
        model.run(1, 1_000_000);
        model.settle();
        assert_eq!((model.now(), model.clock(1)), (Nanos(0), Nanos(0)));
        assert!(CostModel::new(&profile(), 0, MEMORY).is_none());
    }
}
