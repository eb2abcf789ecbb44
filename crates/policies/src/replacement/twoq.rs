//! 2Q: a page earns its place among the hot ones by a second use after it has left a queue of newcomers.
//!
//! Johnson and Shasha, "2Q: a low overhead high performance buffer management replacement algorithm", VLDB
//! 1994: the full version (Fig. 2). Newcomers enter A1in, a FIFO of `Kin` pages in which further uses count
//! for nothing (they are correlated); on leaving it a page is remembered in A1out, a FIFO of `Kout` ghosts;
//! used while there, it enters Am, an LRU list.
//!
//! The figure leaves open that a page found in A1out leaves it before room is made: so it cannot be the ghost
//! that is dropped for another.

use super::adapter::Tiered;
use super::list::TaggedLists;
use super::settings::TwoQSettings;
use super::{Access, Replacement};
use crate::prelude::*;

const A1IN: usize = 0;
/// Ghosts of newcomers.
const A1OUT: usize = 1;
/// Hot pages.
const AM: usize = 2;

/// 2Q, full version. See the module.
#[derive(Debug, Clone)]
pub struct TwoQ {
    lists: TaggedLists<3>,
    capacity: usize,
    kin: usize,
    kout: usize,
}

impl TwoQ {
    /// Kin that the paper recommends, as a share of the capacity.
    pub const KIN: f64 = 0.25;
    /// Kout that the paper recommends, as a share of the capacity.
    pub const KOUT: f64 = 0.5;

    /// Returns an empty cache of `capacity` (at least 1) of the pages below `pages`; `kin` and `kout` are
    /// shares of the capacity.
    pub fn new(pages: usize, capacity: usize, kin: f64, kout: f64) -> Self {
        let capacity = capacity.max(1);
        let share = |share: f64| (capacity as f64 * share) as usize;
        // With A1in as large as the cache there would be no Am to take a page from.
        let kin = share(kin).min(capacity - 1);
        Self { lists: TaggedLists::new(pages), capacity, kin, kout: share(kout) }
    }

    /// Returns the number of newcomers, of ghosts and of hot pages.
    pub fn lengths(&self) -> [usize; 3] {
        [A1IN, A1OUT, AM].map(|list| self.lists.len(list))
    }

    /// Lets a page leave if there is no free slot (`reclaimfor`).
    #[inline]
    fn reclaim(&mut self) -> Option<PageId> {
        if self.len() < self.capacity {
            return None;
        }
        if self.lists.len(A1IN) <= self.kin {
            return self.lists.drop_oldest(AM);
        }
        let evicted = self.lists.shift_oldest(A1IN, A1OUT);
        if self.lists.len(A1OUT) > self.kout {
            self.lists.drop_oldest(A1OUT);
        }
        evicted
    }
}

impl Replacement for TwoQ {
    /// The page's place; in Am its node, its neighbours and the former head too.
    const HIT_LINES: u64 = 5;
    /// Place, node and neighbours of the page, of the victim and of the ghost that is dropped.
    const MISS_LINES: u64 = 10;

    fn approach(&self, pages: &[PageId]) {
        self.lists.approach(pages);
    }

    #[inline]
    fn access(&mut self, page: PageId) -> Access {
        let place = self.lists.place(page);
        if place == AM {
            self.lists.raise(page, AM);
        }
        if place == AM || place == A1IN {
            return Access::Hit;
        }
        let remembered = place == A1OUT;
        if remembered {
            self.lists.remove(page);
        }
        let evicted = self.reclaim();
        self.lists.raise(page, if remembered { AM } else { A1IN });
        Access::Miss { evicted }
    }

    fn contains(&self, page: PageId) -> bool {
        matches!(self.lists.place(page), A1IN | AM)
    }

    fn len(&self) -> usize {
        self.lists.len(A1IN) + self.lists.len(AM)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn grow(&mut self, pages: usize) {
        self.lists.grow(pages);
    }

    fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    fn gauge(&self) -> Option<Gauge> {
        Some(Gauge { name: "hot-pages", value: self.lists.len(AM) as f64 })
    }
}

impl Tiered<TwoQ> {
    /// Creates the policy: the algorithm over sampled accesses, as in HybridTier, sections 5.2 and 6.1.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let TwoQSettings { common, kin, kout } = TwoQSettings::read(parameters);
        Self::with(|pages, capacity| TwoQ::new(pages, capacity, kin, kout), &common, setup)
    }
}
