//! A count of sampled accesses for every page.

use std::ops::Range;

use isotherm_core::live_result::HotShare;
use isotherm_core::{Bytes, PageId};

/// Shares of the accesses whose memory is reported.
const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
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

    /// Returns the memory that takes each of [`SHARES`] of the accesses, for pages of this size.
    pub(crate) fn shares(&self, page: Bytes) -> Vec<HotShare> {
        let mut counts: Vec<u32> = self.counts.iter().copied().filter(|&count| count > 0).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all = counts.iter().map(|&count| u64::from(count)).sum::<u64>() as f64;
        let mut pages = counts.iter().map(|&count| u64::from(count));
        let (mut seen, mut taken) = (0, 0u64);
        let mut share = |wanted: f64| {
            while (seen as f64) < wanted * all {
                let Some(count) = pages.next() else { break };
                seen += count;
                taken += 1;
            }
            HotShare { accesses: wanted, bytes: Bytes(taken * page.0) }
        };
        SHARES.into_iter().map(&mut share).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_the_hottest_pages() {
        let mut heat = Heat::default();
        heat.add(PageId(3), 90);
        (10..20).for_each(|page| heat.add(PageId(page), 1));
        let shares = heat.shares(Bytes(4096));
        let pages: Vec<u64> = shares.iter().map(|share| share.bytes.0 / 4096).collect();
        assert_eq!(pages, [1, 1, 6, 10]);
        heat.forget(0..512);
        assert!(heat.shares(Bytes(4096)).iter().all(|share| share.bytes == Bytes(0)));
    }
}
