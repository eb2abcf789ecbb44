//! Defines a doubly linked list of pages in two flat arrays: every operation in constant time, no allocation.

use isotherm_core::PageId;

/// No neighbour: the end of the list.
const END: u32 = u32::MAX;
/// Not in the list.
const OUT: u32 = u32::MAX - 1;

/// Pages by recency, each at most once.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// The neighbour that is more recent.
    newer: Vec<u32>,
    /// The neighbour that is less recent; [`OUT`] for a page outside the list.
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    length: usize,
}

impl Order {
    /// An empty list that takes the pages below `pages`.
    pub(super) fn new(pages: usize) -> Self {
        Self { newer: vec![OUT; pages], older: vec![OUT; pages], newest: END, oldest: END, length: 0 }
    }

    /// Makes room for the pages below `pages`.
    pub(super) fn reserve(&mut self, pages: usize) {
        if pages > self.older.len() {
            self.newer.resize(pages, OUT);
            self.older.resize(pages, OUT);
        }
    }

    /// The number of pages in the list.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The memory that the list occupies.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.newer[..]) + size_of_val(&self.older[..])
    }

    #[inline]
    pub(super) fn contains(&self, page: PageId) -> bool {
        self.older[page.index()] != OUT
    }

    /// Makes the page the most recent one, whether it was in the list or not.
    #[inline]
    pub(super) fn touch(&mut self, page: PageId) {
        if self.newest == page.0 {
            return;
        }
        self.remove(page);
        self.link(END, page.0, self.newest);
    }

    /// Enters a page that is not in the list as its least recent one.
    pub(super) fn push_oldest(&mut self, page: PageId) {
        self.link(self.oldest, page.0, END);
    }

    /// Takes the least recent page out.
    pub(super) fn pop_oldest(&mut self) -> Option<PageId> {
        let page = (self.oldest != END).then_some(PageId(self.oldest))?;
        self.remove(page);
        Some(page)
    }

    /// Takes the page out if it is in the list.
    #[inline]
    pub(super) fn remove(&mut self, page: PageId) {
        if !self.contains(page) {
            return;
        }
        let (newer, older) = (self.newer[page.index()], self.older[page.index()]);
        self.join(newer, older);
        self.older[page.index()] = OUT;
        self.length -= 1;
    }

    #[inline]
    fn link(&mut self, newer: u32, page: u32, older: u32) {
        self.join(newer, page);
        self.join(page, older);
        self.length += 1;
    }

    /// Makes two pages neighbours; either may be [`END`].
    #[inline]
    fn join(&mut self, newer: u32, older: u32) {
        match newer {
            END => self.newest = older,
            page => self.older[page as usize] = older,
        }
        match older {
            END => self.oldest = newer,
            page => self.newer[page as usize] = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn pages(order: &Order) -> Vec<u32> {
        let listed = |page: u32| (page != END).then_some(page);
        std::iter::successors(listed(order.newest), |&page| listed(order.older[page as usize])).collect()
    }

    proptest! {
        /// Any sequence of operations leaves what a queue of pages would hold, in both directions.
        #[test]
        fn the_list_behaves_like_a_queue(steps in prop::collection::vec((0..4, 0..12u32), 1..200)) {
            let (mut order, mut queue) = (Order::new(12), VecDeque::new());
            for (operation, page) in steps {
                let known = queue.iter().any(|&other| other == page);
                match operation {
                    0 => {
                        queue.retain(|&other| other != page);
                        queue.push_front(page);
                        order.touch(PageId(page));
                    }
                    1 if !known => {
                        queue.push_back(page);
                        order.push_oldest(PageId(page));
                    }
                    2 => {
                        queue.retain(|&other| other != page);
                        order.remove(PageId(page));
                    }
                    _ => prop_assert_eq!(order.pop_oldest(), queue.pop_back().map(PageId)),
                }
                prop_assert_eq!(pages(&order), Vec::from(queue.clone()));
                prop_assert_eq!(order.len(), queue.len());
                prop_assert_eq!(order.contains(PageId(page)), queue.contains(&page));
            }
        }
    }
}
