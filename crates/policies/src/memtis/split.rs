//! The choice of huge ranges to split. Beside the real histogram stands an estimated one of base pages: a
//! sample of a page that is hot there would have hit. While 95 % of that hit ratio exceed the real one,
//! ranges are split,
//!
//! ```text
//! count = (95 % x estimated - real) x accessed ranges x latency gap x strength
//! ```
//!
//! of them, the most skewed first: the sum of the squared counts of a range's pages over 11 times the square
//! of the number of its hot pages. A range with a skewness below 1 stays whole, and so does one whose pages
//! are all hot: its pages would be placed as the range is.

use isotherm_core::{PageId, Work};

use super::counts::{Counts, PageCounts, Rebin};
use super::histogram::{Histogram, bin_of, clamp};
use super::settings::{BASE_PAGES, Derived};
use super::units::Units;

const SKEWNESS_SCALE: f64 = 11.0;

#[derive(Debug, Clone)]
pub(super) struct Splitter {
    /// Samples of each range, at its first page.
    pub(super) ranges: Counts,
    estimate: Histogram,
    hot: u8,
    /// Samples since the last decision: all, those that hit, those that would have hit.
    samples: u64,
    hits: u64,
    estimated_hits: u64,
}

impl Splitter {
    pub(super) fn new(pages: usize) -> Self {
        let (ranges, estimate) = (Counts::new(pages, u64::MAX), Histogram::new());
        Self { ranges, estimate, hot: 1, samples: 0, hits: 0, estimated_hits: 0 }
    }

    /// Takes note of a sample that moved its base page to another bin, and of whether it hit the fast tier.
    #[inline]
    pub(super) fn count(&mut self, rebin: Rebin, hit: bool) {
        self.estimate.shift(rebin.before, rebin.after, 1);
        self.samples += 1;
        self.hits += u64::from(hit);
        self.estimated_hits += u64::from(clamp(rebin.before) >= self.hot);
    }

    pub(super) fn cool(&mut self) {
        self.ranges.cool();
        self.estimate.cool();
    }

    pub(super) fn fit(&mut self, room: u64) {
        self.hot = self.estimate.threshold_for(room).0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.ranges.bytes()
    }

    /// Returns the ranges to split now, the most skewed first; begins a new interval of hit ratios.
    pub(super) fn choose(
        &mut self,
        counts: &impl PageCounts,
        units: &Units,
        derived: &Derived,
        work: &mut Work,
    ) -> Vec<PageId> {
        let samples = self.samples.max(1) as f64;
        let missing = (derived.split_margin * self.estimated_hits as f64 - self.hits as f64) / samples;
        (self.samples, self.hits, self.estimated_hits) = (0, 0, 0);
        if missing <= 0.0 {
            return Vec::new();
        }
        let (mut accessed, mut skewed, mut page) = (0u64, Vec::new(), 0);
        while page < units.len() {
            let unit = PageId(page);
            let range = units.pages(unit);
            page = range.end;
            if range.len() > 1 && self.ranges.get(unit) > 0 {
                accessed += 1;
                let skewness = self.skewness(range, counts);
                if skewness >= 1.0 {
                    skewed.push((skewness, unit));
                }
            }
        }
        work.swept += counts.bytes() as u64;
        work.operations += u64::from(units.len());
        skewed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let count = (missing * accessed as f64 * derived.split_gain).ceil() as usize;
        skewed.into_iter().take(count).map(|(_, unit)| unit).collect()
    }

    /// Returns how unevenly a range's accesses spread over its pages; 0 if none or all of them are hot.
    fn skewness(&self, range: std::ops::Range<u32>, counts: &impl PageCounts) -> f64 {
        let (mut squares, mut hot, size) = (0.0, 0u64, range.len() as u64);
        for page in range {
            let value = counts.get(PageId(page));
            let samples = f64::from(value) / f64::from(BASE_PAGES);
            squares += samples * samples;
            hot += u64::from(clamp(bin_of(value)) >= self.hot);
        }
        if hot == 0 || hot == size { 0.0 } else { squares / SKEWNESS_SCALE / (hot * hot) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Parameters;
    use isotherm_core::{PageSize, Pages};

    use super::*;
    use crate::Setup;
    use crate::memtis::settings::Settings;
    use crate::support::test_view::TestView;

    /// Ranges whose accesses fall on `hot` pages each, 100 samples a page, while no sample hits.
    fn chosen(hot: &[u32]) -> Vec<u32> {
        let pages = hot.len() * BASE_PAGES as usize;
        let setup = Setup { pages, fast: Pages(2000), page_size: PageSize::Base, tiers: 2, seed: 1 };
        let mut parameters = Parameters::new("memtis", Settings::SPECS);
        parameters.set("huge_pages", "true").expect("a flag");
        let Settings { common, splits, .. } = Settings::read(&parameters);
        let derived = Derived::new(&common, &splits, &setup);
        let (mut counts, mut splitter) = (Counts::new(pages, 1), Splitter::new(pages));
        let mut units = Units::new(true);
        units.reserve(&TestView::new(&[Pages(pages as u64)], pages));
        for (range, &hot) in (0..).zip(hot) {
            for sample in 0..100 * hot {
                let head = range * BASE_PAGES;
                let rebin = counts.add(PageId(head + sample % hot), BASE_PAGES);
                splitter.count(rebin, false);
                splitter.ranges.add(PageId(head), 1);
            }
        }
        splitter.fit(derived.room);
        let mut work = Work::default();
        let chosen = splitter.choose(&counts, &units, &derived, &mut work);
        chosen.iter().map(|unit| unit.0 / BASE_PAGES).collect()
    }

    #[test]
    fn the_most_skewed_ranges_are_split_first() {
        // 100^2 x hot / 11 / hot^2: the fewer hot pages, the more skewed. Most samples would have hit: 95 % x
        // 3 ranges x 1.125 x 0.4, rounded up, are two.
        assert_eq!(chosen(&[40, 2, 10]), [1, 2]);
    }

    #[test]
    fn even_ranges_are_not_split_however_many_hits_are_missing() {
        assert!(
            chosen(&[512, 512]).is_empty(),
            "their skewness is 100^2 / 11 / 512 = 1.8, but all pages are hot"
        );
    }

    #[test]
    fn nothing_is_split_without_samples() {
        assert!(chosen(&[0]).is_empty());
    }
}
