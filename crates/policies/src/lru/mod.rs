//! Exact LRU over sampled accesses: the textbook baseline of recency.
//!
//! The list holds the most recently sampled pages, at most as many as the fast tier should hold. A sampled
//! slow page is promoted; pages that fall off the list's end are demoted. Fast pages that were never sampled
//! are older than every sampled one: the page table is searched for them when room is needed and while there
//! are some.
//!
//! **Deviations from the textbook**: samples stand for accesses, pages move once a batch, and a share of the
//! tier stays free; see `docs/reference/policies.md`.

use crate::prelude::*;
use crate::replacement::list::Lists;
pub(crate) use crate::replacement::settings::LruSettings as Settings;
use crate::replacement::settings::rate;
use crate::support::SAMPLE_BYTES;
use crate::support::prefetch::{CHUNK, Chunk};
use crate::support::round::Round;

const LIST: usize = 0;
const SCAN: usize = 1024;

#[derive(Debug)]
pub(crate) struct Lru {
    settings: Settings,
    order: Lists<1>,
    wanted: Vec<PageId>,
    cursor: PageId,
    /// Used pages that a whole search did not find: the host's own reserve.
    phantom: u64,
    found: Vec<(PageId, TierId)>,
    work: Work,
}

impl Lru {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        Self {
            settings: Settings::read(parameters),
            order: Lists::new(setup.pages),
            wanted: Vec::new(),
            cursor: PageId(0),
            phantom: 0,
            found: Vec::with_capacity(SCAN),
            work: Work::default(),
        }
    }

    fn touch(&mut self, page: PageId) {
        if self.order.contains(page) {
            self.order.renew(LIST, page);
        } else {
            self.order.push_newest(LIST, page);
        }
    }

    fn remove(&mut self, page: PageId) {
        if self.order.contains(page) {
            self.order.remove(LIST, page);
        }
    }

    fn overflow(&self, view: &dyn View) -> u64 {
        let capacity = view.capacity(TierId::FAST);
        let kept = (capacity.0 as f64 * self.settings.free_reserve).ceil() as u64;
        let used = capacity - view.free(TierId::FAST);
        (used.0 + self.wanted.len() as u64).saturating_sub(capacity.0.saturating_sub(kept))
    }

    /// Enters fast pages that were never sampled at the list's end, until there are `needed` or no more.
    fn adopt(&mut self, needed: u64, view: &mut dyn View) {
        let used = view.capacity(TierId::FAST) - view.free(TierId::FAST);
        let listed = (self.order.len(LIST) - self.wanted.len()) as u64;
        let mut missing = used.0.saturating_sub(listed);
        if missing <= self.phantom {
            return;
        }
        let (mut round, mut adopted) = (Round::from(self.cursor), 0);
        while adopted < needed && missing > 0 && !round.complete {
            let before = self.order.len(LIST);
            round.proceed(self.adopt_chunk(round.cursor, view));
            let new = (self.order.len(LIST) - before) as u64;
            adopted += new;
            missing = missing.saturating_sub(new);
        }
        self.cursor = round.cursor;
        if round.complete {
            self.phantom = missing;
        }
    }

    fn adopt_chunk(&mut self, cursor: PageId, view: &mut dyn View) -> Option<PageId> {
        self.found.clear();
        let next = view.walk(cursor, SCAN, &mut self.found);
        self.work.touches += self.found.len() as u64;
        for &(page, tier) in self.found.iter().rev() {
            if tier == TierId::FAST && !self.order.contains(page) {
                self.order.push_oldest(LIST, page);
            }
        }
        next
    }

    /// Takes `count` pages off the list's end and plans to demote those that are in the fast tier.
    fn evict(&mut self, count: u64, view: &dyn View, plan: &mut Plan) {
        for _ in 0..count {
            let Some(page) = self.order.pop_oldest(LIST) else { return };
            if view.tier_of(page) == Some(TierId::FAST) {
                plan.moves.push(Move { page, to: TierId::FAST.slower() });
            }
            self.work.touches += 3;
        }
    }
}

impl Policy for Lru {
    fn signals(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples)
    }

    fn sampling(&self) -> Sampling {
        let rate = rate(self.settings.sampling_frequency, self.settings.sampling_period);
        Sampling::loads(rate, SamplingScope::AllTiers, self.settings.batch, Nanos::SECOND)
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.order.grow(view.pages());
        for samples in batch.samples.chunks(CHUNK) {
            let chunk = Chunk::of(samples, view);
            self.order.approach(chunk.pages());
            for (sample, &tier) in samples.iter().zip(chunk.tiers()) {
                let (page, Some(tier)) = (sample.page, tier) else { continue };
                if tier != TierId::FAST && !self.order.contains(page) {
                    self.wanted.push(page);
                }
                self.touch(page);
            }
        }
        // The page's own links, those of its old neighbours and those of the former head.
        self.work.touches += 4 * batch.samples.len() as u64;
    }

    fn step(&mut self, _now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        if view.tiers() > 1 && !self.wanted.is_empty() {
            let overflow = self.overflow(view);
            if overflow > 0 {
                self.adopt(overflow, view);
                self.evict(overflow, view, plan);
            }
            let listed = self.wanted.iter().filter(|&&page| self.order.contains(page));
            plan.moves.extend(listed.map(|&page| Move { page, to: TierId::FAST }));
        }
        self.wanted.clear();
        plan.work = self.work.take();
    }

    fn settle(&mut self, plan: &Plan, outcome: &Outcome, _view: &mut dyn View) {
        for (step, status) in plan.moves.iter().zip(&outcome.moves) {
            let stays = !matches!(status, MoveStatus::Moved | MoveStatus::AlreadyThere | MoveStatus::Gone);
            match (step.to == TierId::FAST, stays) {
                // A victim that cannot leave now is in use: it counts as just accessed.
                (false, true) => self.touch(step.page),
                // A slow page may be wanted again once it is sampled again.
                (true, true) => self.remove(step.page),
                _ if *status == MoveStatus::Gone => self.remove(step.page),
                _ => {}
            }
        }
    }

    fn metadata(&self) -> Bytes {
        let buffers = size_of_val(&self.found[..]) + self.wanted.capacity() * size_of::<PageId>();
        Bytes((self.order.bytes() + buffers) as u64 + self.settings.batch as u64 * SAMPLE_BYTES)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        gauges.push(Gauge { name: "listed-pages", value: self.order.len(LIST) as f64 });
    }
}

#[cfg(test)]
mod tests;
