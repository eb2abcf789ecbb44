//! The number of pages at each count, updated from a tracker's changes.

use crate::Change;

/// Largest count with a bin of its own: that of 16-bit counters.
const HIGHEST: u32 = u16::MAX as u32;

/// Pages at each count from 1 to a maximum, from which a hot threshold follows.
///
/// Each increase moves one page between bins, and ageing halves counts and bins alike. When a neighbour has
/// raised a page's estimate unseen, the page is taken from the next lower occupied bin: no bin falls below
/// zero, and the bins always add up to the pages counted.
#[derive(Debug, Clone)]
pub struct CountHistogram {
    /// Pages by count; entry 0 stays 0.
    bins: Vec<u64>,
}

impl CountHistogram {
    /// Creates an empty histogram for a tracker with this maximum. Counts above 65535 share the last bin.
    pub fn new(maximum: u32) -> Self {
        Self { bins: vec![0; maximum.min(HIGHEST) as usize + 1] }
    }

    /// Returns the largest count that has a bin.
    pub fn maximum(&self) -> u32 {
        self.bins.len() as u32 - 1
    }

    /// Returns the number of pages at each count; entry 0 is always 0.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Returns the number of pages with a count of at least `count`.
    pub fn at_least(&self, count: u32) -> u64 {
        self.bins.iter().skip(count as usize).sum()
    }

    /// Moves a page from its old count to its new one.
    #[inline]
    pub fn record(&mut self, change: Change) {
        let top = self.bins.len() - 1;
        let (before, after) = ((change.before as usize).min(top), (change.after as usize).min(top));
        if before == after {
            return;
        }
        if let Some(bin) = (1..=before).rev().find(|&bin| self.bins[bin] > 0) {
            self.bins[bin] -= 1;
        }
        if after > 0 {
            self.bins[after] += 1;
        }
    }

    /// Moves the pages of a batch.
    pub fn record_all(&mut self, changes: &[Change]) {
        changes.iter().for_each(|&change| self.record(change));
    }

    /// Follows an ageing of the tracker: bin `i` joins bin `i / 2`, and a count of 1 is forgotten.
    pub fn age(&mut self) {
        for count in 1..self.bins.len() {
            let pages = std::mem::take(&mut self.bins[count]);
            if count > 1 {
                self.bins[count / 2] += pages;
            }
        }
    }

    /// Returns the smallest threshold, at least 1, whose pages fit into `capacity` pages (FreqTier, section
    /// V-C a): one above the maximum if even the pages at the maximum do not.
    pub fn threshold_for(&self, capacity: u64) -> u32 {
        let mut pages = 0;
        for count in (1..self.bins.len()).rev() {
            pages += self.bins[count];
            if pages > capacity {
                return count as u32 + 1;
            }
        }
        1
    }
}
