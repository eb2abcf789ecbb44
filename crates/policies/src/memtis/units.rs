//! The units that Memtis counts and moves: single pages or, if huge pages are asked for, ranges of 2 MiB.

use std::ops::Range;

use isotherm_core::{PageId, View};

#[derive(Debug, Clone)]
pub(super) struct Units {
    huge: bool,
    /// The first page of each page's unit; empty where every page is a unit.
    heads: Vec<u32>,
    /// The pages of the unit that begins here; 0 inside a unit.
    sizes: Vec<u16>,
}

impl Units {
    pub(super) fn new(huge: bool) -> Self {
        Self { huge, heads: Vec::new(), sizes: Vec::new() }
    }

    /// Enters the new pages of `view`: whole ranges as one unit, late comers to a range singly.
    pub(super) fn reserve(&mut self, view: &dyn View) {
        if !self.huge {
            return;
        }
        while self.heads.len() < view.pages() {
            let page = self.heads.len() as u32;
            let range = view.huge_range(PageId(page));
            let end = range.end.min(view.pages() as u32);
            if range.start == page && end > page {
                self.heads.resize(end as usize, page);
                self.sizes.push((end - page) as u16);
                self.sizes.resize(end as usize, 0);
            } else {
                self.heads.push(page);
                self.sizes.push(1);
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.heads.len() as u32
    }

    #[inline]
    pub(super) fn unit(&self, page: PageId) -> PageId {
        self.heads.get(page.index()).map_or(page, |&head| PageId(head))
    }

    #[inline]
    pub(super) fn pages(&self, unit: PageId) -> Range<u32> {
        let size = self.sizes.get(unit.index()).map_or(1, |&size| u32::from(size));
        unit.0..unit.0 + size
    }

    pub(super) fn split(&mut self, unit: PageId) {
        for page in self.pages(unit) {
            self.heads[page as usize] = page;
            self.sizes[page as usize] = 1;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.heads[..]) + size_of_val(&self.sizes[..])
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Pages;

    use super::*;
    use crate::support::test_view::TestView;

    #[test]
    fn ranges_are_units_until_they_are_split() {
        let view = TestView::new(&[Pages(2048)], 1200);
        let mut units = Units::new(true);
        units.reserve(&view);
        assert_eq!(units.pages(units.unit(PageId(700))), 512..1024);
        assert_eq!(units.pages(units.unit(PageId(1199))), 1024..1200, "the last range is not full");
        units.split(PageId(512));
        assert_eq!(units.pages(units.unit(PageId(700))), 700..701);
        assert_eq!(units.pages(units.unit(PageId(511))), 0..512);
    }

    #[test]
    fn pages_that_appear_in_a_known_range_are_units_of_their_own() {
        let mut view = TestView::new(&[Pages(2048)], 600);
        let mut units = Units::new(true);
        units.reserve(&view);
        view.allocate();
        units.reserve(&view);
        assert_eq!(units.pages(units.unit(PageId(599))), 512..600);
        assert_eq!(units.pages(units.unit(PageId(600))), 600..601);
    }

    #[test]
    fn without_huge_pages_every_page_is_a_unit() {
        let view = TestView::new(&[Pages(2048)], 600);
        let mut units = Units::new(false);
        units.reserve(&view);
        assert_eq!(units.pages(units.unit(PageId(599))), 599..600);
        assert_eq!(units.bytes(), 0);
    }
}
