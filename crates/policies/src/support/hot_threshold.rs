//! The dynamic hot threshold (FreqTier, section V-C a; HybridTier, section 3.1): the size of the hot set
//! follows the size of the fast tier.
//!
//! FreqTier raises the threshold while the hot pages exceed the fast tier and lowers it while they do not
//! fill it. Both reach the smallest threshold whose pages fit, read from a histogram after each batch.
//!
//! Where many pages tie at the count just below that threshold, a fixed hash of the page decides which of
//! them are hot, as many as fit: the hot set fills the tier and no page moves to and fro
//! (`docs/reference/policies.md`).

use isotherm_core::{PageId, Pages, choices};
use isotherm_trackers::{Change, CountHistogram};

use crate::Setup;

const WHOLE: u64 = 1 << 32;
/// Bins of a histogram that may be read for each sample: bounds what adjusting costs with 16-bit counters.
const BINS_PER_SAMPLE: u64 = 16;

choices! {
    pub(crate) enum Ties {
        Split = "split",
        Exclude = "exclude",
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ThresholdSettings {
    pub(crate) room: u64,
    /// Pages of the fast tier that the hot set leaves free.
    pub(crate) reserve: u64,
    pub(crate) ties: Ties,
    pub(crate) initial: u32,
    /// The least that the threshold falls to: at least 1.
    pub(crate) floor: u32,
    pub(crate) warmup: u64,
    pub(crate) seed: u64,
}

impl ThresholdSettings {
    /// Leaves `reserve` pages of the fast tier free; `warmup` is in samples per fast page.
    pub(crate) fn new(ties: Ties, initial: u32, warmup: f64, reserve: u64, setup: &Setup) -> Self {
        let warmup = (warmup * setup.fast.0.max(1) as f64).ceil() as u64;
        let room = setup.fast.0.saturating_sub(reserve);
        Self { room, reserve, ties, initial, floor: 1, warmup, seed: setup.seed }
    }

    pub(crate) fn with_floor(self, floor: u32) -> Self {
        Self { floor, ..self }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct HotThreshold {
    histogram: CountHistogram,
    settings: ThresholdSettings,
    /// Counts from here on are hot; between the floor and one above the largest count.
    threshold: u32,
    /// Of the pages one below it, those are hot whose hash is below this; at most [`WHOLE`].
    tied: u64,
    /// Samples until the distribution counts as known.
    warmup: u64,
    pending: u64,
}

impl HotThreshold {
    pub(crate) fn new(settings: ThresholdSettings, maximum: u32) -> Self {
        Self {
            histogram: CountHistogram::new(maximum),
            threshold: settings.initial.min(maximum),
            tied: 0,
            warmup: settings.warmup,
            pending: 0,
            settings,
        }
    }

    #[inline]
    pub(crate) fn is_hot(&self, page: PageId, count: u32) -> bool {
        count >= self.threshold
            || (self.tied > 0 && count + 1 == self.threshold && scatter(page, self.settings.seed) < self.tied)
    }

    /// Learns how many pages the fast tier can hold: live, others take memory there, too.
    pub(crate) fn resize(&mut self, fast: Pages) {
        self.settings.room = fast.0.saturating_sub(self.settings.reserve);
    }

    /// Takes in what a batch of `samples` samples changed, and follows. Returns the operations that it took.
    pub(crate) fn follow(&mut self, changes: &[Change], samples: u64) -> u64 {
        self.histogram.record_all(changes);
        self.warmup = self.warmup.saturating_sub(samples);
        self.pending += samples;
        let bins = self.histogram.bins().len() as u64;
        if !self.knows_distribution() || self.pending * BINS_PER_SAMPLE < bins {
            return changes.len() as u64;
        }
        self.derive();
        changes.len() as u64 + bins
    }

    /// Follows an ageing of the filter: counts halve, and so does what is hot.
    pub(crate) fn age(&mut self) {
        self.histogram.age();
        if self.knows_distribution() {
            self.derive();
        }
    }

    pub(crate) fn knows_distribution(&self) -> bool {
        self.warmup == 0
    }

    /// Returns the samples that make the distribution known.
    pub(crate) fn warmup(&self) -> u64 {
        self.settings.warmup
    }

    /// Returns the threshold less the share of tied pages that are hot: 4.3 is all with 5 and 70 % of those
    /// with 4.
    pub(crate) fn value(&self) -> f64 {
        f64::from(self.threshold) - self.tied as f64 / WHOLE as f64
    }

    /// Returns the smallest count that is certainly hot.
    pub(crate) fn certain(&self) -> u32 {
        self.threshold
    }

    pub(crate) fn hot_pages(&self) -> u64 {
        let below = self.histogram.bins().get(self.threshold as usize - 1).copied().unwrap_or(0);
        self.histogram.at_least(self.threshold) + ((u128::from(below) * u128::from(self.tied)) >> 32) as u64
    }

    pub(crate) fn saturated(&self) -> u64 {
        self.histogram.at_least(self.histogram.maximum())
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.histogram.bins())
    }

    fn derive(&mut self) {
        self.pending = 0;
        self.threshold = self.histogram.threshold_for(self.settings.room);
        self.tied = 0;
        let floor = self.settings.floor.min(self.histogram.maximum());
        if self.threshold <= floor {
            self.threshold = floor;
            return;
        }
        if self.settings.ties == Ties::Exclude {
            self.threshold = self.threshold.min(self.histogram.maximum());
            return;
        }
        let tied_pages = self.histogram.bins()[self.threshold as usize - 1];
        if tied_pages > 0 {
            let room = self.settings.room - self.histogram.at_least(self.threshold);
            self.tied = (u128::from(room) * u128::from(WHOLE) / u128::from(tied_pages)) as u64;
        }
    }
}

/// Returns a page's place among the tied ones, from 0 to below [`WHOLE`]: the same for a whole run. (The
/// mixing steps are those of SplitMix64.)
#[inline]
fn scatter(page: PageId, seed: u64) -> u64 {
    let mut bits = u64::from(page.0).wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) >> 32
}
