//! A replacement algorithm as a tiering policy: from "insert on a miss" to "promote within a budget".
//!
//! A cache fetches every missed page into the place of another one. In tiering a missed page can be used
//! where it is, moves cost time and can fail, and a policy sees samples in batches. As in HybridTier
//! (sections 5.2 and 6.1) samples are the accesses and the fast tier is the cache: the algorithm runs over
//! the samples one by one, its residents are the pages for the fast tier, and once a batch the difference
//! from the page table becomes moves, at most `promotion_budget` of them promotions. An evicted page is
//! demoted when its room is needed, in the order of eviction; until then it serves hits where it is.
//!
//! The page table tells where pages are, so no list needs correction when moves fail. A page that could not
//! be promoted stays a resident and is tried again at its next sample; one that could not be demoted goes to
//! the end of those that should leave. The authors' artifact moves each page at once, and demotes the page
//! that came.

use std::collections::VecDeque;

use super::settings::{Settings, rate};
use super::{Access, Replacement};
use crate::prelude::*;
use crate::support::SAMPLE_BYTES;
use crate::support::prefetch::{self, CHUNK, Chunk};

/// Cache lines of looking at a queued page: its place in the lists and its flags.
const QUEUED_LINES: u64 = 2;
const ENTERING: u8 = 1;
const LEAVING: u8 = 2;

#[derive(Debug)]
pub(crate) struct Tiered<R> {
    cache: R,
    sampling: Sampling,
    budget: usize,
    reserve: Pages,
    /// Sampled in a slow tier, in that order; those that are residents at the batch's end are promoted.
    entering: VecDeque<PageId>,
    /// Evicted while in the fast tier, in that order; those that have not come back are to be demoted.
    leaving: VecDeque<PageId>,
    queued: Vec<u8>,
    work: Work,
}

impl<R: Replacement> Tiered<R> {
    /// Returns the policy of the cache that `cache` makes for the pages and the capacity that it is given.
    pub(super) fn with(cache: impl FnOnce(usize, usize) -> R, settings: &Settings, setup: &Setup) -> Self {
        let reserve = Pages(setup.share(settings.free_reserve));
        let capacity = (setup.fast - reserve).0.min(setup.pages.max(1) as u64) as usize;
        Self {
            cache: cache(setup.pages, capacity),
            sampling: Sampling::loads(
                rate(settings.sampling_frequency, settings.sampling_period),
                settings.sampling_scope,
                settings.batch,
                Nanos::SECOND,
            ),
            budget: settings.promotion_budget,
            reserve,
            entering: VecDeque::new(),
            leaving: VecDeque::new(),
            queued: vec![0; setup.pages],
            work: Work::default(),
        }
    }

    #[inline]
    fn access(&mut self, page: PageId, tier: TierId, view: &dyn View) {
        let access = self.cache.access(page);
        self.work.touches += if access.is_hit() { R::HIT_LINES } else { R::MISS_LINES };
        if tier != TierId::FAST {
            self.queue(page, ENTERING);
        }
        if let Access::Miss { evicted: Some(victim) } = access
            && view.tier_of(victim) == Some(TierId::FAST)
        {
            self.queue(victim, LEAVING);
        }
    }

    fn queue(&mut self, page: PageId, flag: u8) {
        self.work.touches += 1;
        let flags = &mut self.queued[page.index()];
        if *flags & flag == 0 {
            *flags |= flag;
            let queue = if flag == ENTERING { &mut self.entering } else { &mut self.leaving };
            queue.push_back(page);
        }
    }

    fn unqueue(&mut self, page: PageId, flag: u8) {
        self.work.touches += QUEUED_LINES;
        self.queued[page.index()] &= !flag;
    }

    /// Takes slow residents out of their queue, up to the budget, in chunks: their cache misses overlap.
    fn promotions(&mut self, view: &dyn View) -> Vec<PageId> {
        let mut promotions = Vec::new();
        while promotions.len() < self.budget && !self.entering.is_empty() {
            let next = CHUNK.min(self.budget - promotions.len()).min(self.entering.len());
            let chunk = Chunk::new(self.entering.drain(..next), view);
            for (&page, tier) in chunk.pages().iter().zip(chunk.tiers()) {
                self.unqueue(page, ENTERING);
                if tier.is_some_and(|tier| tier != TierId::FAST) && self.cache.contains(page) {
                    promotions.push(page);
                }
            }
        }
        promotions
    }

    /// Plans to demote `needed` of the pages that left and are still fast. Returns how many there are.
    fn demote(&mut self, needed: u64, view: &dyn View, plan: &mut Plan) -> u64 {
        let mut demoted = 0;
        while demoted < needed
            && let Some(page) = self.leaving.pop_front()
        {
            self.unqueue(page, LEAVING);
            if view.tier_of(page) == Some(TierId::FAST) && !self.cache.contains(page) {
                plan.moves.push(Move { page, to: TierId::FAST.slower() });
                demoted += 1;
            }
        }
        demoted
    }
}

impl<R: Replacement + Send> Policy for Tiered<R> {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples)
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// HybridTier, section 5.2: both algorithms assume an empty cache, so new pages are slow.
    fn allocation(&self) -> Allocation {
        Allocation::SlowFirst
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        let pages = view.pages().max(self.queued.len());
        self.cache.grow(pages);
        self.queued.resize(pages, 0);
        for samples in batch.samples.chunks(CHUNK) {
            let chunk = Chunk::of(samples, view);
            self.cache.approach(chunk.pages());
            prefetch::read(chunk.pages(), |page| u32::from(self.queued[page.index()]));
            for (sample, &tier) in samples.iter().zip(chunk.tiers()) {
                if let Some(tier) = tier {
                    self.access(sample.page, tier, view);
                }
            }
        }
    }

    fn step(&mut self, _now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if view.tiers() > 1 {
            let mut promotions = self.promotions(view);
            let free = view.free(TierId::FAST);
            let needed = Pages(promotions.len() as u64) + self.reserve - free;
            let demoted = self.demote(needed.0, view, plan);
            // Where others fill the tier, those without room wait for their next sample.
            promotions.truncate((free + Pages(demoted) - self.reserve).0 as usize);
            plan.moves.extend(promotions.into_iter().map(|page| Move { page, to: TierId::FAST }));
        }
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            let stays = matches!(status, MoveStatus::NoRoom | MoveStatus::Busy | MoveStatus::Denied);
            if stays && step.to != TierId::FAST {
                self.queue(step.page, LEAVING);
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let waiting = (self.entering.capacity() + self.leaving.capacity()) * size_of::<PageId>();
        let structures = self.cache.bytes() + size_of_val(&self.queued[..]) + waiting;
        Bytes(structures as u64 + self.sampling.batch as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "listed-pages", value: self.cache.len() as f64 });
        gauges.extend(self.cache.gauge());
    }
}

#[cfg(test)]
mod tests;
