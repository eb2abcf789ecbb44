//! First-in first-out lists of pages over flat arrays: each page in at most one list, every operation in
//! constant time, no allocation.

use isotherm_core::PageId;

use crate::support::prefetch;

/// No neighbour: the end of a list.
const END: u32 = u32::MAX;
const NONE: u8 = u8::MAX;

#[derive(Debug, Clone, Copy)]
struct List {
    front: u32,
    back: u32,
    length: usize,
}

/// `N` lists that share one pair of link arrays.
#[derive(Debug, Clone)]
pub(crate) struct PageLists<const N: usize> {
    /// The neighbours of each page, towards the front and towards the back.
    links: Vec<[u32; 2]>,
    list: Vec<u8>,
    ends: [List; N],
}

impl<const N: usize> PageLists<N> {
    pub(crate) fn new(pages: usize) -> Self {
        let empty = List { front: END, back: END, length: 0 };
        Self { links: vec![[END; 2]; pages], list: vec![NONE; pages], ends: [empty; N] }
    }

    pub(crate) fn reserve(&mut self, pages: usize) {
        if pages > self.list.len() {
            self.links.resize(pages, [END; 2]);
            self.list.resize(pages, NONE);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.links[..]) + size_of_val(&self.list[..])
    }

    /// Reads what [`Self::enqueue`] needs of the pages.
    #[inline]
    pub(crate) fn approach(&self, pages: &[PageId]) {
        prefetch::read(pages, |page| u32::from(self.list[page.index()]));
    }

    #[inline]
    pub(crate) fn list_of(&self, page: PageId) -> Option<usize> {
        let list = self.list[page.index()];
        (list != NONE).then_some(usize::from(list))
    }

    pub(crate) fn len(&self, list: usize) -> usize {
        self.ends[list].length
    }

    /// Puts a page, wherever it was, last into `list`; one that is in it already keeps its place.
    #[inline]
    pub(crate) fn enqueue(&mut self, list: usize, page: PageId) {
        if self.list_of(page) != Some(list) {
            self.remove(page);
            self.link(list, self.ends[list].back, page.0, END);
        }
    }

    pub(crate) fn enqueue_first(&mut self, list: usize, page: PageId) {
        self.remove(page);
        self.link(list, END, page.0, self.ends[list].front);
    }

    pub(crate) fn dequeue(&mut self, list: usize) -> Option<PageId> {
        let front = self.ends[list].front;
        let page = (front != END).then_some(PageId(front))?;
        self.remove(page);
        Some(page)
    }

    #[inline]
    pub(crate) fn remove(&mut self, page: PageId) {
        let Some(list) = self.list_of(page) else { return };
        let [before, after] = self.links[page.index()];
        self.join(list, before, after);
        self.list[page.index()] = NONE;
        self.ends[list].length -= 1;
    }

    fn link(&mut self, list: usize, before: u32, page: u32, after: u32) {
        self.join(list, before, page);
        self.join(list, page, after);
        self.list[page as usize] = list as u8;
        self.ends[list].length += 1;
    }

    fn join(&mut self, list: usize, before: u32, after: u32) {
        match before {
            END => self.ends[list].front = after,
            page => self.links[page as usize][1] = after,
        }
        match after {
            END => self.ends[list].back = before,
            page => self.links[page as usize][0] = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn pages(lists: &PageLists<2>, list: usize) -> Vec<u32> {
        let listed = |page: u32| (page != END).then_some(page);
        let next = |&page: &u32| listed(lists.links[page as usize][1]);
        std::iter::successors(listed(lists.ends[list].front), next).collect()
    }

    proptest! {
        /// Any sequence of operations leaves what two queues of pages would hold.
        #[test]
        fn the_lists_behave_like_queues(steps in prop::collection::vec((0..4, 0..2usize, 0..12u32), 1..200)) {
            let mut lists = PageLists::<2>::new(12);
            let mut queues = [VecDeque::new(), VecDeque::new()];
            for (operation, list, page) in steps {
                let here = queues[list].contains(&page);
                if operation == 1 || operation == 2 || (operation == 0 && !here) {
                    queues.iter_mut().for_each(|queue| queue.retain(|&other| other != page));
                }
                match operation {
                    0 => {
                        if !here {
                            queues[list].push_back(page);
                        }
                        lists.enqueue(list, PageId(page));
                    }
                    1 => {
                        queues[list].push_front(page);
                        lists.enqueue_first(list, PageId(page));
                    }
                    2 => lists.remove(PageId(page)),
                    _ => prop_assert_eq!(lists.dequeue(list), queues[list].pop_front().map(PageId)),
                }
                for (list, queue) in queues.iter().enumerate() {
                    prop_assert_eq!(pages(&lists, list), Vec::from(queue.clone()));
                    prop_assert_eq!(lists.len(list), queue.len());
                }
            }
        }
    }
}
