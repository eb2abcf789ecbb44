//! Defines where the sampled accesses went: a count a page, and the hot set that follows.

use isotherm_core::{Bytes, PageId, TierId};
use serde::Serialize;

use super::memory::Memory;
use super::poisson_mixture;
use isotherm_linux::process::Pid;

/// Shares of the accesses whose pages are counted.
const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
/// Ranges of the fast tier that are listed at most, the hottest first.
const RANGES: usize = 1000;
/// Ranges of hot pages that are listed at most, in address order.
const HOT_RANGES: usize = 10_000;
/// Samples a mapped page on average, after which all counts are halved: what was hot long ago is not.
const FULL: u64 = 16;

/// Sampled accesses of every page.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    counts: Vec<u32>,
    /// Samples since the counts were halved.
    recent: u64,
}

/// How much memory takes how many of the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HotShare {
    /// This share of the sampled accesses ...
    pub accesses: f64,
    /// ... went to this much memory, the hottest.
    pub bytes: Bytes,
}

/// Neighbouring pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryRange {
    /// Whose.
    pub process: Pid,
    /// Its first address.
    pub start: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Sampled accesses to it.
    pub accesses: u64,
}

/// Pages that are hot: accessed at the higher of two rates that explain the samples of all pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HotPages {
    /// From so many samples on a page is one; 0 where pages do not fall in two groups.
    pub at_least: u32,
    /// Their memory.
    pub bytes: Bytes,
    /// Their share of the sampled accesses.
    pub accesses: f64,
    /// Where they are, in address order, at most ten thousand ranges.
    pub ranges: Vec<MemoryRange>,
}

/// Where the accesses went, those of long ago at less than their number.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HotSet {
    /// Memory for several shares of the accesses.
    pub shares: Vec<HotShare>,
    /// The hot pages.
    pub hot: HotPages,
    /// What lies on the fast tier at the end, the most accessed ranges first, and at most a thousand.
    pub fast_ranges: Vec<MemoryRange>,
}

impl Heat {
    /// The count of a page, for a loop that only reads.
    #[inline]
    pub(crate) fn peek(&self, page: PageId) -> u32 {
        self.counts.get(page.index()).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn add(&mut self, page: PageId, weight: u32) {
        if page.index() >= self.counts.len() {
            self.grow(page);
        }
        let count = &mut self.counts[page.index()];
        *count = count.saturating_add(weight);
        self.recent += 1;
    }

    /// Halves all counts when there are many for `mapped` pages.
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
        let mut fast_ranges = self.ranges(memory, |_, tier| tier == TierId::FAST);
        let page_bytes = memory.page_size().bytes().0;
        fast_ranges.sort_by_key(|range| std::cmp::Reverse(range.accesses * page_bytes / range.bytes.0));
        fast_ranges.truncate(RANGES);
        let shares = self.shares(memory.page_size().bytes());
        HotSet { shares, hot: self.hot_pages(memory), fast_ranges }
    }

    fn hot_pages(&self, memory: &Memory) -> HotPages {
        let mut counts = Vec::new();
        memory.residency.walk(PageId(0), usize::MAX, |page, _| counts.push(self.of(page) as u32));
        let Some(at_least) = poisson_mixture::border(counts.iter().copied()) else {
            return HotPages::default();
        };
        let mut ranges = self.ranges(memory, |page, _| self.of(page) >= u64::from(at_least));
        let bytes = Bytes(ranges.iter().map(|range| range.bytes.0).sum());
        let hot: u64 = ranges.iter().map(|range| range.accesses).sum();
        let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        ranges.truncate(HOT_RANGES);
        HotPages { at_least, bytes, accesses: hot as f64 / all.max(1) as f64, ranges }
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

    /// Neighbouring mapped pages that are `wanted`, in address order of each 2 MiB.
    fn ranges(&self, memory: &Memory, wanted: impl Fn(PageId, TierId) -> bool) -> Vec<MemoryRange> {
        let bytes = memory.page_size().bytes();
        let mut ranges: Vec<MemoryRange> = Vec::new();
        memory.residency.walk(PageId(0), usize::MAX, |page, tier| {
            let Some((process, start)) = memory.numbers.address(page).filter(|_| wanted(page, tier)) else {
                return;
            };
            let accesses = self.of(page);
            match ranges.last_mut() {
                Some(last) if last.process == process && last.start + last.bytes.0 == start => {
                    last.bytes += bytes;
                    last.accesses += accesses;
                }
                _ => ranges.push(MemoryRange { process, start, bytes, accesses }),
            }
        });
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
