//! Defines which huge ranges Memtis splits: those whose accesses fall on few of their pages, while base pages would hit
//! more often.
//!
//! Beside the real histogram, in which a range counts as a whole, stands an estimated one of its base pages with a hot
//! threshold of its own. A sample of a page that is hot there would have hit, had the fast tier held the hottest base
//! pages. While 95 % of that estimated hit ratio exceed the real one, ranges are split,
//!
//! ```text
//! count = (95 % x estimated - real) x accessed ranges x latency gap x strength
//! ```
//!
//! of them, the most skewed first: the sum of the squared counts of a range's pages over 11 times the square of the
//! number of its hot pages. A range with a skewness below 1 stays whole.

use isotherm_core::{PageId, Work};

use super::counts::{Counts, Rebin};
use super::histogram::{Histogram, bin_of, clamp};
use super::settings::{BASE_PAGES, Settings};
use super::units::Units;

/// Memtis' scale of skewness.
const SKEWNESS_SCALE: f64 = 11.0;

/// Counts of whole ranges, and what their base pages would do.
#[derive(Debug, Clone)]
pub(super) struct Splitter {
    /// Samples of each range, at its first page.
    pub(super) ranges: Counts,
    estimate: Histogram,
    /// The hot threshold of base pages.
    hot: u8,
    /// Samples since the last decision: all, those that hit, those that would have hit.
    samples: u64,
    hits: u64,
    estimated_hits: u64,
}

impl Splitter {
    pub(super) fn new(pages: usize) -> Self {
        Self {
            ranges: Counts::new(pages),
            estimate: Histogram::new(),
            hot: 1,
            samples: 0,
            hits: 0,
            estimated_hits: 0,
        }
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

    /// Fits the threshold of base pages.
    pub(super) fn fit(&mut self, room: u64) {
        self.hot = self.estimate.threshold_for(room).0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.ranges.bytes()
    }

    /// The ranges to split now, the most skewed first; begins a new interval of hit ratios.
    pub(super) fn choose(
        &mut self,
        counts: &Counts,
        units: &Units,
        settings: &Settings,
        work: &mut Work,
    ) -> Vec<PageId> {
        let samples = self.samples.max(1) as f64;
        let missing = (settings.split_margin * self.estimated_hits as f64 - self.hits as f64) / samples;
        (self.samples, self.hits, self.estimated_hits) = (0, 0, 0);
        if missing <= 0.0 {
            return Vec::new();
        }
        let (mut accessed, mut skewed) = (0u64, Vec::new());
        let mut page = 0;
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
        let count = (missing * accessed as f64 * settings.split_gain).ceil() as usize;
        skewed.into_iter().take(count).map(|(_, unit)| unit).collect()
    }

    /// How unevenly a range's accesses spread over its pages; 0 where none of them is hot.
    fn skewness(&self, range: std::ops::Range<u32>, counts: &Counts) -> f64 {
        let (mut squares, mut hot) = (0.0, 0u64);
        for page in range {
            let value = counts.get(PageId(page));
            let samples = f64::from(value) / f64::from(BASE_PAGES);
            squares += samples * samples;
            hot += u64::from(clamp(bin_of(value)) >= self.hot);
        }
        if hot == 0 { 0.0 } else { squares / SKEWNESS_SCALE / (hot * hot) as f64 }
    }
}
