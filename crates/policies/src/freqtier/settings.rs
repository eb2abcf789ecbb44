//! FreqTier's settings.

use isotherm_core::{Bytes, Nanos, PageSize, SamplingScope, choices, parameters};
use isotherm_trackers::{FilterShape, Layout, ShapeError};

use crate::Setup;
use crate::support::filter::{self, CounterBits};
use crate::support::hot_threshold::{ThresholdSettings, Ties};

choices! {
    pub(crate) enum Filter {
        Blocked = "blocked",
        Standard = "standard",
    }
}

parameters! {
    pub(crate) struct Settings {
        /// Samples that are coalesced and acted upon at once.
        batch: usize = count(64, 10_000_000, "100k").unit("samples").source("sections IV-C, VII-E 2")
            .scaled(),
        /// Whether a page's counters share one cache line.
        filter: Filter = choice("blocked").source("section V-C b"),
        /// Hash functions of the filter, k.
        hashes: u32 = count(1, 8, "3").unit("counters per page")
            .source("Fig. 5 and section V-C b: three counters; nowhere called a default"),
        /// Width of a counter; auto is 4 for base and 16 for huge pages.
        counter_bits: CounterBits = choice("auto").unit("bits")
            .source("section V-A: 4 for 4 KiB pages; HybridTier's 16 for huge ones"),
        /// The filter is sized for this rate with every page of the fast tier in it.
        false_positive_rate: f64 = number(1e-9, 0.5, "0.001").source("section V-A"),
        /// Size of the filter instead of the false-positive rate; 0 is off.
        filter_bytes: Bytes = size(0, 1 << 38, "0").source("Fig. 12 varies it"),
        /// The hot threshold until the distribution is known.
        initial_threshold: u32 = count(1, 65_535, "5").unit("samples").source("section V-C a"),
        /// Samples counted before the hot threshold follows the distribution.
        threshold_warmup: f64 = number(0.0, 1e6, "1").unit("samples per fast page")
            .source("ours: before, an empty histogram would pull the threshold to 1"),
        /// Pages just below the threshold: as many as fit are hot, chosen by a hash (split), or none
        /// (exclude).
        ties: Ties = choice("split")
            .source("ours: the hot set then fills the fast tier, as section V-C a wants, where counts tie at its border"),
        /// Samples after which all counters are halved.
        ageing_samples_per_page: f64 = number(0.01, 1e6, "10").unit("samples per 4 KiB of the fast tier")
            .source("ours: the paper ages 'periodically'; HybridTier's 160 would saturate 4-bit counters, against Fig. 14"),
        /// Whether counters are halved when monitoring ends: what was hot then need not be now.
        age_on_resume: bool = flag("true").source("HybridTier's artifact; the paper is silent"),
        /// PROMO_WMARK: with less than this free, pages are demoted.
        promote_watermark: f64 = number(0.0, 0.5, "1.25%").unit("of the fast tier")
            .source("HybridTier's artifact (1/80); see docs/reference/policies.md"),
        /// DEMOTE_WMARK: pages are demoted until more than this is free.
        demote_watermark: f64 = number(0.0, 0.9, "5%").unit("of the fast tier")
            .source("HybridTier's artifact (1/20); section V-B 1: a demotion moves 160k of 16 GB's 4.2M pages"),
        /// Pages read from the page table at once by the demotion scan.
        scan_batch: usize = count(1, 1 << 20, "1024").unit("pages")
            .source("HybridTier's artifact; section V-B 1 only says a batch of contiguous pages"),
        /// Sampling frequency of the highest level, where it starts.
        sampling_high: u64 = count(1, 100_000_000, "100k").unit("Hz per thread and event")
            .source("section V-B 2"),
        /// Sampling frequency of the middle level.
        sampling_middle: u64 = count(1, 100_000_000, "10k").unit("Hz per thread and event")
            .source("section V-B 2"),
        /// Sampling frequency of the lowest level.
        sampling_low: u64 = count(1, 100_000_000, "1k").unit("Hz per thread and event")
            .source("section V-B 2"),
        /// One event for each tier, which samples a rarely used tier more densely, or one for all.
        sampling_scope: SamplingScope = choice("each-tier").source("section VII-C: 2 counters per core"),
        /// Time over which hit ratio and promotions are measured while pages are promoted.
        stable_window: Nanos = interval("60s").source("section V-B 2").scaled(),
        /// Hit ratios that differ by no more than this are stable.
        stable_within: f64 = number(0.0, 1.0, "0.005").unit("of all loads")
            .source("section V-B 2: 0.5 %, read as points"),
        /// Time between two looks at the hit counters in monitoring mode.
        monitor_interval: Nanos = interval("10s")
            .source("ours: Fig. 11's change is noticed within 30 s, so HybridTier's 60 s cannot be").scaled(),
    }
}

impl Settings {
    pub(super) fn layout(&self) -> Layout {
        match self.filter {
            Filter::Blocked => Layout::Blocked,
            Filter::Standard => Layout::Standard,
        }
    }

    pub(super) fn shape(&self, setup: &Setup) -> Result<FilterShape, ShapeError> {
        let Self { hashes, counter_bits, false_positive_rate, filter_bytes, .. } = *self;
        filter::shape(hashes, counter_bits, false_positive_rate, filter_bytes, setup)
    }

    /// Returns the hot threshold's settings. Its hot set leaves `reserve` pages of the fast tier free.
    pub(super) fn threshold(&self, reserve: u64, setup: &Setup) -> ThresholdSettings {
        ThresholdSettings::new(self.ties, self.initial_threshold, self.threshold_warmup, reserve, setup)
    }

    pub(super) fn ageing(&self, setup: &Setup) -> u64 {
        let base_pages = setup.page_size.bytes().0 / PageSize::Base.bytes().0 * setup.fast.0;
        (self.ageing_samples_per_page * base_pages.max(1) as f64).ceil() as u64
    }
}
