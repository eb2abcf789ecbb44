//! The simulated page table: where pages are, how they are allocated, and how the kernel reclaims them.

use crate::compression::{CLUSTER, Compression, Swapped};
use crate::in_flight::InFlight;
use crate::lru::{List, Lru, Pass};
use crate::page_state::{ACCESSED, ARMED, KEPT, REFERENCED, SHADOWED, TIER_MASK, UNMAPPED, USED};
use crate::page_walk::EntriesRead;
use crate::summary::FastRows;
use isotherm_core::{Allocation, Bytes, MoveStatus, PageId, Pages, Placing, TierId};
use prefetch_index::prefetch_index;

/// Returns whether an access faults in the state that [`Locator::serve`] returned.
#[inline]
pub(crate) fn traps(state: u8, store: u8) -> bool {
    state & (ARMED | (store << SHADOWED.trailing_zeros())) != 0
}

/// Decides which tier serves each access: a page table, or a bound that knows the future.
pub(crate) trait Locator {
    /// Returns the serving tier of access `index` to `page`, in [`TIER_MASK`]'s bits, with the page's state.
    fn serve(&mut self, index: usize, page: u32) -> u8;

    /// Has the processor fetch what [`Self::serve`] will need.
    fn prefetch(&self, _page: u32) {}

    /// Has the processor fetch what [`Self::serve`] will need beside that if the page is new. Call it once
    /// the page itself has been fetched.
    fn prefetch_new(&self, _page: u32) {}

    /// Handles the trap of an access to `page`. Returns whether the page was armed.
    fn trap(&mut self, _page: u32, _store: bool) -> bool {
        false
    }

    /// Returns until when an access at `clock` waits for its page, in picoseconds; `None` if it is not being
    /// copied.
    fn lands(&self, _page: u32, _clock: u64) -> Option<u64> {
        None
    }

    /// Brings a stored page back, or pays for the room of a new one. Returns what that took; `None` where the
    /// access faults for another reason.
    fn swap_in(&mut self, _page: u32) -> Option<Swapped> {
        None
    }

    /// Reports the stall in picoseconds of the access to `page` just served.
    fn stalled(&mut self, _page: u32, _store: bool, _stall: u64) {}

    fn interval(&mut self, _first_access: usize) {}

    /// Ends a round: the next access is the stream's first.
    fn rewind(&mut self) {}

    /// Returns where fast pages are; `None` where no page has a place between its accesses.
    fn fast_rows(&self) -> Option<&FastRows> {
        None
    }
}

/// The page table of the simulated machine, one byte per page.
#[derive(Debug, Clone)]
pub(crate) struct PageTable {
    state: Vec<u8>,
    capacity: Vec<u64>,
    used: Vec<u64>,
    /// Shadow copies in each tier, beside its pages.
    shadows: Vec<u64>,
    max_shadows: u64,
    /// Pages of each tier that only the kernel may allocate.
    reserve: Vec<u64>,
    reserve_share: f64,
    placing: Placing,
    reclaim: Reclaim,
    fast_rows: FastRows,
    /// The slowest tier, if it is one of compressed pages.
    compression: Option<Compression>,
    /// Work for the room of a page that has just been allocated.
    owed: Option<Swapped>,
    /// Pages that trap as armed ones do.
    in_flight: InFlight,
}

/// How the kernel finds cold pages: the profile's `costs.reclaim_lists`.
#[derive(Debug, Clone)]
enum Reclaim {
    /// A clock with second chance over all pages in address order.
    Clock { hand: usize },
    /// An inactive and an active list.
    Lists(Lru),
}

impl PageTable {
    /// `capacity` holds each tier's pages, fastest first; the last must have room for what does not fit the
    /// others. A `reserve`d share of every tier but the last is not allocated.
    pub(crate) fn new(pages: usize, capacity: Vec<u64>, reserve: f64, allocation: Allocation) -> Self {
        let last = capacity.len() - 1;
        let share =
            |(tier, &pages): (usize, &u64)| if tier == last { 0 } else { (pages as f64 * reserve) as u64 };
        Self {
            state: vec![UNMAPPED; pages],
            used: vec![0; capacity.len()],
            shadows: vec![0; capacity.len()],
            max_shadows: 0,
            reserve: capacity.iter().enumerate().map(share).collect(),
            reserve_share: reserve,
            capacity,
            placing: Placing::new(allocation),
            reclaim: Reclaim::Clock { hand: 0 },
            fast_rows: FastRows::new(pages),
            compression: None,
            owed: None,
            in_flight: InFlight::default(),
        }
    }

    /// Makes the slowest tier one of compressed pages. Call it before any access.
    pub(crate) fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    pub(crate) fn compression(&self) -> Option<&Compression> {
        self.compression.as_ref()
    }

    /// Returns the slowest tier whose pages can be accessed.
    pub(crate) fn slowest_memory(&self) -> TierId {
        TierId((self.tiers() - 1 - usize::from(self.compression.is_some())) as u8)
    }

    /// Returns in which tier's memory a page of `tier` is held, and its bytes there.
    pub(crate) fn holds(&self, page: PageId, tier: TierId, size: Bytes) -> (TierId, Bytes) {
        match &self.compression {
            Some(stored) if self.is_compressed(tier) => (self.slowest_memory(), stored.size(page)),
            _ => (tier, size),
        }
    }

    fn is_compressed(&self, tier: TierId) -> bool {
        tier > self.slowest_memory()
    }

    /// Switches reclaim to two lists, balanced by the GiB that a page stands for. Call it before any access.
    pub(crate) fn with_lists(mut self, gib_per_page: f64) -> Self {
        self.reclaim = Reclaim::Lists(Lru::new(self.state.len(), gib_per_page));
        self
    }

    #[cfg(test)]
    pub(crate) fn lru(&self) -> &Lru {
        let Reclaim::Lists(lru) = &self.reclaim else { panic!("reclaim by a clock") };
        lru
    }

    #[cfg(test)]
    pub(crate) fn referenced(&self, page: PageId) -> bool {
        self.state[page.index()] & REFERENCED != 0
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

    /// Changes the size of a tier that is not the last; what it holds beyond that stays until it is moved.
    pub(crate) fn resize(&mut self, tier: TierId, pages: Pages) {
        if let Some(capacity) = self.capacity.get_mut(tier.index()) {
            *capacity = pages.0;
            self.reserve[tier.index()] = (pages.0 as f64 * self.reserve_share) as u64;
        }
    }

    pub(crate) fn used(&self, tier: TierId) -> Pages {
        Pages(self.used.get(tier.index()).copied().unwrap_or(0))
    }

    pub(crate) fn free(&self, tier: TierId) -> Pages {
        let stored = self.compression.as_ref().filter(|_| tier == self.slowest_memory());
        let taken = self.used(tier).0 + stored.map_or(0, Compression::room);
        Pages(self.capacity(tier).0.saturating_sub(taken))
    }

    pub(crate) fn tier_of(&self, page: PageId) -> Option<TierId> {
        let tier = self.state.get(page.index())? & TIER_MASK;
        (tier != UNMAPPED).then_some(TierId(tier))
    }

    /// Returns [`crate::RunResult::page_tiers`].
    pub(crate) fn tiers_of_pages(&self) -> Vec<u8> {
        let tier = |page| self.tier_of(PageId(page as u32)).map_or(crate::UNMAPPED, |tier| tier.0);
        (0..self.pages()).map(tier).collect()
    }

    pub(crate) fn max_shadows(&self) -> Pages {
        Pages(self.max_shadows)
    }

    /// Maps a new page in the first tier, in the allocation policy's order, with room above its reserve.
    #[cold]
    fn allocate(&mut self, page: usize) -> u8 {
        let tier = self.place();
        self.occupy(tier);
        if tier == TierId::FAST.index() {
            self.fast_rows.enter(page);
        }
        self.state[page] = tier as u8 | USED;
        if let Reclaim::Lists(lru) = &mut self.reclaim {
            lru.put(PageId(page as u32), TierId(tier as u8), List::Inactive);
        }
        // The thread that needed room faults for it.
        tier as u8 | if self.owed.is_some() { ARMED } else { 0 }
    }

    /// Returns the first tier, in the allocation policy's order, with room above its reserve. Where none has,
    /// pages of the slowest memory are compressed; what that took is owed.
    fn place(&mut self) -> usize {
        let slowest = self.slowest_memory().index();
        let room: Vec<u64> = (0..=slowest).map(|tier| self.free(TierId(tier as u8)).0).collect();
        let has_room = |&tier: &usize| room[tier] > self.reserve[tier];
        if let Some(tier) = self.placing.next(slowest + 1, has_room) {
            return tier;
        }
        if self.compression.is_some() {
            self.owed = Some(self.compress_cluster());
        }
        slowest
    }

    /// Compresses a cluster of the coldest pages of the slowest memory.
    fn compress_cluster(&mut self) -> Swapped {
        let (from, mut swapped) = (self.slowest_memory(), Swapped::default());
        let mut pass = Pass::new(from, Pages(CLUSTER));
        while swapped.compressed < CLUSTER {
            let Some(victim) = self.next_victim(&mut pass, &mut swapped.scanned) else { break };
            if self.relocate(victim, from.slower()) == MoveStatus::Moved {
                swapped.compressed += 1;
                swapped.written += self.compression.as_ref().map_or(Bytes(0), |stored| stored.size(victim));
            } else if let Reclaim::Lists(lru) = &mut self.reclaim {
                lru.put(victim, from, List::Active);
            }
            // A clock would look at pages that do not compress for ever.
            if swapped.scanned > 2 * self.state.len() as u64 {
                break;
            }
        }
        swapped
    }

    pub(crate) fn may_move(&self, page: PageId, to: TierId) -> MoveStatus {
        match self.tier_of(page) {
            None => MoveStatus::Gone,
            Some(_) if to.index() >= self.tiers() => MoveStatus::Gone,
            Some(from) if from == to => MoveStatus::AlreadyThere,
            Some(_)
                if self.is_compressed(to)
                    && !self.compression.as_ref().is_some_and(|all| all.takes(page)) =>
            {
                MoveStatus::Denied
            }
            Some(_) if self.free(to).0 == 0 => MoveStatus::NoRoom,
            Some(_) => MoveStatus::Moved,
        }
    }

    pub(crate) fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let status = self.may_move(page, to);
        let (MoveStatus::Moved, Some(from)) = (status, self.tier_of(page)) else { return status };
        self.drop_shadow(page.index());
        self.in_flight.forget(page);
        self.used[from.index()] -= 1;
        self.occupy(to.index());
        if from == TierId::FAST {
            self.fast_rows.leave(page.index());
        } else if to == TierId::FAST {
            self.fast_rows.enter(page.index());
        }
        let [stores, drops] = [to, from].map(|tier| self.is_compressed(tier));
        let state = &mut self.state[page.index()];
        // A stored page is mapped nowhere: its next access faults.
        *state = if stores { ARMED | to.0 } else { (*state & KEPT) | to.0 };
        if let Some(compression) = &mut self.compression {
            if stores {
                compression.store(page);
            } else if drops {
                compression.drop(page);
            }
        }
        if let Reclaim::Lists(lru) = &mut self.reclaim {
            lru.migrate(page, to);
        }
        MoveStatus::Moved
    }

    /// Begins the way of a batch of pages that have moved, in picoseconds.
    pub(crate) fn depart(&mut self, since: u64) {
        self.in_flight.begin(since);
    }

    /// Unmaps a page of the batch until it is copied.
    pub(crate) fn unmap(&mut self, page: PageId, until: u64) {
        // A stored page is mapped nowhere anyway.
        if self.tier_of(page).is_some_and(|tier| !self.is_compressed(tier)) {
            self.state[page.index()] |= ARMED;
            self.in_flight.add(page, until);
        }
    }

    /// Ends the batch's way.
    pub(crate) fn land(&mut self) {
        for page in self.in_flight.end() {
            self.state[page.index()] &= !ARMED;
        }
    }

    /// Takes a page of the tier, dropping a shadow if there is no other room.
    fn occupy(&mut self, tier: usize) {
        self.used[tier] += 1;
        if self.used[tier] + self.shadows[tier] > self.capacity[tier] && self.shadows[tier] > 0 {
            let shadowed = |&state: &u8| state & SHADOWED != 0 && usize::from(state & TIER_MASK) + 1 == tier;
            if let Some(page) = self.state.iter().position(shadowed) {
                self.drop_shadow(page);
            }
        }
    }

    /// Keeps the copy that a page, just promoted by one tier, left behind.
    pub(crate) fn keep_shadow(&mut self, page: PageId) {
        let behind = usize::from(self.state[page.index()] & TIER_MASK) + 1;
        let in_memory = behind <= self.slowest_memory().index();
        if in_memory && self.used[behind] + self.shadows[behind] < self.capacity[behind] {
            self.state[page.index()] |= SHADOWED;
            self.shadows[behind] += 1;
            self.max_shadows = self.max_shadows.max(self.shadows.iter().sum());
        }
    }

    pub(crate) fn has_shadow(&self, page: PageId, tier: TierId) -> bool {
        let state = self.state[page.index()];
        state & SHADOWED != 0 && (state & TIER_MASK) + 1 == tier.0
    }

    fn drop_shadow(&mut self, page: usize) {
        let state = &mut self.state[page];
        if *state & SHADOWED != 0 {
            *state &= !SHADOWED;
            self.shadows[usize::from(*state & TIER_MASK) + 1] -= 1;
        }
    }

    /// Makes the page's next access fault. Returns false if it is not mapped or already armed.
    pub(crate) fn arm(&mut self, page: PageId) -> bool {
        match self.state.get_mut(page.index()) {
            Some(state) if *state & TIER_MASK != UNMAPPED && *state & ARMED == 0 => {
                *state |= ARMED;
                true
            }
            _ => false,
        }
    }

    /// Continues a pass of reclaim to the next page to demote, counting examined pages; `None` at its end.
    pub(crate) fn next_victim(&mut self, pass: &mut Pass, scanned: &mut u64) -> Option<PageId> {
        match &mut self.reclaim {
            Reclaim::Lists(lru) => lru.next_victim(pass, &mut self.state, scanned),
            Reclaim::Clock { hand } => {
                let used = self.used.get(pass.tier.index()).is_some_and(|&used| used > 0);
                used.then(|| next_by_clock(hand, &mut self.state, pass.tier, scanned))
            }
        }
    }

    /// Walks as [`Self::walk`] does, with the accessed bits, which it clears.
    pub(crate) fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> (Option<PageId>, u64) {
        self.walk_mapped(cursor, limit, |page, state| {
            found.push((page, TierId(*state & TIER_MASK), *state & ACCESSED != 0));
            *state &= !ACCESSED;
        })
    }

    /// Appends up to `limit` mapped pages from `cursor` on. Returns where to continue, and the entries read.
    pub(crate) fn walk(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId)>,
    ) -> (Option<PageId>, u64) {
        self.walk_mapped(cursor, limit, |page, state| found.push((page, TierId(*state & TIER_MASK))))
    }

    fn walk_mapped(
        &mut self,
        cursor: PageId,
        mut limit: usize,
        mut visit: impl FnMut(PageId, &mut u8),
    ) -> (Option<PageId>, u64) {
        let mut read = EntriesRead::default();
        for (page, state) in self.state.iter_mut().enumerate().skip(cursor.index()) {
            if limit == 0 {
                return (Some(PageId(page as u32)), read.total());
            }
            let mapped = *state & TIER_MASK != UNMAPPED;
            read.visit(page, mapped);
            if mapped {
                visit(PageId(page as u32), state);
                limit -= 1;
            }
        }
        (None, read.total())
    }
}

impl Locator for PageTable {
    #[inline]
    fn serve(&mut self, _index: usize, page: u32) -> u8 {
        let state = &mut self.state[page as usize];
        // Most pages have both bits: a line that is not written to need not be written back.
        if *state & USED != USED {
            *state |= USED;
        }
        if *state & TIER_MASK == UNMAPPED { self.allocate(page as usize) } else { *state }
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        prefetch_index(&self.state, page as usize);
    }

    #[inline]
    fn prefetch_new(&self, page: u32) {
        if self.state[page as usize] & TIER_MASK == UNMAPPED
            && let Reclaim::Lists(lru) = &self.reclaim
        {
            lru.prefetch_new(PageId(page));
        }
    }

    fn fast_rows(&self) -> Option<&FastRows> {
        Some(&self.fast_rows)
    }

    fn lands(&self, page: u32, clock: u64) -> Option<u64> {
        self.in_flight.lands(page, clock)
    }

    fn swap_in(&mut self, page: u32) -> Option<Swapped> {
        let owed = self.owed.take();
        let page = PageId(page);
        let stored = self.tier_of(page).filter(|&tier| self.is_compressed(tier));
        if stored.is_none() {
            return owed.map(|owed| Swapped { tier: self.state[page.index()] & TIER_MASK, ..owed });
        }
        let size = self.compression.as_ref()?.size(page);
        let tier = TierId(self.place() as u8);
        // Room may be missing where nothing compresses; the page comes back all the same.
        let full = self.free(tier).0 == 0;
        self.capacity[tier.index()] += u64::from(full);
        self.relocate(page, tier);
        self.capacity[tier.index()] -= u64::from(full);
        let owed = self.owed.take().unwrap_or_default();
        Some(Swapped { tier: tier.0, decompressed: Some(size), ..owed })
    }

    #[cold]
    fn trap(&mut self, page: u32, store: bool) -> bool {
        if store {
            self.drop_shadow(page as usize);
        }
        let state = &mut self.state[page as usize];
        let armed = *state & ARMED != 0;
        *state &= !ARMED;
        armed
    }
}

/// Returns the next unreferenced page of `tier`, which is not empty, by a clock with second chance: pages
/// referenced since the hand last passed stay.
fn next_by_clock(hand: &mut usize, states: &mut [u8], tier: TierId, scanned: &mut u64) -> PageId {
    loop {
        let page = *hand;
        *hand = if page + 1 == states.len() { 0 } else { page + 1 };
        let state = &mut states[page];
        if *state & TIER_MASK != tier.0 {
            continue;
        }
        *scanned += 1;
        if *state & REFERENCED == 0 {
            return PageId(page as u32);
        }
        *state &= !REFERENCED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fast: u64) -> PageTable {
        PageTable::new(8, vec![fast, 100], 0.0, Allocation::FastFirst)
    }

    /// A page that was stored while it was on its way was served as if it were not.
    #[test]
    fn regression_a_page_that_is_stored_on_its_way_faults_behind_it() {
        let compression = Compression::new(1, isotherm_core::PageSize::Base, &[64]);
        let mut table =
            PageTable::new(1, vec![1, 1, 1], 0.0, Allocation::FastFirst).with_compression(compression);
        table.serve(0, 0);
        table.relocate(PageId(0), TierId(1));
        table.depart(10);
        table.unmap(PageId(0), 30);
        assert_eq!([5, 20, 40].map(|clock| table.lands(0, clock)), [Some(5), Some(30), Some(40)]);
        assert_eq!(table.relocate(PageId(0), TierId(2)), MoveStatus::Moved);
        assert_eq!(table.lands(0, 20), None);
        table.land();
        assert!(traps(table.serve(1, 0), 0));
    }

    #[test]
    fn new_pages_fill_the_fast_tier_first_and_leave_its_reserve() {
        let mut table = PageTable::new(20, vec![10, 100], 0.2, Allocation::FastFirst);
        let tiers: Vec<u8> = (0..12).map(|page| table.serve(0, page) & TIER_MASK).collect();
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
    fn a_clock_spares_pages_referenced_since_its_last_round() {
        let mut table = table(4);
        (0..4).for_each(|page| _ = table.serve(0, page));
        let (mut scanned, mut pass) = (0, Pass::new(TierId::FAST, Pages(2)));
        assert_eq!(
            table.next_victim(&mut pass, &mut scanned),
            Some(PageId(0)),
            "all were referenced: the first"
        );
        assert_eq!(scanned, 5, "a whole round cleared the bits");
        table.serve(0, 1);
        assert_eq!(table.next_victim(&mut pass, &mut scanned), Some(PageId(2)), "1 was referenced again");
    }

    #[test]
    fn an_armed_page_traps_once() {
        let mut table = table(8);
        table.serve(0, 0);
        assert!(table.arm(PageId(0)) && !table.arm(PageId(1)), "page 1 is not mapped");
        assert!(!table.arm(PageId(0)), "it is armed since the first time, as Linux passes over such entries");
        let state = table.serve(1, 0);
        assert!(traps(state, 0) && table.trap(0, false));
        assert!(!traps(table.serve(2, 0), 1));
    }

    #[test]
    fn a_shadow_serves_one_demotion_and_dies_with_a_store() {
        let mut table = table(4);
        (0..6).for_each(|page| _ = table.serve(0, page));
        table.relocate(PageId(0), TierId(1));
        table.relocate(PageId(5), TierId::FAST);
        table.keep_shadow(PageId(5));
        assert!(table.has_shadow(PageId(5), TierId(1)));
        let state = table.serve(0, 5);
        assert!(!traps(state, 0), "loads leave the shadow alone");
        assert!(traps(state, 1) && !table.trap(5, true), "a write fault, not a hint fault");
        assert!(!table.has_shadow(PageId(5), TierId(1)));
        assert_eq!((table.shadows[1], table.max_shadows()), (0, Pages(1)));
    }

    #[test]
    fn shadows_give_way_to_pages() {
        let mut table = PageTable::new(8, vec![2, 2], 0.0, Allocation::FastFirst);
        (0..3).for_each(|page| _ = table.serve(0, page));
        table.relocate(PageId(0), TierId(1));
        table.relocate(PageId(2), TierId::FAST);
        table.keep_shadow(PageId(2));
        table.serve(0, 3);
        assert!(!table.has_shadow(PageId(2), TierId(1)), "its frame was needed");
        assert_eq!((table.used[1], table.shadows[1]), (2, 0));
    }

    #[test]
    fn scans_and_reclaim_have_an_accessed_bit_each() {
        let mut table = table(4);
        (0..2).for_each(|page| _ = table.serve(0, page));
        let mut found = Vec::new();
        table.scan_accessed(PageId(0), 9, &mut found);
        table.serve(0, 1);
        found.clear();
        let (next, read) = table.scan_accessed(PageId(0), 9, &mut found);
        assert_eq!((next, read), (None, 8));
        assert_eq!(found, [(PageId(0), TierId(0), false), (PageId(1), TierId(0), true)]);
        assert!((0..2).all(|page| table.referenced(PageId(page))), "the scans hid nothing from reclaim");
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
