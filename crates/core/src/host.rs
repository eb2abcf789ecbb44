//! Defines the machine under the engine.

use std::ops::Range;

use crate::{
    Bytes, Nanos, Outcome, PageId, PageSize, Pages, Plan, SampleBatch, Sampling, Signal, Signals, TierId,
    Work,
};

/// What a policy may look up: where pages are and what is free.
pub trait View {
    /// The number of tiers; at least 1.
    fn tiers(&self) -> usize;

    /// The page size of the run.
    fn page_size(&self) -> PageSize;

    /// The tier's size.
    fn capacity(&self, tier: TierId) -> Pages;

    /// What is free on the tier now.
    fn free(&self, tier: TierId) -> Pages;

    /// One more than the largest page there can be: the length of an array indexed by page.
    fn pages(&self) -> usize;

    /// Where the page is; `None` while it is not mapped.
    fn tier_of(&self, page: PageId) -> Option<TierId>;

    /// Where many pages are: of each [`Self::tier_of`], at the same place of `tiers`.
    ///
    /// In one call the cache misses of many lookups overlap.
    fn tiers_of(&self, pages: &[PageId], tiers: &mut [Option<TierId>]) {
        for (tier, &page) in tiers.iter_mut().zip(pages) {
            *tier = self.tier_of(page);
        }
    }

    /// Walks the mapped pages in address order from `cursor`, appending at most `limit` of them to `found`.
    ///
    /// Returns where to go on, or `None` when the end of the address space was reached. The host charges it as a
    /// read of the page table (`/proc/PID/pagemap`).
    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId>;

    /// As [`Self::walk`], and says of each page whether it was accessed since this was last asked, clearing the mark.
    ///
    /// Needs [`Signal::AccessedBits`]. The host charges it as a walk that tests and clears the accessed bits.
    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId>;

    /// The pages whose addresses lie in the same 2 MiB-aligned range as those of `page`: itself, if pages are huge.
    fn huge_range(&self, page: PageId) -> Range<u32>;
}

/// A machine that the engine can run on.
pub trait Host {
    /// What this host can observe and do.
    fn offers(&self) -> Signals;

    /// What would provide a signal that is missing: one sentence for the user.
    fn remedy(&self, missing: Signal) -> String;

    /// Where pages are.
    fn view(&mut self) -> &mut dyn View;

    /// The time now.
    fn now(&self) -> Nanos;

    /// Starts or changes sampling.
    fn sample(&mut self, request: Sampling);

    /// Lets the program run until the batch (samples and hint faults together) or the tick of the sampling request is
    /// full, and fills `batch`.
    ///
    /// Returns false when the program has ended; `batch` then holds what was left.
    fn advance(&mut self, batch: &mut SampleBatch) -> bool;

    /// Charges the policy's own computation and sleep; the program runs on meanwhile.
    fn spend(&mut self, work: Work, metadata: Bytes, sleep: Nanos);

    /// Carries the plan's reclaim, moves and arming out while the program runs on, and says what became of each.
    fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome);
}
