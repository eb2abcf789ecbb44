//! HybridTier's settings, and the published artifact's values as a preset.

use isotherm_core::parameters::Preset;
use isotherm_core::{Bytes, Nanos, PageSize, Sampling, SamplingRate, SamplingScope, choices, parameters};
use isotherm_trackers::{FilterShape, ShapeError};

use super::monitor::MonitorSettings;
use crate::Setup;
use crate::support::filter::{self, CounterBits};
use crate::support::hot_threshold::{ThresholdSettings, Ties};

choices! {
    pub(crate) enum TrackerKind {
        Blocked = "blocked",
        Standard = "standard",
        /// Exact 16-bit counts.
        Exact = "exact",
    }
}

choices! {
    pub(crate) enum Rounding {
        None = "none",
        PowerOfTwo = "power-of-two",
    }
}

parameters! {
    pub(crate) struct Settings {
        /// Samples that are coalesced and acted upon at once.
        batch: usize = count(64, 10_000_000, "100k").unit("samples").source("section 4.3").scaled(),
        /// Blocked or standard counting Bloom filters, or exact counts of every page.
        tracker: TrackerKind = choice("blocked")
            .source("section 4.2; exact: section 6.4.2's ground truth, as 16-bit counts"),
        /// Hash functions of the filters, k.
        hashes: u32 = count(1, 8, "4").unit("counters per page").source("section 4.2"),
        /// Width of a counter in both filters.
        counter_bits: CounterBits = choice("auto").unit("bits")
            .source("sections 3.2 and 4.4: 4 for base pages, 16 for huge ones"),
        /// The frequency filter is sized for this rate with every page of the fast tier in it.
        false_positive_rate: f64 = number(1e-9, 0.5, "0.001").source("section 4.2"),
        /// Size of the frequency filter instead of the false-positive rate; 0 is off.
        filter_bytes: Bytes = size(0, 1 << 38, "0").source("Table 5 varies it"),
        /// Whether the frequency filter's size is rounded up to a power of two.
        filter_rounding: Rounding = choice("none")
            .source("section 4.2's formula; 6.4.2 names 128 MB at 1:16, its next power of two"),
        /// By how much the momentum filter is smaller than the frequency filter.
        momentum_divisor: u64 = count(1, 65_536, "128").source("section 4.2"),
        /// The same for huge pages.
        momentum_divisor_huge: u64 = count(1, 65_536, "128")
            .source("section 4.2, which does not tell page sizes apart"),
        /// The frequency threshold until the distribution is known.
        initial_threshold: u32 = count(1, 65_535, "5").unit("samples")
            .source("HybridTier's artifact and FreqTier, section V-C a; the paper is silent"),
        /// The same for huge pages.
        initial_threshold_huge: u32 = count(1, 65_535, "1000").unit("samples")
            .source("HybridTier's artifact; the paper is silent"),
        /// The least that the frequency threshold falls to.
        threshold_floor: u32 = count(1, 65_535, "3").unit("samples")
            .source("HybridTier's artifact: a large number of pages has a frequency of 1; the paper is silent"),
        /// The same for huge pages.
        threshold_floor_huge: u32 = count(1, 65_535, "600").unit("samples")
            .source("HybridTier's artifact; the paper is silent"),
        /// Samples counted before the frequency threshold follows the distribution.
        threshold_warmup: f64 = number(0.0, 1e6, "1").unit("samples per fast page")
            .source("ours: before, an empty histogram would pull the threshold to 1"),
        /// Pages just below the frequency threshold: as many as fit are high, chosen by a hash (split), or
        /// none (exclude).
        ties: Ties = choice("split")
            .source("ours, as in FreqTier: the hot set then fills the fast tier where counts tie at its border"),
        /// Momentum from here on is high.
        momentum_threshold: u32 = count(1, 65_535, "3").unit("samples").source("sections 6.4.3 and 7"),
        /// The same for huge pages.
        momentum_threshold_huge: u32 = count(1, 65_535, "200").unit("samples")
            .source("HybridTier's artifact; the paper is silent"),
        /// Momentum from here on keeps a page from being demoted; 0 stands for the momentum threshold.
        demotion_momentum: u32 = count(0, 65_535, "0").unit("samples")
            .source("section 3.1: one momentum threshold for promotion and demotion"),
        /// Samples after which frequency counters are halved.
        frequency_cooling: u64 = count(64, 1 << 40, "80M").unit("samples")
            .source("Jenga's paper, section 2.2, of HybridTier; its own says minutes to hours (3.1)")
            .scaled(),
        /// The same in proportion to the fast tier, if not 0.
        frequency_cooling_per_page: f64 = number(0.0, 1e6, "0").unit("samples per 4 KiB of the fast tier")
            .source("off; HybridTier's artifact has 160"),
        /// Samples after which momentum counters are halved.
        momentum_cooling: u64 = count(64, 1 << 40, "500k").unit("samples")
            .source("Jenga's paper, section 2.2, of HybridTier; its own says seconds (3.1)").scaled(),
        /// PROMO_WMARK: with less than this free, pages are demoted.
        promote_watermark: f64 = number(0.0, 0.5, "1.25%").unit("of the fast tier")
            .source("HybridTier's artifact (1/80); section 4.3 names none"),
        /// DEMOTE_WMARK: pages are demoted until more than this is free.
        demote_watermark: f64 = number(0.0, 0.9, "5%").unit("of the fast tier")
            .source("HybridTier's artifact (1/20); section 4.3 names none"),
        /// Pages read from the page table at once by the demotion scan.
        scan_batch: usize = count(1, 1 << 20, "1024").unit("pages")
            .source("HybridTier's artifact; section 4.3 only says linearly"),
        /// Time from a page's mark to its second look.
        revisit: Nanos = interval("60s").source("section 4.3").scaled(),
        /// Pages that may be marked at once; further ones stay unmarked.
        second_chances: usize = count(1, 4_000_000_000, "4G").unit("pages")
            .source("section 4.3 sets no bound; HybridTier's artifact has 10,000").scaled(),
        /// Sampling frequency.
        sampling: u64 = count(1, 100_000_000, "100k").unit("Hz per thread and event")
            .source("HybridTier's artifact, clamped to the kernel's limit; the paper names none"),
        /// The fast tier's event is halved in frequency while most of its samples tell nothing new, unless
        /// that is no more than this.
        sampling_least: u64 = count(1, 100_000_000, "40k").unit("Hz per thread and event")
            .source("HybridTier's artifact; the paper is silent"),
        /// The same for huge pages.
        sampling_least_huge: u64 = count(1, 100_000_000, "20k").unit("Hz per thread and event")
            .source("HybridTier's artifact; the paper is silent"),
        /// Most of the fast tier's samples in a batch: those of pages whose frequency counter was full
        /// before.
        saturated_share: f64 = number(0.0, 1.0, "0.8").unit("of the fast tier's samples")
            .source("HybridTier's artifact; the paper is silent"),
        /// One event for each tier, which samples a rarely used tier more densely, or one for all.
        sampling_scope: SamplingScope = choice("each-tier")
            .source("HybridTier's artifact: one event for local and one for remote memory"),
        /// A batch is acted upon after this time even if it is not full.
        tick: Nanos = interval("1s").source("ours: marked pages are revisited in time where samples are rare")
            .scaled(),
        /// Batches before promotions may count as a plateau, at which sampling stops (monitor mode).
        plateau_start: u64 = count(0, 1 << 40, "500").unit("batches")
            .source("HybridTier's artifact; the paper is silent"),
        /// The same for huge pages.
        plateau_start_huge: u64 = count(0, 1 << 40, "100").unit("batches")
            .source("HybridTier's artifact; the paper is silent"),
        /// Batches over which promotions are counted.
        plateau_batches: u64 = count(1, 1 << 40, "20").unit("batches")
            .source("HybridTier's artifact; the paper is silent"),
        /// The same for huge pages.
        plateau_batches_huge: u64 = count(1, 1 << 40, "50").unit("batches")
            .source("HybridTier's artifact; the paper is silent"),
        /// With no more promotions than these in those batches there is a plateau.
        plateau_pages: u64 = count(0, 1 << 40, "25k").unit("pages")
            .source("HybridTier's artifact; the paper is silent").scaled(),
        /// The same for huge pages.
        plateau_pages_huge: u64 = count(0, 1 << 40, "100").unit("pages")
            .source("HybridTier's artifact; the paper is silent").scaled(),
        /// Time in monitor mode without a look at hits.
        monitor_quiet: Nanos = interval("120s").source("HybridTier's artifact; the paper is silent").scaled(),
        /// Time between two looks at hits in monitor mode.
        monitor_interval: Nanos = interval("60s").source("HybridTier's artifact; the paper is silent").scaled(),
        /// Whether every decision is compared with one from exact counts of the same samples.
        audit: bool = flag("false").source("ours: measures Table 5"),
    }
}

pub(crate) const PRESETS: &[Preset] = &[Preset {
    name: "artifact",
    source: "github.com/kevins981/hybridtier-asplos25-artifact, version of June 2025",
    help: "The values of the published artifact, where they differ from the paper's.",
    values: &[
        ("filter_rounding", "power-of-two"),
        ("momentum_divisor", "100"),
        ("momentum_divisor_huge", "8"),
        ("demotion_momentum", "1"),
        ("frequency_cooling_per_page", "160"),
        ("momentum_cooling", "1.1M"),
        ("second_chances", "10k"),
    ],
}];

/// Step by which the artifact lowers its threshold of huge pages at a plateau; that of base pages falls by 1.
const THRESHOLD_STEP_HUGE: u32 = 100;
/// Share of the fast tier that the artifact's hot pages have to fill.
const ENOUGH_HOT: f64 = 0.8;

impl Settings {
    pub(super) fn frequency_shape(&self, setup: &Setup) -> Result<FilterShape, ShapeError> {
        let Self { hashes, counter_bits, false_positive_rate, filter_bytes, .. } = *self;
        let shape = filter::shape(hashes, counter_bits, false_positive_rate, filter_bytes, setup)?;
        if self.filter_rounding == Rounding::None {
            return Ok(shape);
        }
        let bytes = (shape.bytes() as u64).next_power_of_two();
        FilterShape::with_bytes(bytes, shape.width().bits(), shape.hashes())
    }

    /// At least one block.
    pub(super) fn momentum_shape(
        &self,
        frequency: FilterShape,
        setup: &Setup,
    ) -> Result<FilterShape, ShapeError> {
        let divisor = by_size(setup, self.momentum_divisor, self.momentum_divisor_huge);
        let bytes = (frequency.bytes() as u64).div_ceil(divisor);
        FilterShape::with_bytes(bytes, frequency.width().bits(), frequency.hashes())
    }

    /// Returns the frequency threshold's settings. Its hot set leaves `reserve` pages of the fast tier free.
    pub(super) fn threshold(&self, reserve: u64, setup: &Setup) -> ThresholdSettings {
        let (initial, floor) = self.threshold_range(setup);
        ThresholdSettings::new(self.ties, initial, self.threshold_warmup, reserve, setup).with_floor(floor)
    }

    /// Returns the initial frequency threshold and the least.
    fn threshold_range(&self, setup: &Setup) -> (u32, u32) {
        let initial = by_size(setup, self.initial_threshold, self.initial_threshold_huge);
        (initial, by_size(setup, self.threshold_floor, self.threshold_floor_huge))
    }

    pub(super) fn promote_momentum(&self, setup: &Setup) -> u32 {
        by_size(setup, self.momentum_threshold, self.momentum_threshold_huge)
    }

    pub(super) fn demote_momentum(&self, setup: &Setup) -> u32 {
        if self.demotion_momentum == 0 { self.promote_momentum(setup) } else { self.demotion_momentum }
    }

    pub(super) fn frequency_period(&self, setup: &Setup) -> u64 {
        if self.frequency_cooling_per_page == 0.0 {
            return self.frequency_cooling;
        }
        let base_pages = setup.page_size.bytes().0 / PageSize::Base.bytes().0 * setup.fast.0;
        (self.frequency_cooling_per_page * base_pages.max(1) as f64).ceil() as u64
    }

    pub(super) fn monitor(&self, setup: &Setup) -> MonitorSettings {
        let batches = |batches: u64| batches.saturating_mul(self.batch as u64);
        let (initial, floor) = self.threshold_range(setup);
        MonitorSettings {
            plateaus: (initial.saturating_sub(floor)) / by_size(setup, 1, THRESHOLD_STEP_HUGE),
            enough_hot: (ENOUGH_HOT * setup.fast.0 as f64) as u64,
            plateau_start: batches(by_size(setup, self.plateau_start, self.plateau_start_huge)),
            plateau_samples: batches(by_size(setup, self.plateau_batches, self.plateau_batches_huge)),
            plateau_pages: by_size(setup, self.plateau_pages, self.plateau_pages_huge),
            quiet: self.monitor_quiet,
            interval: self.monitor_interval,
        }
    }

    /// Returns by how much halving may divide the frequency of the fast tier's event, if it has one.
    pub(super) fn most_divisor(&self, setup: &Setup) -> u32 {
        let least = by_size(setup, self.sampling_least, self.sampling_least_huge);
        let mut divisor = 1;
        while self.sampling_scope == SamplingScope::EachTier && self.sampling / u64::from(divisor) > least {
            divisor *= 2;
        }
        divisor
    }

    /// Returns the request for samples, the fast tier's that many times more rarely; or of none, in monitor
    /// mode.
    pub(super) fn request(&self, fast_divisor: u32, monitoring: bool) -> Sampling {
        let (rate, tick) = match monitoring {
            true => (SamplingRate::Off, self.monitor_interval),
            false => (SamplingRate::Frequency(self.sampling), self.tick),
        };
        Sampling { fast_divisor, ..Sampling::loads(rate, self.sampling_scope, self.batch, tick) }
    }
}

fn by_size<T>(setup: &Setup, base: T, huge: T) -> T {
    if setup.page_size == PageSize::Huge { huge } else { base }
}
