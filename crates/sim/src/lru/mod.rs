//! The kernel's LRU: an inactive and an active list for each tier, and a pass of reclaim over them.
//!
//! Models anonymous memory in Linux without multi-generational LRU (`mm/vmscan.c` of 6.x; functions named
//! below), a descendant of 2Q: new pages enter the inactive list, and only a page found referenced twice in
//! turn is activated. Reclaim takes the tail of the inactive list; see [`Lru::next_victim`].
//!
//! Left out: batches of isolated pages (each page is judged right before it is demoted), per-CPU vectors of
//! pages not yet on a list, the 32 active pages that age per round beside a round's share (little on lists of
//! gigabytes), file pages, memory cgroups.

use isotherm_core::{PageId, Pages, TierId};
use isotherm_policies::replacement::TaggedLists;

use crate::page_state::{MARKED, REFERENCED, TIER_MASK};

/// Lists: two for each tier that a page's state can name.
const LISTS: usize = 2 * TIER_MASK as usize;
/// Pages of a list examined in turn (`SWAP_CLUSTER_MAX`).
const CLUSTER: u64 = 32;
/// First priority of a pass (`DEF_PRIORITY`): it examines a list's pages divided by 2 to the priority, and
/// more while it finds too few.
const FIRST_PRIORITY: u32 = 12;
/// Last priority, half of each list, after which kswapd gives up (`balance_pgdat`).
const LAST_PRIORITY: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// Pages that enter, and leave for the next tier.
    Inactive,
    /// Pages that were referenced twice.
    Active,
}

#[derive(Debug, Clone)]
pub(crate) struct Lru {
    lists: TaggedLists<LISTS>,
    gib_per_page: f64,
}

impl Lru {
    /// Creates empty lists. The more GiB a page stands for, the smaller the inactive share.
    pub(crate) fn new(pages: usize, gib_per_page: f64) -> Self {
        Self { lists: TaggedLists::new(pages), gib_per_page }
    }

    /// Has the processor fetch what [`Self::put`] needs of a page that is on no list.
    pub(crate) fn prefetch_new(&self, page: PageId) {
        self.lists.prefetch_new(page);
    }

    pub(crate) fn put(&mut self, page: PageId, tier: TierId, list: List) {
        self.lists.raise(page, index(tier, list));
    }

    /// Moves a page to another tier, onto the list of the same kind (`folio_migrate_flags`).
    pub(crate) fn migrate(&mut self, page: PageId, to: TierId) {
        let active = self.lists.place(page) % 2 == List::Active as usize;
        self.put(page, to, if active { List::Active } else { List::Inactive });
    }

    pub(crate) fn len(&self, tier: TierId, list: List) -> u64 {
        self.lists.len(index(tier, list)) as u64
    }

    /// Continues a pass to the next page to demote, counting examined pages. `states` is the page table's.
    ///
    /// Takes an inactive page that was not referenced since the last look. A referenced one becomes the
    /// newest of its list and marked, or active if it was marked before (`folio_check_references`). An
    /// examined active page becomes inactive, referenced or not, and keeps its mark, so that one more
    /// reference brings it back (`shrink_active_list`). Returns `None` at the pass's end.
    pub(crate) fn next_victim(
        &mut self,
        pass: &mut Pass,
        states: &mut [u8],
        scanned: &mut u64,
    ) -> Option<PageId> {
        while let Some((page, list)) = pass.next(self) {
            *scanned += 1;
            let state = &mut states[page.index()];
            let before = *state;
            *state &= !REFERENCED;
            let mut to = List::Inactive;
            if list == List::Inactive {
                if before & REFERENCED == 0 {
                    *state &= !MARKED;
                    pass.taken += 1;
                    return Some(page);
                }
                *state |= MARKED;
                if before & MARKED != 0 {
                    to = List::Active;
                }
            }
            self.put(page, pass.tier, to);
        }
        None
    }

    fn oldest(&self, tier: TierId, list: List) -> Option<PageId> {
        self.lists.oldest(index(tier, list))
    }

    /// Returns whether active pages shall age (`inactive_is_low`): below 1 GiB half is kept inactive, at 1
    /// GiB a quarter, at 10 GiB an eleventh.
    fn inactive_is_low(&self, tier: TierId) -> bool {
        let [inactive, active] = [List::Inactive, List::Active].map(|list| self.len(tier, list));
        let gib = ((inactive + active) as f64 * self.gib_per_page) as u64;
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        inactive * ratio < active
    }
}

fn index(tier: TierId, list: List) -> usize {
    2 * tier.index() + list as usize
}

/// One run of kswapd: how much of a tier's lists it has still to examine (`balance_pgdat`, `shrink_lruvec`).
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) tier: TierId,
    wanted: Pages,
    priority: u32,
    /// Pages of the inactive and the active list to examine in this round, and in this turn.
    left: [u64; 2],
    turn: [u64; 2],
    /// Inactive pages examined, and taken, in this round.
    scanned: u64,
    taken: u64,
}

impl Pass {
    pub(crate) fn new(tier: TierId, wanted: Pages) -> Self {
        let priority = FIRST_PRIORITY + 1;
        Self { tier, wanted, priority, left: [0; 2], turn: [0; 2], scanned: 0, taken: 0 }
    }

    /// Returns the next page to examine and the list that it is the oldest of; `None` at the pass's end.
    pub(crate) fn next(&mut self, lru: &Lru) -> Option<(PageId, List)> {
        loop {
            for list in [List::Inactive, List::Active] {
                if self.turn[list as usize] > 0 {
                    self.turn[list as usize] -= 1;
                    let Some(page) = lru.oldest(self.tier, list) else { continue };
                    self.scanned += u64::from(list == List::Inactive);
                    return Some((page, list));
                }
            }
            if self.left == [0, 0] && !self.begin_round(lru) {
                return None;
            }
            self.turn = self.left.map(|left| left.min(CLUSTER));
            self.left = [0, 1].map(|list| self.left[list] - self.turn[list]);
        }
    }

    /// Plans the next share of the lists, larger if the last was too small. Returns whether kswapd goes on.
    fn begin_round(&mut self, lru: &Lru) -> bool {
        let first = self.priority > FIRST_PRIORITY;
        if first || self.taken == 0 || self.scanned < self.wanted.0 {
            self.priority = self.priority.saturating_sub(1);
        }
        (self.scanned, self.taken) = (0, 0);
        let share = |list| lru.len(self.tier, list) >> self.priority;
        let ageing = if lru.inactive_is_low(self.tier) { share(List::Active) } else { 0 };
        self.left = [share(List::Inactive), ageing];
        self.priority >= LAST_PRIORITY
    }
}

#[cfg(test)]
mod tests;
