//! Defines where pages are: the simulated page table, its allocation and the kernel's reclaim.

use isotherm_core::{Allocation, MoveStatus, PageId, Pages, TierId};

/// Marks a page that has not been touched yet.
const UNMAPPED: u8 = 0x0f;
const TIER_MASK: u8 = 0x0f;
/// The accessed bit, set by every access and cleared by reclaim.
const REFERENCED: u8 = 0x10;

/// Answers which tier serves the next access. One implementation is a page table, others know the future.
pub(crate) trait Locator {
    /// The tier that serves the access number `index` to `page`.
    fn serve(&mut self, index: usize, page: u32) -> u8;

    /// An interval begins with the access number `first_access`.
    fn interval(&mut self, first_access: usize) {
        let _ = first_access;
    }
}

/// The page table of the simulated machine: one byte a page.
#[derive(Debug, Clone)]
pub(crate) struct PageTable {
    state: Vec<u8>,
    capacity: Vec<u64>,
    used: Vec<u64>,
    /// Pages of each tier that only the kernel may allocate.
    reserve: Vec<u64>,
    allocation: Allocation,
    clock_hand: usize,
}

impl PageTable {
    /// An empty page table for `pages` pages. `capacity` holds a size for each tier, fastest first; the last one must
    /// hold what the others do not. A `reserve`d share of every tier but the last is kept from allocation.
    pub(crate) fn new(pages: usize, capacity: Vec<u64>, reserve: f64, allocation: Allocation) -> Self {
        let last = capacity.len() - 1;
        let share =
            |(tier, &pages): (usize, &u64)| if tier == last { 0 } else { (pages as f64 * reserve) as u64 };
        Self {
            state: vec![UNMAPPED; pages],
            used: vec![0; capacity.len()],
            reserve: capacity.iter().enumerate().map(share).collect(),
            capacity,
            allocation,
            clock_hand: 0,
        }
    }

    pub(crate) fn tiers(&self) -> usize {
        self.capacity.len()
    }

    pub(crate) fn pages(&self) -> usize {
        self.state.len()
    }

    pub(crate) fn capacity(&self, tier: TierId) -> Pages {
        Pages(self.capacity.get(tier.index()).copied().unwrap_or(0))
    }

    pub(crate) fn free(&self, tier: TierId) -> Pages {
        self.capacity(tier) - Pages(self.used.get(tier.index()).copied().unwrap_or(0))
    }

    pub(crate) fn tier_of(&self, page: PageId) -> Option<TierId> {
        let tier = self.state.get(page.index())? & TIER_MASK;
        (tier != UNMAPPED).then_some(TierId(tier))
    }

    /// Maps a new page: the first tier, in the order of the allocation policy, with room above its reserve.
    #[cold]
    fn allocate(&mut self, page: usize) -> u8 {
        let last = self.tiers() - 1;
        let has_room = |tier: &usize| self.used[*tier] + self.reserve[*tier] < self.capacity[*tier];
        let found = match self.allocation {
            Allocation::FastFirst => (0..=last).find(has_room),
            Allocation::SlowFirst => (0..=last).rev().find(has_room),
        };
        let tier = found.unwrap_or(last);
        self.used[tier] += 1;
        self.state[page] = tier as u8 | REFERENCED;
        tier as u8
    }

    /// Moves one page, as `move_pages(2)` does.
    pub(crate) fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let Some(from) = self.tier_of(page) else { return MoveStatus::Gone };
        if to.index() >= self.tiers() {
            return MoveStatus::Gone;
        }
        if from == to {
            return MoveStatus::AlreadyThere;
        }
        if self.free(to).0 == 0 {
            return MoveStatus::NoRoom;
        }
        self.used[from.index()] -= 1;
        self.used[to.index()] += 1;
        let state = &mut self.state[page.index()];
        *state = (*state & REFERENCED) | to.0;
        MoveStatus::Moved
    }

    /// Takes the next page of `tier` that the kernel's LRU would reclaim, and counts the pages looked at.
    ///
    /// A clock with second chance over the pages in address order, as an approximation of the inactive list: a page
    /// referenced since the hand last passed stays. `None` where the tier is empty.
    pub(crate) fn next_victim(&mut self, tier: TierId, scanned: &mut u64) -> Option<PageId> {
        if self.used.get(tier.index()).is_none_or(|&used| used == 0) {
            return None;
        }
        loop {
            let page = self.clock_hand;
            self.clock_hand = if page + 1 == self.state.len() { 0 } else { page + 1 };
            let state = &mut self.state[page];
            if *state & TIER_MASK != tier.0 {
                continue;
            }
            *scanned += 1;
            if *state & REFERENCED == 0 {
                return Some(PageId(page as u32));
            }
            *state &= !REFERENCED;
        }
    }

    /// Appends mapped pages from `cursor` on, at most `limit`, and says where to go on and how many entries it read.
    pub(crate) fn walk(
        &self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId)>,
    ) -> (Option<PageId>, u64) {
        let start = cursor.index();
        let end = found.len() + limit;
        for (offset, &state) in self.state[start.min(self.state.len())..].iter().enumerate() {
            if found.len() == end {
                return (Some(PageId((start + offset) as u32)), offset as u64);
            }
            let tier = state & TIER_MASK;
            if tier != UNMAPPED {
                found.push((PageId((start + offset) as u32), TierId(tier)));
            }
        }
        (None, self.state.len().saturating_sub(start) as u64)
    }

    /// Places a page without cost or limit; for the oracle, which knows what fits.
    pub(crate) fn place(&mut self, page: u32, tier: u8) {
        let state = &mut self.state[page as usize];
        if *state & TIER_MASK != UNMAPPED {
            self.used[usize::from(*state & TIER_MASK)] -= 1;
        }
        self.used[usize::from(tier)] += 1;
        *state = (*state & REFERENCED) | tier;
    }
}

impl Locator for PageTable {
    #[inline]
    fn serve(&mut self, _index: usize, page: u32) -> u8 {
        let state = &mut self.state[page as usize];
        let tier = *state & TIER_MASK;
        *state |= REFERENCED;
        if tier == UNMAPPED { self.allocate(page as usize) } else { tier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fast: u64) -> PageTable {
        PageTable::new(8, vec![fast, 100], 0.0, Allocation::FastFirst)
    }

    #[test]
    fn new_pages_fill_the_fast_tier_first_and_leave_its_reserve() {
        let mut table = PageTable::new(20, vec![10, 100], 0.2, Allocation::FastFirst);
        let tiers: Vec<u8> = (0..12).map(|page| table.serve(0, page)).collect();
        assert_eq!(tiers, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(table.free(TierId::FAST), Pages(2));
    }

    #[test]
    fn moves_report_what_the_kernel_would() {
        let mut table = table(1);
        table.serve(0, 0);
        table.serve(0, 1);
        assert_eq!(table.relocate(PageId(1), TierId::FAST), MoveStatus::NoRoom);
        assert_eq!(table.relocate(PageId(0), TierId(1)), MoveStatus::Moved);
        assert_eq!(table.relocate(PageId(0), TierId(1)), MoveStatus::AlreadyThere);
        assert_eq!(table.relocate(PageId(1), TierId::FAST), MoveStatus::Moved);
        assert_eq!(table.relocate(PageId(5), TierId::FAST), MoveStatus::Gone);
        assert_eq!(table.relocate(PageId(500), TierId::FAST), MoveStatus::Gone);
        assert_eq!(table.relocate(PageId(0), TierId(7)), MoveStatus::Gone);
    }

    #[test]
    fn reclaim_spares_pages_referenced_since_its_last_round() {
        let mut table = table(4);
        (0..4).for_each(|page| _ = table.serve(0, page));
        let mut scanned = 0;
        assert_eq!(
            table.next_victim(TierId::FAST, &mut scanned),
            Some(PageId(0)),
            "all were referenced: the first"
        );
        assert_eq!(scanned, 5, "a whole round cleared the bits");
        table.serve(0, 1);
        assert_eq!(table.next_victim(TierId::FAST, &mut scanned), Some(PageId(2)), "1 was referenced again");
    }

    #[test]
    fn a_walk_resumes_and_ends() {
        let mut table = table(8);
        [1, 3, 6].into_iter().for_each(|page| _ = table.serve(0, page));
        let mut found = Vec::new();
        let (next, _) = table.walk(PageId(0), 2, &mut found);
        assert_eq!(found.iter().map(|entry| entry.0.0).collect::<Vec<_>>(), [1, 3]);
        let (next, _) = table.walk(next.expect("not at the end"), 2, &mut found);
        assert_eq!((next, found.len()), (None, 3));
        assert_eq!(table.walk(PageId(99), 2, &mut found), (None, 0));
    }
}
