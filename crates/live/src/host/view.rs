//! The policy's view of the live host.

use std::ops::Range;

use isotherm_core::{Nanos, PageId, PageSize, Pages, TierId, View};

use super::LiveHost;

impl View for LiveHost {
    fn tiers(&self) -> usize {
        self.memory.residency.tiers()
    }

    fn page_size(&self) -> PageSize {
        self.options.page_size
    }

    fn latency(&self, tier: TierId) -> Nanos {
        self.options.tiers[tier.index()].latency
    }

    fn bandwidth(&self, tier: TierId) -> u64 {
        self.options.tiers[tier.index()].bandwidth
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.memory.residency.capacity(tier)
    }

    fn free(&self, tier: TierId) -> Pages {
        self.memory.free(tier)
    }

    fn pages(&self) -> usize {
        self.memory.numbers.pages()
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        self.memory.residency.tier_of(page)
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        self.memory.residency.walk(cursor, limit, |page, tier| found.push((page, tier)))
    }

    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId> {
        let first = found.len();
        let next = self.memory.residency.walk(cursor, limit, |page, tier| found.push((page, tier, false)));
        let (mut ranges, mut answers) =
            (std::mem::take(&mut self.ranges), std::mem::take(&mut self.accessed));
        let step = self.options.page_size.bytes().0;
        let mut index = first;
        while let Some((process, _)) = found.get(index).and_then(|entry| self.memory.numbers.address(entry.0))
        {
            ranges.clear();
            answers.clear();
            let addresses = found[index..].iter().map_while(|entry| {
                self.memory.numbers.address(entry.0).filter(|(owner, _)| *owner == process)
            });
            ranges.extend(addresses.map(|(_, address)| address..address + step));
            self.accessed_bits(process, &ranges, &mut answers);
            for (entry, &accessed) in found[index..].iter_mut().zip(&answers) {
                entry.2 = accessed;
            }
            index += ranges.len();
        }
        (self.ranges, self.accessed) = (ranges, answers);
        next
    }

    fn huge_range(&self, page: PageId) -> Range<u32> {
        self.memory.numbers.chunk_of(page)
    }

    fn unit(&self, page: PageId) -> Range<u32> {
        self.memory.unit(page)
    }
}
