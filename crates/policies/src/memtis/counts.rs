//! The access counts by which Memtis and its kin class pages, and Memtis' own: exact, one a page, halved by
//! cooling only when the page is counted next.

use isotherm_core::PageId;

use super::histogram::{Histogram, bin_of};
use crate::support::prefetch;

pub(crate) trait PageCounts: std::fmt::Debug + Send {
    /// Creates zeros for the pages below `pages`, which cool every `cooling` samples (at least 1).
    fn new(pages: usize, cooling: u64) -> Self;
    fn reserve(&mut self, pages: usize);
    fn bytes(&self) -> usize;
    fn approach(&self, pages: &[PageId]);
    fn get(&self, page: PageId) -> u32;

    /// Returns the bin in which the histogram has the page.
    fn counted_bin(&self, page: PageId) -> u8;
    fn add(&mut self, page: PageId, weight: u32) -> Rebin;

    /// Lets one sample pass. If a cooling falls on it, returns the pages that the histogram's update touched.
    fn pass(&mut self, histogram: &mut Histogram) -> Option<u64>;
}

/// A page's count, and the number of coolings when it was last right.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    value: u32,
    clock: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rebin {
    /// Where the histogram has the page: its bin when last counted, one lower for each cooling since.
    pub(crate) before: u8,
    pub(crate) after: u8,
}

/// Counts of pages that cool lazily: a cooling costs nothing, however many pages there are.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    counts: Vec<Count>,
    clock: u32,
    cooling: u64,
    until_cooling: u64,
}

impl Counts {
    pub(super) fn cool(&mut self) {
        self.clock += 1;
    }
}

impl PageCounts for Counts {
    fn new(pages: usize, cooling: u64) -> Self {
        Self { counts: vec![Count::default(); pages], clock: 0, cooling, until_cooling: cooling }
    }

    fn reserve(&mut self, pages: usize) {
        if pages > self.counts.len() {
            self.counts.resize(pages, Count { value: 0, clock: self.clock });
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.counts[..])
    }

    #[inline]
    fn approach(&self, pages: &[PageId]) {
        prefetch::read(pages, |page| self.counts[page.index()].value);
    }

    #[inline]
    fn get(&self, page: PageId) -> u32 {
        let count = self.counts[page.index()];
        count.value.checked_shr(self.clock - count.clock).unwrap_or(0)
    }

    #[inline]
    fn counted_bin(&self, page: PageId) -> u8 {
        let count = self.counts[page.index()];
        u32::from(bin_of(count.value)).saturating_sub(self.clock - count.clock) as u8
    }

    #[inline]
    fn add(&mut self, page: PageId, weight: u32) -> Rebin {
        let before = self.counted_bin(page);
        let value = self.get(page).saturating_add(weight);
        self.counts[page.index()] = Count { value, clock: self.clock };
        Rebin { before, after: bin_of(value) }
    }

    #[inline]
    fn pass(&mut self, histogram: &mut Histogram) -> Option<u64> {
        self.until_cooling -= 1;
        if self.until_cooling > 0 {
            return None;
        }
        self.until_cooling = self.cooling;
        self.cool();
        histogram.cool();
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memtis::histogram::BINS;

    proptest! {
        /// Counts that cool when next touched read as if every cooling had halved all of them at once. The
        /// histogram has each page in its bin, or one lower until it is counted again.
        #[test]
        fn lazy_cooling_equals_eager_cooling(
            steps in prop::collection::vec((0..10u32, 0..8u32), 1..300),
            weight in prop::sample::select(vec![1u32, 512]),
        ) {
            let (mut counts, mut histogram, mut eager) = (Counts::new(8, 1), Histogram::new(), [0u32; 8]);
            for (operation, page) in steps {
                if operation == 0 {
                    counts.cool();
                    histogram.cool();
                    eager.iter_mut().for_each(|value| *value /= 2);
                } else {
                    let Rebin { before, after } = counts.add(PageId(page), weight);
                    histogram.shift(before, after, 1);
                    eager[page as usize] += weight;
                    prop_assert_eq!(counts.counted_bin(PageId(page)), bin_of(eager[page as usize]));
                }
                let mut kept = Histogram::new();
                for page in 0..8u32 {
                    let exact = bin_of(eager[page as usize]);
                    let counted = counts.counted_bin(PageId(page));
                    prop_assert_eq!(counts.get(PageId(page)), eager[page as usize]);
                    prop_assert!(counted == exact || counted + 1 == exact, "{counted} {exact}");
                    kept.shift(0, counted, 1);
                }
                for bin in 1..BINS {
                    prop_assert_eq!(histogram.pages(bin), kept.pages(bin));
                }
            }
        }
    }

    #[test]
    fn a_page_that_was_not_counted_for_long_has_cooled_to_nothing() {
        let mut counts = Counts::new(1, 1);
        counts.add(PageId(0), u32::MAX);
        (0..40).for_each(|_| counts.cool());
        assert_eq!((counts.get(PageId(0)), counts.counted_bin(PageId(0))), (0, 0));
        counts.reserve(2);
        assert_eq!(counts.add(PageId(1), 1), Rebin { before: 0, after: 1 });
    }
}
