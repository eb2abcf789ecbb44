//! Doubly linked lists of pages in one flat array: every operation in constant time, no allocation.

use isotherm_core::PageId;
use prefetch_index::prefetch_index;

use crate::support::prefetch;

const OUT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
}

/// `N` lists over the same pages, each page in at most one of them. Each is a ring through a node of its
/// own, so that no operation asks whether it is at an end.
#[derive(Debug, Clone)]
pub(crate) struct Lists<const N: usize> {
    /// First the lists' own nodes (older: the newest page; newer: the oldest), then one a page; [`OUT`] in
    /// `newer` marks a page in no list.
    nodes: Vec<Node>,
    lengths: [usize; N],
}

impl<const N: usize> Lists<N> {
    pub(crate) fn new(pages: usize) -> Self {
        let mut lists = Self { nodes: Vec::new(), lengths: [0; N] };
        lists.nodes.extend((0..N as u32).map(|list| Node { newer: list, older: list }));
        lists.grow(pages);
        lists
    }

    pub(crate) fn grow(&mut self, pages: usize) {
        if N + pages > self.nodes.len() {
            self.nodes.resize(N + pages, Node { newer: OUT, older: OUT });
        }
    }

    pub(crate) fn len(&self, list: usize) -> usize {
        self.lengths[list]
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.nodes[N..])
    }

    /// Reads the nodes of the pages, and then those of their neighbours.
    #[inline]
    pub(crate) fn approach(&self, pages: &[PageId]) {
        let node = |page: PageId| self.nodes[N + page.index()];
        prefetch::read(pages, |page| node(page).newer);
        let newer = |node: u32| self.nodes.get(node as usize).map_or(0, |node| node.newer);
        prefetch::read(pages, |page| newer(node(page).newer) ^ newer(node(page).older));
    }

    /// Has the processor fetch the node of a page.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageId) {
        prefetch_index(&self.nodes, N + page.index());
    }

    #[inline]
    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.nodes[N + page.index()].newer != OUT
    }

    /// Enters a page that is in no list as the list's most recent one.
    #[inline]
    pub(crate) fn push_newest(&mut self, list: usize, page: PageId) {
        let node = page.0 + N as u32;
        let newest = self.nodes[list].older;
        self.join(list as u32, node);
        self.join(node, newest);
        self.lengths[list] += 1;
    }

    /// Enters a page that is in no list as the list's least recent one.
    #[inline]
    pub(crate) fn push_oldest(&mut self, list: usize, page: PageId) {
        let node = page.0 + N as u32;
        let oldest = self.nodes[list].newer;
        self.join(oldest, node);
        self.join(node, list as u32);
        self.lengths[list] += 1;
    }

    #[inline]
    pub(crate) fn remove(&mut self, list: usize, page: PageId) {
        let Node { newer, older } = self.nodes[N + page.index()];
        self.join(newer, older);
        self.nodes[N + page.index()].newer = OUT;
        self.lengths[list] -= 1;
    }

    #[inline]
    pub(crate) fn renew(&mut self, list: usize, page: PageId) {
        let node = page.0 + N as u32;
        let Node { newer, older } = self.nodes[node as usize];
        self.join(newer, older);
        let newest = self.nodes[list].older;
        self.join(list as u32, node);
        self.join(node, newest);
    }

    #[inline]
    pub(crate) fn oldest(&self, list: usize) -> Option<PageId> {
        self.nodes[list].newer.checked_sub(N as u32).map(PageId)
    }

    #[inline]
    pub(crate) fn pop_oldest(&mut self, list: usize) -> Option<PageId> {
        let page = self.oldest(list)?;
        self.remove(list, page);
        Some(page)
    }

    #[inline]
    fn join(&mut self, newer: u32, older: u32) {
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
    }
}

/// Lists that also know which one each page is in.
#[derive(Debug, Clone)]
pub struct TaggedLists<const N: usize> {
    lists: Lists<N>,
    /// The list of each page; a byte each, so that a page in no list costs no look at its node.
    place: Vec<u8>,
}

impl<const N: usize> TaggedLists<N> {
    /// The place of a page that is in no list.
    pub const NOWHERE: usize = N;

    /// Creates empty lists for the pages below `pages`.
    pub fn new(pages: usize) -> Self {
        Self { lists: Lists::new(pages), place: vec![N as u8; pages] }
    }

    /// Makes room for the pages below `pages`.
    pub fn grow(&mut self, pages: usize) {
        self.lists.grow(pages);
        if pages > self.place.len() {
            self.place.resize(pages, N as u8);
        }
    }

    /// Reads what [`Self::raise`] needs of the pages.
    #[inline]
    pub fn approach(&self, pages: &[PageId]) {
        prefetch::read(pages, |page| u32::from(self.place[page.index()]));
        self.lists.approach(pages);
    }

    /// Has the processor fetch what [`Self::raise`] needs of a page that is in no list.
    #[inline]
    pub fn prefetch_new(&self, page: PageId) {
        prefetch_index(&self.place, page.index());
        self.lists.prefetch(page);
    }

    /// Returns the number of pages in a list.
    #[inline]
    pub fn len(&self, list: usize) -> usize {
        self.lists.len(list)
    }

    /// Returns the memory that nodes and places occupy.
    pub fn bytes(&self) -> usize {
        self.lists.bytes() + size_of_val(&self.place[..])
    }

    /// Returns the list that the page is in, or [`Self::NOWHERE`].
    #[inline]
    pub fn place(&self, page: PageId) -> usize {
        usize::from(self.place[page.index()])
    }

    /// Returns the least recent page of a list.
    #[inline]
    pub fn oldest(&self, list: usize) -> Option<PageId> {
        self.lists.oldest(list)
    }

    /// Makes the page the most recent one of `to`, wherever it was.
    #[inline]
    pub fn raise(&mut self, page: PageId, to: usize) {
        let from = self.place(page);
        if from == to {
            return self.lists.renew(to, page);
        }
        if from != Self::NOWHERE {
            self.lists.remove(from, page);
        }
        self.lists.push_newest(to, page);
        self.place[page.index()] = to as u8;
    }

    /// Takes a page out of the list that it is in.
    #[inline]
    pub fn remove(&mut self, page: PageId) {
        self.lists.remove(self.place(page), page);
        self.place[page.index()] = N as u8;
    }

    /// Takes the least recent page of `from` out of all lists.
    #[inline]
    pub fn drop_oldest(&mut self, from: usize) -> Option<PageId> {
        let page = self.lists.pop_oldest(from)?;
        self.place[page.index()] = N as u8;
        Some(page)
    }

    /// Makes the least recent page of `from` the most recent one of `to`.
    #[inline]
    pub fn shift_oldest(&mut self, from: usize, to: usize) -> Option<PageId> {
        let page = self.lists.pop_oldest(from)?;
        self.lists.push_newest(to, page);
        self.place[page.index()] = to as u8;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const PAGES: u32 = 12;

    /// Returns a list from its newest page, after a check of the links backwards.
    fn pages(lists: &Lists<2>, list: usize) -> Vec<u32> {
        let listed = |node: u32| (node >= 2).then_some(node);
        let forward = std::iter::successors(listed(lists.nodes[list].older), |&node| {
            listed(lists.nodes[node as usize].older)
        });
        let backward = std::iter::successors(listed(lists.nodes[list].newer), |&node| {
            listed(lists.nodes[node as usize].newer)
        });
        let forward: Vec<u32> = forward.map(|node| node - 2).collect();
        let mut backward: Vec<u32> = backward.map(|node| node - 2).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    }

    proptest! {
        /// Any sequence of operations leaves what two queues of pages would hold.
        #[test]
        fn the_lists_behave_like_queues(steps in prop::collection::vec((0..5, 0..2_usize, 0..PAGES), 1..200)) {
            let mut lists = Lists::<2>::new(4);
            lists.grow(PAGES as usize);
            let mut queues = [VecDeque::new(), VecDeque::new()];
            for (operation, list, page) in steps {
                let holder = queues.iter().position(|queue| queue.contains(&page));
                prop_assert_eq!(lists.contains(PageId(page)), holder.is_some());
                match (operation, holder) {
                    (0, None) => {
                        queues[list].push_front(page);
                        lists.push_newest(list, PageId(page));
                    }
                    (1, None) => {
                        queues[list].push_back(page);
                        lists.push_oldest(list, PageId(page));
                    }
                    (2, _) => prop_assert_eq!(lists.pop_oldest(list), queues[list].pop_back().map(PageId)),
                    (3, Some(holder)) => {
                        queues[holder].retain(|&other| other != page);
                        queues[holder].push_front(page);
                        lists.renew(holder, PageId(page));
                    }
                    (_, Some(holder)) => {
                        queues[holder].retain(|&other| other != page);
                        lists.remove(holder, PageId(page));
                    }
                    _ => {}
                }
                for (list, queue) in queues.iter().enumerate() {
                    prop_assert_eq!(pages(&lists, list), Vec::from(queue.clone()));
                    prop_assert_eq!(lists.len(list), queue.len());
                }
            }
        }
    }
}
