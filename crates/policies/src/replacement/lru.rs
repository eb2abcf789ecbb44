//! LRU: the page that has not been used for longest leaves.
//!
//! Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal
//! 9(2), 1970. It has no parameter.

use isotherm_core::PageId;

use super::list::Lists;
use super::{Access, Replacement};

const LIST: usize = 0;

/// Least recently used. See the module.
#[derive(Debug, Clone)]
pub struct Lru {
    recency: Lists<1>,
    capacity: usize,
}

impl Lru {
    /// Returns an empty cache of `capacity` (at least 1) of the pages below `pages`.
    pub fn new(pages: usize, capacity: usize) -> Self {
        Self { recency: Lists::new(pages), capacity: capacity.max(1) }
    }
}

impl Replacement for Lru {
    /// The page's node, its neighbours and the former head.
    const HIT_LINES: u64 = 4;
    /// The page's node, the former head, the tail and its neighbour.
    const MISS_LINES: u64 = 4;

    fn approach(&self, pages: &[PageId]) {
        self.recency.approach(pages);
    }

    #[inline]
    fn access(&mut self, page: PageId) -> Access {
        if self.recency.contains(page) {
            self.recency.renew(LIST, page);
            return Access::Hit;
        }
        let full = self.recency.len(LIST) == self.capacity;
        let evicted = if full { self.recency.pop_oldest(LIST) } else { None };
        self.recency.push_newest(LIST, page);
        Access::Miss { evicted }
    }

    fn contains(&self, page: PageId) -> bool {
        self.recency.contains(page)
    }

    fn len(&self) -> usize {
        self.recency.len(LIST)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn grow(&mut self, pages: usize) {
        self.recency.grow(pages);
    }

    fn bytes(&self) -> usize {
        self.recency.bytes()
    }
}
