//! HeMem: fixed hot thresholds over sampled reads and writes, and FIFO lists of hot and cold pages.
//!
//! # Paper
//! Raybuck et al., "HeMem: Scalable Tiered Memory Management for Big Data Applications and Real NVM", SOSP
//! 2021, and the library published with it, whose numbers these are.
//!
//! - A page is hot at 4 sampled reads or 4 sampled writes; pages hot by their writes go to the front of their
//!   tier's list of hot pages, to be promoted first.
//! - A count that reaches the cooling threshold advances a global clock. A page's counts are halved once for
//!   each missed tick, when it is sampled next or when the walk over the hot lists reaches it.
//! - Every 10 ms hot slow pages are promoted in turn, into free room or against the first cold fast page.
//!
//! With 4 KiB pages few pages ever reach four samples at the library's period, and HeMem is first touch.
//!
//! Deviations: the run's pages instead of 2 MB, a read of the page table that finds cold fast pages, stores
//! that missed instead of all, no room kept for new pages; see `docs/reference/policies.md`.

use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::lists::PageLists;
use crate::support::prefetch::{self, CHUNK, Chunk};

const SCAN: usize = 1024;
/// Samples that its thread takes in at once, unless the loop comes round before.
const BATCH: usize = 512;
/// Operations of counting one sample, table accesses apart.
const COUNT_OPERATIONS: u64 = 8;

const FAST_HOT: usize = 0;
const FAST_COLD: usize = 1;
const SLOW_HOT: usize = 2;
const SLOW_COLD: usize = 3;

parameters! {
    pub(crate) struct Settings {
        /// Sampled reads that make a page hot.
        hot_reads: u16 = count(1, 65_535, "4").unit("samples").source("HeMem's library"),
        /// Sampled writes that make a page hot.
        hot_writes: u16 = count(1, 65_535, "4").unit("samples").source("HeMem's library"),
        /// Reads or writes of one page at which all pages cool.
        cooling_threshold: u16 = count(1, 65_535, "10").unit("samples")
            .source("HeMem's library, the version that is hot at 4; others have 18 with 8, and Jenga names 1024 (section 2.2.2)"),
        /// Samples every n-th access of each thread.
        sampling_period: u64 = count(1, 1_000_000_000, "19997").unit("accesses").source("HeMem's library"),
        /// Time between two rounds of moves.
        interval: Nanos = interval("10ms").source("HeMem's library").scaled(),
        /// The most that may be promoted.
        migration_rate: Bytes = size(4096, 1 << 44, "10G").unit("bytes per second").source("HeMem's library"),
        /// Pages of each hot list that one round looks at after the clock has advanced.
        cooling_pages: usize = count(1, 1 << 30, "8192").unit("pages").source("HeMem's library").scaled_rate(),
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    reads: u16,
    writes: u16,
    /// The global clock when the counts were last right.
    clock: u32,
}

#[derive(Debug)]
pub(crate) struct Hemem {
    settings: Settings,
    sampling: Sampling,
    budget: u64,
    counts: Vec<Count>,
    lists: PageLists<4>,
    clock: u32,
    /// Pages of the two hot lists that the walk after a tick of the clock has still to look at.
    uncooled: [usize; 2],
    next_round: Nanos,
    /// Used fast pages that a walk over the page table did not find: the host's own reserve.
    phantom: u64,
    found: Vec<(PageId, TierId)>,
    work: Work,
}

impl Hemem {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let settings = Settings::read(parameters);
        let interval = settings.interval;
        let moved = settings.migration_rate.0 as f64 * interval.as_seconds();
        Self {
            sampling: Sampling::loads(
                SamplingRate::Period(settings.sampling_period),
                SamplingScope::AllTiers,
                BATCH,
                interval,
            )
            .and_stores(),
            budget: setup.pages_in(Bytes(moved as u64)).max(1),
            counts: vec![Count::default(); setup.pages],
            lists: PageLists::new(setup.pages),
            clock: 0,
            uncooled: [0; 2],
            next_round: interval,
            phantom: 0,
            found: Vec::with_capacity(SCAN),
            work: Work::default(),
            settings,
        }
    }

    fn is_hot(&self, page: PageId) -> bool {
        let count = self.counts[page.index()];
        count.reads >= self.settings.hot_reads || count.writes >= self.settings.hot_writes
    }

    /// Halves a page's counts for each tick of the clock that it has missed.
    fn cool(&mut self, page: PageId) {
        let count = &mut self.counts[page.index()];
        let missed = self.clock - count.clock;
        count.reads = count.reads.checked_shr(missed).unwrap_or(0);
        count.writes = count.writes.checked_shr(missed).unwrap_or(0);
        count.clock = self.clock;
    }

    fn count(&mut self, sample: &Sample, tier: Option<TierId>) {
        let Some(tier) = tier else { return };
        self.cool(sample.page);
        let count = &mut self.counts[sample.page.index()];
        let counted = match sample.operation {
            Operation::Load => &mut count.reads,
            Operation::Store => &mut count.writes,
        };
        *counted = counted.saturating_add(1);
        if *counted >= self.settings.cooling_threshold {
            self.clock += 1;
            self.uncooled = [self.lists.len(FAST_HOT), self.lists.len(SLOW_HOT)];
        }
        self.enlist(sample.page, tier);
    }

    fn enlist(&mut self, page: PageId, tier: TierId) {
        let list = match (tier == TierId::FAST, self.is_hot(page)) {
            (true, true) => FAST_HOT,
            (true, false) => FAST_COLD,
            (false, true) => SLOW_HOT,
            (false, false) => SLOW_COLD,
        };
        if self.lists.list_of(page) == Some(list) {
            return;
        }
        let written = self.counts[page.index()].writes >= self.settings.hot_writes;
        if written && matches!(list, FAST_HOT | SLOW_HOT) {
            self.lists.enqueue_first(list, page);
        } else {
            self.lists.enqueue(list, page);
        }
        // The page's links and those of three neighbours.
        self.work.touches += 4;
    }

    /// Looks at the next hot pages after a tick of the clock: those hot no more go to the cold list.
    fn cool_lists(&mut self) {
        for (turn, hot, cold) in [(0, FAST_HOT, FAST_COLD), (1, SLOW_HOT, SLOW_COLD)] {
            let looked = self.uncooled[turn].min(self.settings.cooling_pages);
            self.uncooled[turn] -= looked;
            for _ in 0..looked {
                let Some(page) = self.lists.dequeue(hot) else { break };
                self.cool(page);
                let list = if self.is_hot(page) { hot } else { cold };
                self.lists.enqueue(list, page);
            }
            self.work.touches += 5 * looked as u64;
        }
    }

    /// Lists unlisted fast pages as cold, by the page table, if the cold list has fewer than `needed`.
    fn adopt(&mut self, needed: u64, view: &mut dyn View) {
        let used = (view.capacity(TierId::FAST) - view.free(TierId::FAST)).0;
        let listed = (self.lists.len(FAST_HOT) + self.lists.len(FAST_COLD)) as u64;
        let mut missing = used.saturating_sub(listed);
        if self.lists.len(FAST_COLD) as u64 >= needed || missing <= self.phantom {
            return;
        }
        let mut cursor = Some(PageId(0));
        while let Some(from) = cursor {
            self.found.clear();
            cursor = view.walk(from, SCAN, &mut self.found);
            for &(page, tier) in &self.found {
                if tier == TierId::FAST && self.lists.list_of(page).is_none() {
                    self.lists.enqueue(FAST_COLD, page);
                    missing = missing.saturating_sub(1);
                }
            }
            self.work.touches += self.found.len() as u64;
        }
        self.phantom = missing;
    }

    fn migrate(&mut self, view: &mut dyn View, plan: &mut Plan) {
        let mut free = view.free(TierId::FAST).0;
        let wanted = self.budget.min(self.lists.len(SLOW_HOT) as u64);
        self.adopt(wanted.saturating_sub(free), view);
        for _ in 0..wanted {
            if free > 0 {
                free -= 1;
            } else if let Some(victim) = self.lists.dequeue(FAST_COLD) {
                plan.moves.push(Move { page: victim, to: TierId::FAST.slower() });
            } else {
                break;
            }
            let Some(page) = self.lists.dequeue(SLOW_HOT) else { break };
            plan.moves.push(Move { page, to: TierId::FAST });
        }
        self.work.touches += 4 * plan.moves.len() as u64;
    }
}

impl Policy for Hemem {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples)
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// The library has `pebs_scan_thread` beside `pebs_policy_thread`.
    fn migration_context(&self) -> MigrationContext {
        MigrationContext::Dedicated
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        if view.pages() > self.counts.len() {
            self.counts.resize(view.pages(), Count { clock: self.clock, ..Count::default() });
        }
        self.lists.reserve(view.pages());
        for samples in batch.samples.chunks(CHUNK) {
            let chunk = Chunk::of(samples, view);
            prefetch::read(chunk.pages(), |page| self.counts[page.index()].clock);
            self.lists.approach(chunk.pages());
            samples.iter().zip(chunk.tiers()).for_each(|(sample, &tier)| self.count(sample, tier));
        }
        self.work.touches += batch.samples.len() as u64;
        self.work.operations += COUNT_OPERATIONS * batch.samples.len() as u64;
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if now >= self.next_round && view.tiers() > 1 {
            self.next_round = now + self.sampling.tick;
            self.cool_lists();
            self.migrate(view, plan);
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, _outcome: &Outcome, view: &mut dyn View) {
        for step in &plan.moves {
            match view.tier_of(step.page) {
                Some(tier) => self.enlist(step.page, tier),
                None => self.lists.remove(step.page),
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let structures = size_of_val(&self.counts[..]) + self.lists.bytes();
        let buffers = self.found.capacity() * size_of::<(PageId, TierId)>();
        Bytes((structures + buffers) as u64 + BATCH as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.extend([
            Gauge { name: "fast-hot-pages", value: self.lists.len(FAST_HOT) as f64 },
            Gauge { name: "slow-hot-pages", value: self.lists.len(SLOW_HOT) as f64 },
            Gauge { name: "coolings", value: f64::from(self.clock) },
        ]);
    }
}

#[cfg(test)]
mod tests;
