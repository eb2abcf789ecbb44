//! Replacement algorithms of caches, over dense page numbers: no hashing, and no allocation per access.
//!
//! Each answers: which pages would a cache of this capacity hold after these accesses? A miss always enters
//! the page and, once the cache is full, lets another one leave; `adapter` makes a tiering policy of one.
//!
//! | algorithm | paper | lists |
//! |---|---|---|
//! | [`Fifo`] | Belady, IBM Systems Journal 1966 | a ring |
//! | [`Clock`] | Corbató, 1968 | a ring and a reference bit a page |
//! | [`Lru`] | Mattson et al., IBM Systems Journal 1970 | one |
//! | [`TwoQ`] | Johnson and Shasha, VLDB 1994 | two and one of ghosts |
//! | [`Arc`] | Megiddo and Modha, FAST 2003 | two and two of ghosts |
//!
//! A page's state is a byte or a node of 8 bytes in an array indexed by the page;
//! `docs/reference/policies.md` has a profile.

pub(crate) mod adapter;
mod arc;
mod clock;
mod fifo;
pub(crate) mod list;
mod lru;
pub(crate) mod settings;
mod twoq;

use isotherm_core::{Gauge, PageId};

pub use arc::Arc;
pub use clock::Clock;
pub use fifo::Fifo;
pub use list::TaggedLists;
pub use lru::Lru;
pub use twoq::TwoQ;

/// The result of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The cache held the page.
    Hit,
    /// It did not; now it does.
    Miss {
        /// The page that left for it; `None` while there was room.
        evicted: Option<PageId>,
    },
}

impl Access {
    /// Returns whether the cache held the page.
    #[inline]
    pub fn is_hit(self) -> bool {
        self == Self::Hit
    }
}

/// A cache of pages under a replacement algorithm. It has a capacity of at least one page.
pub trait Replacement {
    /// Cache lines of its structures that a hit touches.
    const HIT_LINES: u64;
    /// Cache lines of its structures that a miss in a full cache touches at most.
    const MISS_LINES: u64;

    /// Reads what accesses to these pages will need, so that their cache misses overlap.
    fn approach(&self, pages: &[PageId]) {
        let _ = pages;
    }

    /// Accesses a page below the number of pages made room for.
    fn access(&mut self, page: PageId) -> Access;

    /// Returns whether the cache holds the page.
    fn contains(&self, page: PageId) -> bool;

    /// Returns the number of pages that it holds.
    fn len(&self) -> usize;

    /// Returns whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pages that it may hold.
    fn capacity(&self) -> usize;

    /// Makes room for the pages below `pages`.
    fn grow(&mut self, pages: usize);

    /// Returns the memory that its structures occupy, ghosts included.
    fn bytes(&self) -> usize;

    /// Returns a number of the algorithm's own that is worth showing over time.
    fn gauge(&self) -> Option<Gauge> {
        None
    }
}

#[cfg(test)]
mod tests;
