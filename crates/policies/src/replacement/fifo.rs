//! FIFO: the page that entered first leaves, used or not.
//!
//! Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2),
//! 1966. It has no parameter.

use isotherm_core::PageId;

use super::{Access, Replacement};

/// First in, first out. See the module.
#[derive(Debug, Clone)]
pub struct Fifo {
    /// The pages held, in a ring.
    frames: Vec<PageId>,
    /// The frame of the page that entered first, once all frames are taken.
    hand: usize,
    capacity: usize,
    held: Vec<bool>,
}

impl Fifo {
    /// Returns an empty cache of `capacity` (at least 1) of the pages below `pages`.
    pub fn new(pages: usize, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { frames: Vec::with_capacity(capacity), hand: 0, capacity, held: vec![false; pages] }
    }
}

impl Replacement for Fifo {
    const HIT_LINES: u64 = 1;
    /// Two flags; the frames are walked in order.
    const MISS_LINES: u64 = 2;

    #[inline]
    fn access(&mut self, page: PageId) -> Access {
        if std::mem::replace(&mut self.held[page.index()], true) {
            return Access::Hit;
        }
        if self.frames.len() < self.capacity {
            self.frames.push(page);
            return Access::Miss { evicted: None };
        }
        let evicted = std::mem::replace(&mut self.frames[self.hand], page);
        self.held[evicted.index()] = false;
        self.hand = if self.hand + 1 == self.capacity { 0 } else { self.hand + 1 };
        Access::Miss { evicted: Some(evicted) }
    }

    fn contains(&self, page: PageId) -> bool {
        self.held[page.index()]
    }

    fn len(&self) -> usize {
        self.frames.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn grow(&mut self, pages: usize) {
        if pages > self.held.len() {
            self.held.resize(pages, false);
        }
    }

    fn bytes(&self) -> usize {
        self.capacity * size_of::<PageId>() + size_of_val(&self.held[..])
    }
}
