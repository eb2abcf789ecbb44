//! Jenga: Memtis' thresholds and queues over smooth access counts.
//!
//! # Paper
//! Jenga, sections 2.2 and 5. (Its other half, the context-based allocator of section 4, belongs to the
//! program: `--alloc context` live, the workload parameter `allocator=context` in the simulator.) Pseudocode:
//!
//! ```text
//! at a sample of page p, the t-th of its cooling period:        observe
//!     acc(p) += 1
//!     AS(p) = (1 - t / (2 cp)) AC(p) + acc(p) / 2               SmoothScore::add
//!     move p to bin floor(log2(AS(p) + 1)) of 16                Histogram::shift
//!     every 100K samples: hot = lowest bin from which all fit   Thresholds::fit
//!         the fast tier; warm = hot - 1 while the hot set is small
//!     every cp = 120K samples: AC = AS, acc = 0                 SmoothCounts::pass
//!     queue p for promotion if hot and slow, for demotion if cold and fast
//! periodically: promote and demote from the queues              migrate
//! sampling period: such that sampling takes under 3 % of a core PeriodControl
//! ```
//!
//! `isotherm_trackers`' `smooth` explains the arithmetic of `AS` and why it is continuous; parameters are
//! those of Memtis-QC without splitting, which Jenga's authors switched off (section 7), in 12 bytes of table
//! a page instead of 32 (section 6).
//!
//! Deviations: when the histogram learns of falling scores, and the numbers that the paper does not give,
//! which are Memtis'; see `docs/reference/policies.md`.

use isotherm_trackers::{SmoothClock, SmoothScore};

use crate::memtis::counts::{PageCounts, Rebin};
use crate::memtis::histogram::{Histogram, bin_of};
use crate::memtis::{Common, Memtis, QUICK_COOLING, Splits};
use crate::prelude::*;
use crate::support::prefetch;

parameters! {
    pub(crate) struct Settings {
        /// Samples in which a score that is not renewed falls to its half, evenly.
        cooling_samples: u64 = QUICK_COOLING
            .source("Jenga, section 7: Memtis-QC has the same cooling interval, 120K samples"),
        common: Common,
    }
}

pub(crate) type Jenga = Memtis<SmoothCounts>;

impl Jenga {
    pub(crate) fn new(parameters: &Parameters, setup: &Setup) -> Self {
        let Settings { cooling_samples, common } = Settings::read(parameters);
        Self::with(cooling_samples, common, &Splits::default(), setup)
    }
}

/// The smooth scores of all pages. A score's tag is the histogram's bin when the score last changed.
#[derive(Debug)]
pub(crate) struct SmoothCounts {
    scores: Vec<SmoothScore>,
    clock: SmoothClock,
    sampled: Vec<PageId>,
}

impl SmoothCounts {
    /// Ends a period: the histogram follows the scores, of which only those of sampled pages need a visit.
    fn cool(&mut self, histogram: &mut Histogram) -> u64 {
        let sampled = std::mem::take(&mut self.sampled);
        // The bins that the pages had in the period before: at its end, nothing had been moved yet.
        sampled.iter().for_each(|page| histogram.shift(self.scores[page.index()].tag(), 0, 1));
        histogram.cool();
        for page in &sampled {
            let score = &mut self.scores[page.index()];
            score.add(0, &self.clock, bin_of);
            histogram.shift(0, score.tag(), 1);
        }
        let touched = 2 * sampled.len() as u64;
        self.sampled = sampled;
        self.sampled.clear();
        touched
    }
}

impl PageCounts for SmoothCounts {
    fn new(pages: usize, cooling: u64) -> Self {
        let clock = SmoothClock::new(cooling);
        Self { scores: vec![SmoothScore::zero(&clock); pages], clock, sampled: Vec::new() }
    }

    fn reserve(&mut self, pages: usize) {
        if pages > self.scores.len() {
            self.scores.resize(pages, SmoothScore::zero(&self.clock));
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.scores[..]) + self.sampled.capacity() * size_of::<PageId>()
    }

    #[inline]
    fn approach(&self, pages: &[PageId]) {
        prefetch::read(pages, |page| u32::from(self.scores[page.index()].tag()));
    }

    #[inline]
    fn get(&self, page: PageId) -> u32 {
        self.scores[page.index()].get(&self.clock)
    }

    #[inline]
    fn counted_bin(&self, page: PageId) -> u8 {
        let score = self.scores[page.index()];
        u32::from(score.tag()).saturating_sub(score.periods_ago(&self.clock)) as u8
    }

    #[inline]
    fn add(&mut self, page: PageId, weight: u32) -> Rebin {
        let before = self.counted_bin(page);
        let score = &mut self.scores[page.index()];
        if !score.is_current(&self.clock) {
            self.sampled.push(page);
        }
        score.add(weight, &self.clock, bin_of);
        Rebin { before, after: score.tag() }
    }

    #[inline]
    fn pass(&mut self, histogram: &mut Histogram) -> Option<u64> {
        self.clock.advance().then(|| self.cool(histogram))
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Nanos, Pages, TierId, View as _};
    use proptest::prelude::*;

    use super::*;
    use crate::support::test_view::{TestView, batch_of, parameters, setup, turn};

    proptest! {
        /// The histogram has each page in the bin of its score: exactly where it was sampled in this period
        /// or the one before, as of its last sample; else at most one bin lower.
        #[test]
        fn the_histogram_follows_scores_that_fall(
            cooling in 1u64..40,
            steps in prop::collection::vec(0u32..8, 1..400),
            weight in prop::sample::select(vec![1u32, 512]),
        ) {
            let (mut counts, mut histogram) = (SmoothCounts::new(8, cooling), Histogram::new());
            for page in steps {
                let rebin = counts.add(PageId(page), weight);
                histogram.shift(rebin.before, rebin.after, 1);
                prop_assert_eq!(rebin.after, bin_of(counts.get(PageId(page))));
                let cooled = counts.pass(&mut histogram).is_some();
                let mut kept = Histogram::new();
                for page in (0..8).map(PageId) {
                    let (exact, counted) = (bin_of(counts.get(page)), counts.counted_bin(page));
                    kept.shift(0, counted, 1);
                    if cooled {
                        prop_assert!(counted == exact || counted + 1 == exact, "{counted} {exact}");
                    }
                }
                for bin in 1..crate::memtis::histogram::BINS {
                    prop_assert_eq!(histogram.pages(bin), kept.pages(bin));
                }
            }
        }
    }

    fn policy(pages: usize, fast: u64, settings: &[(&str, &str)]) -> Jenga {
        let fixed = [("adaptation_samples", "64"), ("smallest_reserve", "0"), ("promotion_reserve", "0")];
        Jenga::new(&parameters(Settings::SPECS, &[&fixed, settings].concat()), &setup(pages, fast))
    }

    /// Feeds rounds of samples of `pages` and lets it migrate after each; returns the pages moved.
    fn feed(
        policy: &mut Jenga,
        view: &mut TestView,
        pages: std::ops::Range<u32>,
        rounds: std::ops::Range<u64>,
    ) -> usize {
        let samples: Vec<u32> = (0..4).flat_map(|_| pages.clone()).collect();
        let mut moved = 0;
        for round in rounds {
            let batch = batch_of(view, &samples, (0, 0));
            moved += turn(policy, view, &batch, Nanos((round + 1) * Nanos::SECOND.0 / 2)).0.moves.len();
        }
        moved
    }

    #[test]
    fn hot_slow_pages_take_the_place_of_cold_fast_ones_and_a_stable_set_stays() {
        let mut policy = policy(400, 100, &[("cooling_samples", "500")]);
        let mut view = TestView::new(&[Pages(100), Pages(4096)], 400);
        feed(&mut policy, &mut view, 300..390, 0..10);
        let fast = view.pages_in(TierId::FAST);
        assert!((300..390).all(|page| fast.contains(&page)), "{fast:?}");
        let moved = feed(&mut policy, &mut view, 300..390, 10..60);
        assert_eq!(moved, 0, "across many coolings");
    }

    #[test]
    fn a_hot_set_that_moved_is_followed() {
        let mut policy = policy(400, 100, &[("cooling_samples", "500")]);
        let mut view = TestView::new(&[Pages(100), Pages(4096)], 400);
        feed(&mut policy, &mut view, 300..390, 0..40);
        feed(&mut policy, &mut view, 200..290, 40..60);
        let fast = view.pages_in(TierId::FAST);
        assert!((200..290).all(|page| fast.contains(&page)), "{fast:?}");
        assert_eq!(view.capacity(TierId::FAST), Pages(100));
    }
}
