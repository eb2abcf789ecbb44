//! The tier of every page, in one byte per page, and the fill of each tier.

use isotherm_core::{MoveStatus, PageId, Pages, Placing, TierId};

const TIER: u8 = 0x07;
/// Not known to be mapped.
const ABSENT: u8 = 0x07;
/// Accessed since the reclaim hand passed.
const REFERENCED: u8 = 0x08;
/// Seen by the current scan.
const SEEN: u8 = 0x10;
/// Bits that count successive scans without the page: a source may hold a page for a moment.
const MISSES: u8 = 0x60;
const MISS: u8 = 0x20;
/// Held by a source until it is accessed, so that no scan sees it.
const ARMED: u8 = 0x80;

/// The tier of every page: the real one, or the virtual one of shadow tiers.
#[derive(Debug)]
pub(crate) struct Residency {
    pages: Vec<u8>,
    used: Vec<u64>,
    capacity: Vec<u64>,
    hands: Vec<usize>,
}

impl Residency {
    /// Returns tiers without pages. `capacity` is in pages, fastest first; the slowest tier is never full.
    pub(crate) fn new(capacity: Vec<u64>) -> Self {
        let tiers = capacity.len();
        Self { pages: Vec::new(), used: vec![0; tiers], capacity, hands: vec![0; tiers] }
    }

    pub(crate) fn tiers(&self) -> usize {
        self.capacity.len()
    }

    pub(crate) fn capacity(&self, tier: TierId) -> Pages {
        Pages(self.capacity.get(tier.index()).copied().unwrap_or(0))
    }

    pub(crate) fn resize(&mut self, tier: TierId, pages: u64) {
        if let Some(capacity) = self.capacity.get_mut(tier.index()) {
            *capacity = pages;
        }
    }

    pub(crate) fn used(&self, tier: TierId) -> Pages {
        Pages(self.used.get(tier.index()).copied().unwrap_or(0))
    }

    /// Returns how many pages of each tier the last scan found: the others are probably gone.
    pub(crate) fn found(&self) -> Vec<Pages> {
        let mut found = self.used.clone();
        for state in self.pages.iter().filter(|state| **state & MISSES != 0 && **state & TIER != ABSENT) {
            found[(state & TIER) as usize] -= 1;
        }
        found.into_iter().map(Pages).collect()
    }

    /// Returns whether the last scan missed a page.
    pub(crate) fn missed(&self, page: PageId) -> bool {
        self.pages.get(page.index()).is_some_and(|state| state & MISSES != 0)
    }

    pub(crate) fn free(&self, tier: TierId) -> Pages {
        self.capacity(tier) - self.used(tier)
    }

    pub(crate) fn mapped(&self) -> Pages {
        Pages(self.used.iter().sum())
    }

    pub(crate) fn tier_of(&self, page: PageId) -> Option<TierId> {
        let tier = self.pages.get(page.index())? & TIER;
        (tier != ABSENT).then_some(TierId(tier))
    }

    /// Returns the tier for a new page, of those with room.
    pub(crate) fn place(&self, placing: &mut Placing) -> TierId {
        let last = self.tiers() - 1;
        let has_room = |&tier: &usize| tier == last || self.used[tier] < self.capacity[tier];
        TierId(placing.next(self.tiers(), has_room).unwrap_or(last) as u8)
    }

    pub(crate) fn map(&mut self, page: PageId, tier: TierId) {
        if page.index() >= self.pages.len() {
            self.pages.resize(page.index() + 1, ABSENT);
        }
        let state = &mut self.pages[page.index()];
        if *state & TIER != ABSENT {
            self.used[(*state & TIER) as usize] -= 1;
        }
        *state = *state & !TIER | tier.0;
        self.used[tier.index()] += 1;
    }

    pub(crate) fn unmap(&mut self, page: PageId) {
        let Some(state) = self.pages.get_mut(page.index()) else { return };
        if *state & TIER != ABSENT {
            self.used[(*state & TIER) as usize] -= 1;
        }
        *state = ABSENT;
    }

    #[inline]
    pub(crate) fn peek(&self, page: PageId) -> u32 {
        self.pages.get(page.index()).copied().map_or(0, u32::from)
    }

    /// Marks the page as accessed; returns its tier if it is mapped.
    pub(crate) fn touch(&mut self, page: PageId) -> Option<TierId> {
        let state = self.pages.get_mut(page.index())?;
        *state |= REFERENCED;
        let tier = *state & TIER;
        (tier != ABSENT).then_some(TierId(tier))
    }

    pub(crate) fn see(&mut self, page: PageId) {
        if let Some(state) = self.pages.get_mut(page.index()) {
            *state |= SEEN;
        }
    }

    pub(crate) fn set_armed(&mut self, page: PageId, armed: bool) {
        if let Some(state) = self.pages.get_mut(page.index()) {
            *state = *state & !ARMED | if armed { ARMED } else { 0 };
        }
    }

    /// Ends a scan: unmaps pages missed by three scans and held by no source; returns the mapped rest.
    pub(crate) fn sweep(&mut self, pages: std::ops::Range<u32>) -> u32 {
        let mut mapped = 0;
        for page in pages {
            let Some(state) = self.pages.get_mut(page as usize) else { break };
            if *state & TIER == ABSENT {
                continue;
            }
            if *state & (SEEN | ARMED) != 0 {
                *state &= !(SEEN | MISSES);
            } else if *state & MISSES == MISSES - MISS {
                self.unmap(PageId(page));
                continue;
            } else {
                *state += MISS;
            }
            mapped += 1;
        }
        mapped
    }

    /// Moves a page between virtual tiers, if there is room.
    pub(crate) fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        match self.tier_of(page) {
            None => MoveStatus::Gone,
            Some(from) if from == to => MoveStatus::AlreadyThere,
            Some(_) if to.index() >= self.tiers() => MoveStatus::Gone,
            Some(_) if to.index() + 1 < self.tiers() && self.free(to).0 == 0 => MoveStatus::NoRoom,
            Some(_) => {
                self.map(page, to);
                MoveStatus::Moved
            }
        }
    }

    /// Picks pages without an access since the hand passed (CLOCK), of those that the last scan found; it
    /// goes round at most twice. Appends the accessed ones that it met to `spared`.
    pub(crate) fn victims(
        &mut self,
        tier: TierId,
        wanted: u64,
        victims: &mut Vec<PageId>,
        spared: &mut Vec<PageId>,
    ) {
        let pages = self.pages.len();
        let Some(hand) = self.hands.get_mut(tier.index()) else { return };
        let mut left = wanted;
        for _ in 0..2 * pages {
            if left == 0 {
                break;
            }
            *hand = if *hand + 1 < pages { *hand + 1 } else { 0 };
            let state = &mut self.pages[*hand];
            if *state & TIER != tier.0 || *state & MISSES != 0 {
                continue;
            }
            if *state & REFERENCED != 0 {
                *state &= !REFERENCED;
                spared.push(PageId(*hand as u32));
            } else {
                victims.push(PageId(*hand as u32));
                left -= 1;
            }
        }
    }

    /// Walks at most `limit` mapped pages from `cursor`; returns where to go on.
    pub(crate) fn walk(
        &self,
        cursor: PageId,
        limit: usize,
        mut found: impl FnMut(PageId, TierId),
    ) -> Option<PageId> {
        let mut left = limit;
        for (page, state) in self.pages.iter().enumerate().skip(cursor.index()) {
            if state & TIER == ABSENT {
                continue;
            }
            if left == 0 {
                return Some(PageId(page as u32));
            }
            found(PageId(page as u32), TierId(state & TIER));
            left -= 1;
        }
        None
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pages.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_tiers(fast: u64, pages: u32) -> Residency {
        let mut residency = Residency::new(vec![fast, 1000]);
        (0..pages).for_each(|page| {
            let tier = residency.place(&mut Placing::default());
            residency.map(PageId(page), tier);
        });
        residency
    }

    #[test]
    fn new_pages_fill_the_fast_tier_first_and_moves_need_room() {
        let mut residency = two_tiers(2, 3);
        assert_eq!(residency.tier_of(PageId(1)), Some(TierId(0)));
        assert_eq!(residency.tier_of(PageId(2)), Some(TierId(1)));
        assert_eq!(residency.relocate(PageId(2), TierId(0)), MoveStatus::NoRoom);
        assert_eq!(residency.relocate(PageId(0), TierId(1)), MoveStatus::Moved);
        assert_eq!(residency.relocate(PageId(2), TierId(0)), MoveStatus::Moved);
        assert_eq!(residency.relocate(PageId(2), TierId(0)), MoveStatus::AlreadyThere);
        assert_eq!(residency.relocate(PageId(9), TierId(0)), MoveStatus::Gone);
        assert_eq!((residency.used(TierId(0)), residency.used(TierId(1))), (Pages(2), Pages(1)));
    }

    #[test]
    fn pages_unseen_by_three_scans_are_unmapped_unless_a_source_holds_them() {
        let mut residency = two_tiers(2, 4);
        residency.set_armed(PageId(2), true);
        for (scan, left) in [(0, 4), (1, 4), (2, 3)] {
            residency.see(PageId(1));
            if scan == 1 {
                residency.see(PageId(3));
            }
            assert_eq!(residency.sweep(0..4), left, "scan {scan}");
        }
        assert_eq!(residency.tier_of(PageId(0)), None);
        residency.set_armed(PageId(2), false);
        for _ in 0..3 {
            residency.sweep(0..4);
        }
        assert_eq!(residency.mapped(), Pages(0));
    }

    #[test]
    fn reclaim_spares_pages_accessed_since_the_hand_passed() {
        let mut residency = two_tiers(4, 4);
        residency.touch(PageId(1));
        residency.touch(PageId(2));
        let mut victims = Vec::new();
        residency.victims(TierId(0), 2, &mut victims, &mut Vec::new());
        victims.sort_unstable();
        assert_eq!(victims, [PageId(0), PageId(3)]);
        victims.clear();
        residency.victims(TierId(1), 1, &mut victims, &mut Vec::new());
        assert!(victims.is_empty(), "the tier is empty");
    }

    #[test]
    fn regression_pages_that_the_last_scan_missed_neither_count_as_found_nor_are_chosen() {
        let mut residency = two_tiers(3, 4);
        [0, 1, 3].into_iter().for_each(|page| residency.see(PageId(page)));
        residency.sweep(0..4);
        assert_eq!((residency.found(), residency.used(TierId(0))), (vec![Pages(2), Pages(1)], Pages(3)));
        let mut victims = Vec::new();
        residency.victims(TierId(0), 2, &mut victims, &mut Vec::new());
        victims.sort_unstable();
        assert_eq!(victims, [PageId(0), PageId(1)]);
        assert!(residency.missed(PageId(2)) && !residency.missed(PageId(1)));
    }

    #[test]
    fn a_walk_resumes_where_it_stopped() {
        let residency = two_tiers(2, 5);
        let mut found = Vec::new();
        let next = residency.walk(PageId(0), 3, |page, tier| found.push((page.0, tier.0)));
        assert_eq!(next, Some(PageId(3)));
        assert_eq!(residency.walk(PageId(3), 3, |page, tier| found.push((page.0, tier.0))), None);
        assert_eq!(found, [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]);
    }
}
