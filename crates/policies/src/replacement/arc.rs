//! ARC: recency and frequency share the cache, and the ghosts of each say which of them should have had more.
//!
//! Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003: Fig. 4, its cases by
//! their numbers. L1 = T1 + B1 holds pages seen once lately, L2 = T2 + B2 those seen at least twice; T1 and
//! T2 are in the cache, B1 and B2 are ghosts. `p`, the target for T1, grows with hits in B1 and shrinks with
//! hits in B2. There is no parameter to tune.
//!
//! `p` is a real number, as the increments `|B2| / |B1|` and `|B1| / |B2|` are.

use super::adapter::Tiered;
use super::list::TaggedLists;
use super::settings::Settings;
use super::{Access, Replacement};
use crate::prelude::*;

/// In the cache, seen once lately.
const T1: usize = 0;
/// In the cache, seen at least twice.
const T2: usize = 1;
/// Ghosts of T1.
const B1: usize = 2;
/// Ghosts of T2.
const B2: usize = 3;

/// ARC. See the module.
#[derive(Debug, Clone)]
pub struct Arc {
    lists: TaggedLists<4>,
    /// The paper's c.
    capacity: usize,
    /// The target size of T1, the paper's p.
    target: f64,
}

impl Arc {
    /// Returns an empty cache of `capacity` (at least 1) of the pages below `pages`.
    pub fn new(pages: usize, capacity: usize) -> Self {
        Self { lists: TaggedLists::new(pages), capacity: capacity.max(1), target: 0.0 }
    }

    /// Returns the target size of T1, from 0 to the capacity.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Returns the lengths of T1, T2, B1 and B2.
    pub fn lengths(&self) -> [usize; 4] {
        [T1, T2, B1, B2].map(|list| self.lists.len(list))
    }

    /// Lets a page leave the cache and remembers it (`REPLACE(x, p)`).
    #[inline]
    fn replace(&mut self, hit_in_b2: bool) -> Option<PageId> {
        let t1 = self.lists.len(T1) as f64;
        let from_t1 = t1 >= 1.0 && (t1 > self.target || (hit_in_b2 && t1 == self.target));
        let (from, ghosts) = if from_t1 { (T1, B1) } else { (T2, B2) };
        self.lists.shift_oldest(from, ghosts)
    }

    /// Cases II and III: the page is a ghost, so its list should have been longer.
    fn revive(&mut self, page: PageId, ghosts: usize) -> Access {
        let (b1, b2) = (self.lists.len(B1) as f64, self.lists.len(B2) as f64);
        self.target = if ghosts == B1 {
            (self.target + (b2 / b1).max(1.0)).min(self.capacity as f64)
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
        let evicted = self.replace(ghosts == B2);
        self.lists.raise(page, T2);
        Access::Miss { evicted }
    }

    /// Enters an unknown page (case IV).
    fn enter(&mut self, page: PageId) -> Access {
        let (t1, l1) = (self.lists.len(T1), self.lists.len(T1) + self.lists.len(B1));
        let all = l1 + self.lists.len(T2) + self.lists.len(B2);
        let evicted = if l1 == self.capacity {
            if t1 < self.capacity {
                self.lists.drop_oldest(B1);
                self.replace(false)
            } else {
                self.lists.drop_oldest(T1)
            }
        } else if all >= self.capacity {
            if all == 2 * self.capacity {
                self.lists.drop_oldest(B2);
            }
            self.replace(false)
        } else {
            None
        };
        self.lists.raise(page, T1);
        Access::Miss { evicted }
    }
}

impl Replacement for Arc {
    /// The page's place and node, its neighbours and the former head of T2.
    const HIT_LINES: u64 = 5;
    /// Place, node and neighbours of the page, of the victim and of the ghost that is dropped.
    const MISS_LINES: u64 = 10;

    fn approach(&self, pages: &[PageId]) {
        self.lists.approach(pages);
    }

    #[inline]
    fn access(&mut self, page: PageId) -> Access {
        match self.lists.place(page) {
            T1 | T2 => {
                self.lists.raise(page, T2);
                Access::Hit
            }
            ghosts @ (B1 | B2) => self.revive(page, ghosts),
            _ => self.enter(page),
        }
    }

    fn contains(&self, page: PageId) -> bool {
        matches!(self.lists.place(page), T1 | T2)
    }

    fn len(&self) -> usize {
        self.lists.len(T1) + self.lists.len(T2)
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
        Some(Gauge { name: "recency-target", value: self.target })
    }
}

impl Tiered<Arc> {
    /// Creates the policy: the algorithm over sampled accesses, as in HybridTier, sections 5.2 and 6.1.
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        Self::with(Arc::new, &Settings::read(parameters), setup)
    }
}
