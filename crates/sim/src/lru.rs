//! Defines the kernel's LRU: an inactive and an active list for each tier, and a pass of reclaim over them.
//!
//! As Linux keeps anonymous memory without multi-generational LRU (`mm/vmscan.c` of 6.x; functions named below), a
//! descendant of 2Q: new pages enter the inactive list, and only a page found referenced twice in turn is activated.
//! Reclaim takes the tail of the inactive list. What a look at a page does stands in [`Lru::next_victim`].
//!
//! Left out: the batches in which pages are isolated (each page is judged right before it is demoted), per-CPU vectors of
//! pages that are not on a list yet, the 32 active pages a round that age beside a round's share (little of lists that stand for
//! gigabytes), file pages, memory cgroups.

use isotherm_core::{PageId, Pages, TierId};
use isotherm_policies::replacement::TaggedLists;

use crate::placement::{MARKED, REFERENCED, TIER_MASK};

/// Lists: two for each tier that a page's state can name.
const LISTS: usize = 2 * TIER_MASK as usize;
/// Pages of a list that are looked at in turn (`SWAP_CLUSTER_MAX`).
const CLUSTER: u64 = 32;
/// A pass looks at this power of two's share of each list first (`DEF_PRIORITY`), and at more while it finds too little.
const FIRST_PRIORITY: u32 = 12;
/// The last, with half of each list; kswapd gives up after it (`balance_pgdat`).
const LAST_PRIORITY: u32 = 1;

/// Which of a tier's lists a page is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// Where pages enter, and leave for the next tier.
    Inactive,
    /// Pages that were referenced twice.
    Active,
}

/// The lists of all tiers.
#[derive(Debug, Clone)]
pub(crate) struct Lru {
    lists: TaggedLists<LISTS>,
    /// GiB that a page stands for.
    gib_per_page: f64,
}

impl Lru {
    /// Empty lists for the pages below `pages`. The more GiB a page stands for, the smaller the share that is kept inactive.
    pub(crate) fn new(pages: usize, gib_per_page: f64) -> Self {
        Self { lists: TaggedLists::new(pages), gib_per_page }
    }

    /// Makes a page the newest of a list.
    pub(crate) fn put(&mut self, page: PageId, tier: TierId, list: List) {
        self.lists.raise(page, index(tier, list));
    }

    /// Takes a page to another tier, onto the list of the same kind (`folio_migrate_flags`).
    pub(crate) fn migrate(&mut self, page: PageId, to: TierId) {
        let active = self.lists.place(page) % 2 == List::Active as usize;
        self.put(page, to, if active { List::Active } else { List::Inactive });
    }

    /// The pages on a list.
    pub(crate) fn len(&self, tier: TierId, list: List) -> u64 {
        self.lists.len(index(tier, list)) as u64
    }

    /// Goes on with a pass until it finds a page to demote, and counts the pages looked at, whose `states` are the page table's.
    ///
    /// An inactive page that was not referenced since the last look is the one; one that was stays, as the newest of the
    /// list, and marked, or is activated if it was marked before (`folio_check_references`). An active page that is looked
    /// at becomes inactive, referenced or not; its mark stays, so that one more reference brings it back
    /// (`shrink_active_list`). `None`: the pass is over.
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
                    pass.took();
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

    /// The page that has been on a list for longest.
    fn oldest(&self, tier: TierId, list: List) -> Option<PageId> {
        self.lists.oldest(index(tier, list))
    }

    /// Whether active pages shall age (`inactive_is_low`): less than 1 GiB keeps half inactive, 1 GiB a
    /// quarter, 10 GiB an eleventh.
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

/// One waking of kswapd: how much of the lists of a tier it has still to look at (`balance_pgdat`, `shrink_lruvec`).
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) tier: TierId,
    wanted: Pages,
    priority: u32,
    /// Pages of the inactive and of the active list to look at in this round, and in this turn.
    left: [u64; 2],
    turn: [u64; 2],
    /// Inactive pages looked at, and those of them taken, in this round.
    scanned: u64,
    taken: u64,
}

impl Pass {
    /// A pass that shall free `wanted` pages of a tier.
    pub(crate) fn new(tier: TierId, wanted: Pages) -> Self {
        let priority = FIRST_PRIORITY + 1;
        Self { tier, wanted, priority, left: [0; 2], turn: [0; 2], scanned: 0, taken: 0 }
    }

    /// The next page to look at, and which list it is the oldest of. `None`: the pass is over.
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

    /// The last inactive page was unreferenced and leaves.
    pub(crate) fn took(&mut self) {
        self.taken += 1;
    }

    /// Sets out to look at a share of the lists: a larger one than before if that was too few. Returns whether kswapd goes on.
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
