//! The view of memory of a policy in a library: the program's, through the functions that it passes.

use std::ops::Range;

use isotherm_core::{Nanos, PageId, PageSize, Pages, TierId, View};

use crate::abi::{END, Found, Memory, NOWHERE, Ranges, Slice, Tier};

/// The program's memory for the time of a call.
pub(crate) struct Remote<'a> {
    memory: &'a Memory,
    tiers: &'a [Tier],
}

impl<'a> Remote<'a> {
    /// Reads memory through what the program passed.
    ///
    /// # Safety
    /// All that `memory` points to is valid while the view is used.
    pub(crate) unsafe fn new(memory: &'a Memory) -> Self {
        // SAFETY: by this function's contract.
        Self { memory, tiers: unsafe { memory.tiers.get() } }
    }

    fn range(&self, function: Ranges, page: PageId) -> Range<u32> {
        let mut end = 0;
        // SAFETY: the context is the one that belongs to the function, and `end` is a place to write to.
        let start = unsafe { function(self.memory.context, page, &raw mut end) };
        start..end
    }

    fn find(&mut self, cursor: PageId, limit: usize, scan: bool) -> (&[Found], Option<PageId>) {
        let mut found = Slice::default();
        let Memory { context, walk, .. } = *self.memory;
        // SAFETY: the context is the one that belongs to the function, and `found` is a place to write to.
        let next = unsafe { walk(context, cursor, limit as u64, scan, &raw mut found) };
        let next = (next != END).then_some(PageId(next as u32));
        // SAFETY: what was found is valid until the next call, for which this borrow must end.
        (unsafe { found.get() }, next)
    }
}

impl View for Remote<'_> {
    fn tiers(&self) -> usize {
        self.tiers.len()
    }

    fn page_size(&self) -> PageSize {
        self.memory.page_size
    }

    fn latency(&self, tier: TierId) -> Nanos {
        self.tiers[tier.index()].latency
    }

    fn bandwidth(&self, tier: TierId) -> u64 {
        self.tiers[tier.index()].bandwidth
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.tiers[tier.index()].capacity
    }

    fn free(&self, tier: TierId) -> Pages {
        self.tiers[tier.index()].free
    }

    fn pages(&self) -> usize {
        self.memory.pages as usize
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        let mut tier = [None];
        self.tiers_of(&[page], &mut tier);
        tier[0]
    }

    fn tiers_of(&self, pages: &[PageId], tiers: &mut [Option<TierId>]) {
        let Memory { context, tiers_of, .. } = *self.memory;
        let mut numbers = [NOWHERE; 64];
        for (pages, tiers) in pages.chunks(64).zip(tiers.chunks_mut(64)) {
            // SAFETY: the context is the one that belongs to the function, which writes a byte for each of at
            // most 64 pages.
            unsafe { tiers_of(context, Slice::of(pages), numbers.as_mut_ptr()) };
            for (tier, &number) in tiers.iter_mut().zip(&numbers) {
                *tier = (number != NOWHERE).then_some(TierId(number));
            }
        }
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        let (pages, next) = self.find(cursor, limit, false);
        found.extend(pages.iter().map(|page| (page.page, page.tier)));
        next
    }

    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId> {
        let (pages, next) = self.find(cursor, limit, true);
        found.extend(pages.iter().map(|page| (page.page, page.tier, page.accessed)));
        next
    }

    fn huge_range(&self, page: PageId) -> Range<u32> {
        self.range(self.memory.huge_range, page)
    }

    fn unit(&self, page: PageId) -> Range<u32> {
        self.range(self.memory.unit, page)
    }
}
