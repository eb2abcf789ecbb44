//! A set of pages: one bit a page in a flat array.

use isotherm_core::PageId;

#[derive(Debug, Clone, Default)]
pub(crate) struct PageBits {
    words: Vec<u64>,
}

impl PageBits {
    pub(crate) fn new(pages: usize) -> Self {
        Self { words: vec![0; pages.div_ceil(64)] }
    }

    pub(crate) fn reserve(&mut self, pages: usize) {
        if pages.div_ceil(64) > self.words.len() {
            self.words.resize(pages.div_ceil(64), 0);
        }
    }

    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.words.get(page.index() / 64).is_some_and(|word| word >> (page.index() % 64) & 1 != 0)
    }

    /// Enters the page. Returns whether it was absent.
    pub(crate) fn insert(&mut self, page: PageId) -> bool {
        let absent = !self.contains(page);
        self.reserve(page.index() + 1);
        self.words[page.index() / 64] |= 1 << (page.index() % 64);
        absent
    }

    pub(crate) fn remove(&mut self, page: PageId) {
        if let Some(word) = self.words.get_mut(page.index() / 64) {
            *word &= !(1 << (page.index() % 64));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_set(steps in prop::collection::vec((any::<bool>(), 0..300u32), 1..200)) {
            let (mut bits, mut set) = (PageBits::new(100), BTreeSet::new());
            for (insert, page) in steps {
                if insert {
                    prop_assert_eq!(bits.insert(PageId(page)), set.insert(page));
                } else {
                    bits.remove(PageId(page));
                    set.remove(&page);
                }
                prop_assert!((0..310).all(|page| bits.contains(PageId(page)) == set.contains(&page)));
            }
        }
    }
}
