//! The machine under the engine.

use std::ops::Range;

use crate::{
    Bytes, Nanos, Outcome, PageId, PageSize, Pages, Plan, SampleBatch, Sampling, Signal, Signals, TierId,
    Work,
};

/// A policy's view of memory: the places of pages and the free room.
pub trait View {
    /// Returns the number of tiers; at least 1.
    fn tiers(&self) -> usize;

    /// Returns the page size of the run.
    fn page_size(&self) -> PageSize;

    /// Returns the latency of a load from the idle tier, as measured, or from the firmware or a profile.
    fn latency(&self, tier: TierId) -> Nanos;

    /// Returns the bandwidth at which the tier is read, in bytes a second, from the firmware or a profile; 0
    /// where nobody tells.
    fn bandwidth(&self, _tier: TierId) -> u64 {
        0
    }

    /// Returns the tier's size.
    fn capacity(&self, tier: TierId) -> Pages;

    /// Returns the tier's free pages.
    fn free(&self, tier: TierId) -> Pages;

    /// Returns one more than the largest page so far: the length of an array indexed by page. It grows while
    /// a program runs live, and so do the pages of samples and faults.
    fn pages(&self) -> usize;

    /// Returns the page's tier; `None` while it is not mapped.
    fn tier_of(&self, page: PageId) -> Option<TierId>;

    /// Writes each page's tier to the same place of `tiers`: in one call the lookups' cache misses overlap.
    fn tiers_of(&self, pages: &[PageId], tiers: &mut [Option<TierId>]) {
        for (tier, &page) in tiers.iter_mut().zip(pages) {
            *tier = self.tier_of(page);
        }
    }

    /// Appends at most `limit` mapped pages in address order from `cursor`. Returns where to go on, or `None`
    /// at the end of the address space. The host charges it as a read of the page table
    /// (`/proc/PID/pagemap`).
    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId>;

    /// Walks as [`Self::walk`] does, and tests and clears whether each page was accessed since the last scan.
    /// Needs [`Signal::AccessedBits`]; the host charges it.
    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId>;

    /// Returns the pages of the 2 MiB-aligned range that `page` lies in: itself, if pages are huge.
    fn huge_range(&self, page: PageId) -> Range<u32>;

    /// Returns the pages that move together with `page`: its [`Self::huge_range`] where the kernel maps that
    /// as one huge page now, else itself alone.
    fn unit(&self, page: PageId) -> Range<u32> {
        page.0..page.0 + 1
    }
}

/// A machine that the engine can run on.
pub trait Host {
    /// Returns the signals that this host can provide.
    fn offers(&self) -> Signals;

    /// Returns one sentence for the user: the change that would provide a missing signal.
    fn remedy(&self, missing: Signal) -> String;

    /// Returns the places of the pages.
    fn view(&mut self) -> &mut dyn View;

    /// Returns the time now.
    fn now(&self) -> Nanos;

    /// Starts or changes sampling.
    fn sample(&mut self, request: Sampling);

    /// Lets the program run until the request's batch of samples and hint faults is full or its tick has
    /// passed, and fills `batch`. Returns false when the program has ended; `batch` then holds the rest.
    fn advance(&mut self, batch: &mut SampleBatch) -> bool;

    /// Charges the policy's own computation and sleep; the program runs on meanwhile.
    fn spend(&mut self, work: Work, metadata: Bytes, sleep: Nanos);

    /// Carries out the plan while the program runs on, and reports the result of each request.
    fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome);
}
