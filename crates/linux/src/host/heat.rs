//! Defines where the sampled accesses went: a count a page, and the hot set that follows.

use isotherm_core::{Bytes, PageId, TierId};
use serde::Serialize;

use super::memory::Memory;
use crate::process::Pid;

/// Shares of the accesses whose pages are counted.
const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
/// Ranges of hot memory that are listed at most, the hottest first.
const RANGES: usize = 1000;

/// Sampled accesses of every page.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    counts: Vec<u32>,
}

/// How much memory takes how many of the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HotShare {
    /// This share of the sampled accesses ...
    pub accesses: f64,
    /// ... went to this much memory, the hottest.
    pub bytes: Bytes,
}

/// Neighbouring pages on the fast tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FastRange {
    /// Whose.
    pub process: Pid,
    /// Its first address.
    pub start: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Sampled accesses to it.
    pub accesses: u64,
}

/// Where the accesses went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HotSet {
    /// Memory for several shares of the accesses.
    pub shares: Vec<HotShare>,
    /// What lies on the fast tier at the end, the most accessed ranges first, and at most a thousand.
    pub fast_ranges: Vec<FastRange>,
}

impl Heat {
    #[inline]
    pub(crate) fn add(&mut self, page: PageId, weight: u32) {
        if page.index() >= self.counts.len() {
            self.grow(page);
        }
        let count = &mut self.counts[page.index()];
        *count = count.saturating_add(weight);
    }

    #[cold]
    fn grow(&mut self, page: PageId) {
        self.counts.resize((page.index() + 1).next_multiple_of(512), 0);
    }

    /// The pages' numbers mean other memory from now on.
    pub(crate) fn forget(&mut self, pages: std::ops::Range<u32>) {
        let end = self.counts.len().min(pages.end as usize);
        if let Some(counts) = self.counts.get_mut(pages.start as usize..end) {
            counts.fill(0);
        }
    }

    fn of(&self, page: PageId) -> u64 {
        self.counts.get(page.index()).map_or(0, |&count| u64::from(count))
    }

    pub(crate) fn hot_set(&self, memory: &Memory) -> HotSet {
        HotSet { shares: self.shares(memory.page_size().bytes()), fast_ranges: self.fast_ranges(memory) }
    }

    fn shares(&self, page: Bytes) -> Vec<HotShare> {
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

    fn fast_ranges(&self, memory: &Memory) -> Vec<FastRange> {
        let page_bytes = memory.page_size().bytes().0;
        let mut ranges: Vec<FastRange> = Vec::new();
        memory.residency.walk(PageId(0), usize::MAX, |page, tier| {
            let Some((process, start)) = memory.numbers.address(page).filter(|_| tier == TierId::FAST) else {
                return;
            };
            match ranges.last_mut() {
                Some(last) if last.process == process && last.start + last.bytes.0 == start => {
                    last.bytes += Bytes(page_bytes);
                    last.accesses += self.of(page);
                }
                _ => {
                    let (bytes, accesses) = (Bytes(page_bytes), self.of(page));
                    ranges.push(FastRange { process, start, bytes, accesses });
                }
            }
        });
        ranges.sort_by_key(|range| std::cmp::Reverse(range.accesses * page_bytes / range.bytes.0));
        ranges.truncate(RANGES);
        ranges
    }

    /// Memory that it occupies, in bytes.
    pub(crate) fn bytes(&self) -> usize {
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
