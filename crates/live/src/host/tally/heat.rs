//! A count of sampled accesses for every page.

use std::ops::Range;

use isotherm_core::PageId;

/// Mean number of samples per mapped page after which all counts are halved, so that old heat fades.
const FULL: u64 = 16;

#[derive(Debug, Default)]
pub(crate) struct Heat {
    counts: Vec<u32>,
    /// Samples since the counts were last halved.
    recent: u64,
}

impl Heat {
    #[inline]
    pub(crate) fn of(&self, page: PageId) -> u32 {
        self.counts.get(page.index()).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn add(&mut self, page: PageId, weight: u32) {
        if page.index() >= self.counts.len() {
            self.grow(page);
        }
        let count = &mut self.counts[page.index()];
        *count = count.saturating_add(weight);
        self.recent += 1;
    }

    /// Halves all counts if there are many samples for `mapped` pages.
    pub(crate) fn age(&mut self, mapped: u64) {
        if self.recent > FULL * mapped.max(1) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.recent = 0;
        }
    }

    #[cold]
    fn grow(&mut self, page: PageId) {
        self.counts.resize((page.index() + 1).next_multiple_of(512), 0);
    }

    pub(crate) fn forget(&mut self, pages: Range<u32>) {
        let end = self.counts.len().min(pages.end as usize);
        if let Some(counts) = self.counts.get_mut(pages.start as usize..end) {
            counts.fill(0);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_fade_and_are_forgotten() {
        let mut heat = Heat::default();
        heat.add(PageId(3), 90);
        heat.add(PageId(3), 10);
        assert_eq!((heat.of(PageId(3)), heat.of(PageId(4)), heat.of(PageId(9999))), (100, 0, 0));
        (0..40).for_each(|_| heat.add(PageId(4), 1));
        heat.age(2);
        assert_eq!((heat.of(PageId(3)), heat.of(PageId(4))), (50, 20));
        heat.forget(0..512);
        assert_eq!(heat.of(PageId(3)), 0);
    }
}
