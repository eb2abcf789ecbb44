//! Algorithm 2 (FreqTier, sections IV-C and V-B 1, Fig. 7): a linear scan for cold pages that goes on where it stopped.

use isotherm_core::{Move, PageId, Plan, TierId, View, Work};
use isotherm_trackers::Tracker;

use super::threshold::HotThreshold;
use crate::round::Round;

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// It found as many cold pages as were wanted.
    Enough,
    /// It went once around the address space and found fewer.
    Short,
    /// It went once around and found none.
    Empty,
}

/// The scan's place in the address space, and its buffers.
#[derive(Debug, Clone)]
pub(super) struct DemotionScan {
    /// LastScannedPage: where the next scan begins.
    cursor: PageId,
    /// Pages read from the page table at once.
    batch: usize,
    found: Vec<(PageId, TierId)>,
    fast: Vec<u32>,
    counts: Vec<u32>,
}

impl DemotionScan {
    /// A scan from the start of the address space, in batches of `batch` pages.
    pub(super) fn new(batch: usize) -> Self {
        Self { cursor: PageId(0), batch, found: Vec::new(), fast: Vec::new(), counts: Vec::new() }
    }

    /// Puts the cursor where a test wants it.
    #[cfg(test)]
    pub(super) fn begin_at(&mut self, page: PageId) {
        self.cursor = page;
    }

    /// The memory of the buffers.
    pub(super) fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(PageId, TierId)>()
            + (self.fast.capacity() + self.counts.capacity()) * size_of::<u32>()
    }

    /// Plans to demote `wanted` cold pages of the fast tier, going once around the address space at most.
    pub(super) fn run(
        &mut self,
        wanted: u64,
        filter: &dyn Tracker,
        threshold: &HotThreshold,
        view: &mut dyn View,
        plan: &mut Plan,
        work: &mut Work,
    ) -> Scan {
        let (mut round, mut left) = (Round::from(self.cursor), wanted);
        while left > 0 && !round.is_complete() {
            self.found.clear();
            let next = view.walk(round.cursor(), self.batch, &mut self.found);
            self.found.retain(|&(page, _)| round.is_new(page));
            round.proceed(next);
            self.cursor = round.cursor();
            left -= self.demote_cold(left, filter, threshold, plan, work);
        }
        match left {
            0 => Scan::Enough,
            _ if left == wanted => Scan::Empty,
            _ => Scan::Short,
        }
    }

    /// Looks the batch's fast pages up and plans to demote the cold ones, at most `limit`; returns how many. Behind the
    /// last of them it puts the cursor.
    fn demote_cold(
        &mut self,
        limit: u64,
        filter: &dyn Tracker,
        threshold: &HotThreshold,
        plan: &mut Plan,
        work: &mut Work,
    ) -> u64 {
        self.fast.clear();
        self.fast.extend(self.found.iter().filter(|entry| entry.1 == TierId::FAST).map(|entry| entry.0.0));
        filter.get_batch(&self.fast, &mut self.counts);
        work.operations += self.found.len() as u64;
        work.touches += self.fast.len() as u64 * u64::from(filter.lines());
        let mut demoted = 0;
        for (&page, &count) in self.fast.iter().zip(&self.counts) {
            if threshold.is_hot(PageId(page), count) {
                continue;
            }
            plan.moves.push(Move { page: PageId(page), to: TierId::FAST.slower() });
            demoted += 1;
            if demoted == limit {
                self.cursor = PageId(page + 1);
                break;
            }
        }
        demoted
    }
}
