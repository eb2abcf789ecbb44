//! Memtis' access histogram: the pages of each order of magnitude of accesses.

/// Bins that thresholds distinguish.
pub(crate) const BINS: u8 = 16;
/// Bins: all that a 32-bit count can have, so that a cooling moves even the largest counts.
const KEPT: usize = 33;

/// Returns the bin of a count: floor(log2(count + 1)).
#[inline]
pub(crate) fn bin_of(count: u32) -> u8 {
    (u64::from(count) + 1).ilog2() as u8
}

/// Returns the bin as thresholds see it: counts of the last bin and above share it.
#[inline]
pub(super) fn clamp(bin: u8) -> u8 {
    bin.min(BINS - 1)
}

/// Pages by bin. Bin 0, pages without accesses, is not kept: nothing asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    bins: [u64; KEPT],
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { bins: [0; KEPT] }
    }

    #[inline]
    pub(crate) fn shift(&mut self, before: u8, after: u8, pages: u64) {
        if before == after {
            return;
        }
        if before > 0 {
            self.bins[usize::from(before)] -= pages;
        }
        if after > 0 {
            self.bins[usize::from(after)] += pages;
        }
    }

    /// Halving a count takes it one bin down, but the largest of a bin stays in it until the page is next
    /// counted.
    pub(crate) fn cool(&mut self) {
        self.bins.copy_within(2.., 1);
        self.bins[KEPT - 1] = 0;
    }

    /// Returns the pages of a bin, the last one with all above it.
    pub(crate) fn pages(&self, bin: u8) -> u64 {
        let bins = &self.bins[usize::from(bin)..];
        if bin + 1 == BINS { bins.iter().sum() } else { bins[0] }
    }

    /// Returns the lowest bin, at least 1, from which on all pages fit into `capacity`, and their number; the
    /// last bin, with no fitting pages, if not even that fits.
    pub(super) fn threshold_for(&self, capacity: u64) -> (u8, u64) {
        let mut fitting = 0;
        for bin in (1..BINS).rev() {
            let pages = self.pages(bin);
            if fitting + pages > capacity {
                return ((bin + 1).min(BINS - 1), fitting);
            }
            fitting += pages;
        }
        (1, fitting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(pages: &[(u8, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        pages.iter().for_each(|&(bin, pages)| histogram.shift(0, bin, pages));
        histogram
    }

    #[test]
    fn bins_are_the_rounded_down_logarithm_of_one_more_than_the_count() {
        for (count, bin) in
            [(0, 0), (1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (512, 9), (65_534, 15), (65_535, 16)]
        {
            assert_eq!(bin_of(count), bin, "{count}");
        }
        assert_eq!(clamp(bin_of(u32::MAX)), 15);
    }

    #[test]
    fn the_threshold_is_the_lowest_bin_whose_pages_fit() {
        let histogram = histogram(&[(9, 100), (10, 20), (12, 5), (20, 3)]);
        assert_eq!(histogram.pages(15), 3, "all above the last bin are in it");
        assert_eq!(histogram.threshold_for(28), (10, 28));
        assert_eq!(histogram.threshold_for(27), (11, 8));
        assert_eq!(histogram.threshold_for(128), (1, 128));
        assert_eq!(histogram.threshold_for(2), (15, 0), "not even the last bin fits");
    }

    #[test]
    fn a_cooling_moves_every_bin_down_and_forgets_the_first() {
        let mut histogram = histogram(&[(1, 7), (2, 5), (16, 3)]);
        histogram.cool();
        assert_eq!((histogram.pages(1), histogram.pages(2), histogram.pages(15)), (5, 0, 3));
        histogram.cool();
        assert_eq!((histogram.pages(14), histogram.pages(15)), (3, 0));
    }
}
