//! Defines the number of pages at each count, kept up to date from the changes of a tracker.

use crate::Change;

/// The largest count with a bin of its own: that of 16-bit counters.
const HIGHEST: u32 = u16::MAX as u32;

/// The number of pages at each count from 1 to a maximum, from which a hot threshold follows.
///
/// A filter cannot be asked for its pages; but each of its increases tells one page's old and new estimate, which
/// moves that page from bin to bin, and ageing halves counts and bins alike. Where a neighbour has raised a page's
/// estimate unseen, the page is taken from the next lower bin that has one: the error is that of the filter, no bin
/// ever falls below zero and the pages in all bins stay those counted.
#[derive(Debug, Clone)]
pub struct CountHistogram {
    /// `bins[count]` pages; bin 0 stays empty.
    bins: Vec<u64>,
}

impl CountHistogram {
    /// An empty histogram for a tracker with this maximum. Counts above 65535 share the last bin.
    pub fn new(maximum: u32) -> Self {
        Self { bins: vec![0; maximum.min(HIGHEST) as usize + 1] }
    }

    /// The largest count that has a bin.
    pub fn maximum(&self) -> u32 {
        self.bins.len() as u32 - 1
    }

    /// The number of pages at each count; entry 0 is always 0.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// The number of pages with a count of at least `count`.
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

    /// Follows an ageing of the tracker: bin `i` joins bin `i / 2`; pages that had 1 are forgotten.
    pub fn age(&mut self) {
        for count in 1..self.bins.len() {
            let pages = std::mem::take(&mut self.bins[count]);
            if count > 1 {
                self.bins[count / 2] += pages;
            }
        }
    }

    /// The smallest threshold whose pages fit into `capacity` pages (FreqTier, section V-C a); at least 1.
    ///
    /// It is one above the maximum where even the pages at the maximum do not fit.
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
