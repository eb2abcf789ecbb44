//! Bins of the histogram of the first lane's counters.
//!
//! Bins come in groups of 8; those of group `g` are 2^g counts wide: 0, 1, ... 7, 8-9, ... 22-23, 24-27 and
//! so on. The last bin also takes all higher counts.

use std::ops::RangeInclusive;

use isotherm_core::{Bin, Histogram};

const GROUP: u32 = 8;

/// Returns the bin of a count, of `bins`.
#[must_use]
pub const fn bin_of(count: u32, bins: u32) -> u32 {
    let group = (count + GROUP).ilog2() - GROUP.ilog2();
    let bin = GROUP * group + ((count + GROUP) >> group) - GROUP;
    if bin < bins { bin } else { bins - 1 }
}

/// Returns the counts of a bin, of `bins`, up to `counter_max`; empty if no count is so high.
#[must_use]
pub const fn bin_range(bin: u32, bins: u32, counter_max: u32) -> RangeInclusive<u32> {
    let low = lowest(bin);
    let high = if bin + 1 == bins { counter_max } else { lowest(bin + 1) - 1 };
    low..=if high < counter_max { high } else { counter_max }
}

const fn lowest(bin: u32) -> u32 {
    let group = bin / GROUP;
    ((bin % GROUP + GROUP) << group) - GROUP
}

/// Returns the histogram with these entries in its bins, from the lowest counts up to `counter_max`.
#[must_use]
pub fn histogram_of_bins(entries: &[u64], counter_max: u32) -> Histogram {
    let bins = entries.len() as u32;
    let bin = |(bin, &entries)| Bin { counts: bin_range(bin, bins, counter_max), entries };
    Histogram::new((0..bins).zip(entries).map(bin).collect())
}

/// Returns the histogram of these counts.
#[must_use]
pub fn histogram_of_counts(counts: impl IntoIterator<Item = u32>, bins: u32, counter_max: u32) -> Histogram {
    let mut entries = vec![0; bins as usize];
    counts.into_iter().for_each(|count| entries[bin_of(count, bins) as usize] += 1);
    histogram_of_bins(&entries, counter_max)
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
    fn counts_fall_into_their_bins() {
        let histogram = histogram_of_counts([0, 0, 7, 8, 9, 10], 16, 63);
        let filled: Vec<_> = histogram.bins().filter(|bin| bin.entries > 0).cloned().collect();
        let bin = |counts, entries| Bin { counts, entries };
        assert_eq!(filled, [bin(0..=0, 2), bin(7..=7, 1), bin(8..=9, 2), bin(10..=11, 1)]);
    }
}
