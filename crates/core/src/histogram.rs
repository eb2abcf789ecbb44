//! The histogram of counts that a profiling device keeps, its quantiles and its error bound.

use std::ops::RangeInclusive;

/// A bin of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// The counts that fall into it.
    pub counts: RangeInclusive<u32>,
    /// The entries with such a count.
    pub entries: u64,
}

/// The number of entries with each count. Entries that no access touched count 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// From the lowest counts up.
    bins: Vec<Bin>,
}

impl Histogram {
    /// Returns the histogram of these bins, from the lowest counts up.
    #[must_use]
    pub fn new(bins: Vec<Bin>) -> Self {
        Self { bins }
    }

    /// Returns the histogram of the entries of both: of two devices, each with a part of the pages.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        for bin in other.bins {
            match self.bins.iter_mut().find(|own| own.counts == bin.counts) {
                Some(own) => own.entries += bin.entries,
                None => self.bins.push(bin),
            }
        }
        self.bins.sort_by_key(|bin| (*bin.counts.end(), *bin.counts.start()));
        self
    }

    /// Returns the bins, from the lowest counts up.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = &Bin> + ExactSizeIterator {
        self.bins.iter()
    }

    /// Returns all entries: of a sketch, the width of its first lane.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.bins.iter().map(|bin| bin.entries).sum()
    }

    /// Returns the counts of the bin with the `rank`-th highest count (from 1); `None` if there are fewer.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<RangeInclusive<u32>> {
        let mut above = 0;
        self.bins.iter().rev().find_map(|bin| {
            above += bin.entries;
            (rank > 0 && above >= rank).then(|| bin.counts.clone())
        })
    }

    /// Returns the quantile of NeoMem, section V-A: a share of at most `share` of all entries has fewer
    /// counts; 0 for an empty histogram. It is the lowest count of its bin: the last bin has no end but the
    /// counters' own, which no page exceeds.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u32 {
        // A share such as 1 - 0.0001 is a bit less than that: whole numbers of entries stay whole.
        let above = ((1.0 - share.clamp(0.0, 1.0)) * self.entries() as f64 + 1e-6).floor() as u64;
        self.at_rank((above + 1).min(self.entries())).map_or(0, |counts| *counts.start())
    }

    /// Returns the bound e of NeoMem, section IV-B: with probability `1 - delta` (clamped to 0 to 1) a page's
    /// estimate exceeds its true count by at most e. It is the count of rank `W * delta^(1/D)`, or the
    /// highest of its bin: another page's error in a lane is a count of that lane drawn by the hash, less
    /// than the share `delta^(1/D)` of counts exceeds e, and the estimate is off by more only if that happens
    /// in all D lanes.
    #[must_use]
    pub fn error_bound(&self, lanes: u32, delta: f64) -> u32 {
        let entries = self.entries();
        let share = delta.clamp(0.0, 1.0).powf(1.0 / f64::from(lanes.max(1)));
        let rank = (entries as f64 * share).ceil() as u64;
        self.at_rank(rank.clamp(1, entries.max(1))).map_or(0, |counts| *counts.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 entries count 0, 30 count 1 and 10 count 5.
    fn known() -> Histogram {
        let bin = |count, entries| Bin { counts: count..=count, entries };
        Histogram::new(vec![bin(0, 60), bin(1, 30), bin(5, 10)])
    }

    #[test]
    fn ranks_quantiles_and_bounds_of_a_known_row() {
        let histogram = known();
        assert_eq!(histogram.at_rank(1), Some(5..=5));
        assert_eq!(histogram.at_rank(10), Some(5..=5));
        assert_eq!(histogram.at_rank(11), Some(1..=1));
        assert_eq!(histogram.at_rank(41), Some(0..=0));
        assert_eq!((histogram.at_rank(0), histogram.at_rank(101)), (None, None));
        assert_eq!([0.0, 0.6, 0.61, 0.95, 1.0].map(|share| histogram.quantile(share)), [0, 0, 1, 5, 5]);
        assert_eq!(histogram.error_bound(2, 0.25), 0);
        assert_eq!(histogram.error_bound(2, 0.16), 1);
        assert_eq!(histogram.error_bound(1, 0.1), 5);
    }

    #[test]
    fn a_quantile_in_the_open_bin_is_a_count_that_pages_exceed() {
        let bin = |counts, entries| Bin { counts, entries };
        let histogram = Histogram::new(vec![bin(0..=0, 90), bin(24..=27, 5), bin(1_912..=65_535, 5)]);
        assert_eq!([0.94, 0.96, 1.0].map(|share| histogram.quantile(share)), [24, 1_912, 1_912]);
        assert_eq!(histogram.error_bound(1, 0.01), 65_535, "a bound is the most that it can be");
    }

    #[test]
    fn an_empty_histogram_bounds_nothing() {
        let histogram = Histogram::default();
        assert_eq!((histogram.entries(), histogram.quantile(0.5), histogram.error_bound(2, 0.25)), (0, 0, 0));
    }

    #[test]
    fn merged_bins_add_up_and_stay_in_order() {
        let other =
            Histogram::new(vec![Bin { counts: 1..=1, entries: 5 }, Bin { counts: 2..=3, entries: 7 }]);
        let merged = known().merged(other);
        let bins: Vec<_> = merged.bins().map(|bin| (*bin.counts.start(), bin.entries)).collect();
        assert_eq!(bins, [(0, 60), (1, 35), (2, 7), (5, 10)]);
        assert_eq!((merged.entries(), merged.at_rank(11)), (112, Some(2..=3)));
    }
}
