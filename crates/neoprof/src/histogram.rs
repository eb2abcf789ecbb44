//! Defines the histogram of the first lane's counters, its quantiles, and the error bound that follows from it.
//!
//! Bins come in groups of 8, those of group `g` 2^g counts wide: 0, 1, ... 7, 8-9, ... 22-23, 24-27 and so on; the
//! last one also takes all above.

use std::ops::RangeInclusive;

/// Bins of equal width.
const GROUP: u32 = 8;

/// The bin that a count falls into, of `bins`.
#[must_use]
pub const fn bin_of(count: u32, bins: u32) -> u32 {
    let group = (count + GROUP).ilog2() - GROUP.ilog2();
    let bin = GROUP * group + ((count + GROUP) >> group) - GROUP;
    if bin < bins { bin } else { bins - 1 }
}

/// The counts of a bin, of `bins`, in a device whose greatest count is `counter_max`. Empty where no count is so high.
#[must_use]
pub const fn bin_range(bin: u32, bins: u32, counter_max: u32) -> RangeInclusive<u32> {
    let low = lowest(bin);
    let high = if bin + 1 == bins { counter_max } else { lowest(bin + 1) - 1 };
    low..=if high < counter_max { high } else { counter_max }
}

/// The lowest count of a bin.
const fn lowest(bin: u32) -> u32 {
    let group = bin / GROUP;
    ((bin % GROUP + GROUP) << group) - GROUP
}

/// A bin of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// The counts that fall into it.
    pub counts: RangeInclusive<u32>,
    /// The entries of the first lane with such a count.
    pub entries: u64,
}

/// How many entries of the first lane have which count. Entries that no access touched count 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    bins: Vec<u64>,
    counter_max: u32,
}

impl Histogram {
    /// The histogram with these entries in its bins, of a device whose greatest count is `counter_max`.
    #[must_use]
    pub fn new(bins: Vec<u64>, counter_max: u32) -> Self {
        Self { bins, counter_max }
    }

    /// The histogram of these counts.
    #[must_use]
    pub fn of(counts: impl IntoIterator<Item = u32>, bins: u32, counter_max: u32) -> Self {
        let mut histogram = vec![0; bins as usize];
        counts.into_iter().for_each(|count| histogram[bin_of(count, bins) as usize] += 1);
        Self::new(histogram, counter_max)
    }

    /// The bins, from the lowest counts up.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = Bin> + ExactSizeIterator {
        let bins = self.bins.len() as u32;
        (0..bins)
            .zip(&self.bins)
            .map(move |(bin, &entries)| Bin { counts: bin_range(bin, bins, self.counter_max), entries })
    }

    /// All entries: the lane's width.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Where the `rank`-th highest of all counts lies (1 is the highest): the counts of its bin. None if there are
    /// fewer, or for 0.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<RangeInclusive<u32>> {
        let mut above = 0;
        self.bins().rev().find_map(|bin| {
            above += bin.entries;
            (rank > 0 && above >= rank).then_some(bin.counts)
        })
    }

    /// The quantile function of section V-A: a count that at least the share `share` of all entries stays below or
    /// at; a bin's highest, so that no more entries than asked for exceed it. 0 for an empty histogram.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u32 {
        let above = ((1.0 - share.clamp(0.0, 1.0)) * self.entries() as f64).floor() as u64;
        self.at_rank((above + 1).min(self.entries())).map_or(0, |counts| *counts.end())
    }

    /// The bound e of section IV-B: with probability `1 - delta` a page's estimate exceeds its true count by at most
    /// that. It is the count of rank `W * delta^(1/D)`, for two lanes and `delta = 0.25` the median; of the bin that
    /// this falls into, the highest, so the promise holds with bins too. `delta` is taken into 0 to 1.
    ///
    /// Why: another page's error in a lane is a count of that lane drawn by the hash, and less than the share
    /// `delta^(1/D)` of counts exceeds e; the estimate is off by more only if that happens in all D lanes.
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

    #[test]
    fn bins_cover_all_counts_in_order() {
        for (bins, max) in [(64, 65_535), (64, 255), (16, 65_535), (8, 15)] {
            for count in 0..=max {
                let bin = bin_of(count, bins);
                assert!(bin < bins && bin_range(bin, bins, max).contains(&count), "{count} in {bin}");
            }
        }
    }

    #[test]
    fn widths_double_every_eight_bins() {
        assert_eq!(bin_range(0, 64, 65_535), 0..=0);
        assert_eq!(bin_range(7, 64, 65_535), 7..=7);
        assert_eq!(bin_range(8, 64, 65_535), 8..=9);
        assert_eq!(bin_range(16, 64, 65_535), 24..=27);
        assert_eq!(bin_range(63, 64, 65_535), 1_912..=65_535);
    }

    #[test]
    fn ranks_quantiles_and_bounds_of_a_known_row() {
        let row = (0..100u32).map(|entry| if entry < 10 { 5 } else { u32::from(entry < 40) });
        let histogram = Histogram::of(row, 64, 65_535);
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
    fn an_empty_histogram_bounds_nothing() {
        let histogram = Histogram::new(Vec::new(), 15);
        assert_eq!((histogram.entries(), histogram.quantile(0.5), histogram.error_bound(2, 0.25)), (0, 0, 0));
    }
}
