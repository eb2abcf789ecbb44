//! Memtis' settings, and the values derived; "Memtis' artifact" is the kernel published with the paper (SOSP
//! 2023).

use isotherm_core::parameters::Builder;
use isotherm_core::parameters::build::count;
use isotherm_core::{Bytes, Nanos, PageSize, parameters};

use crate::Setup;

const COOLING: Builder<u64> = count(1, 1_000_000_000_000, "2M")
    .unit("samples")
    .source("Jenga, section 2.2.2; Memtis' artifact")
    .help("Samples after which every count is halved.")
    .scaled();
/// The same for quick cooling.
pub(crate) const QUICK_COOLING: Builder<u64> = COOLING.default("120k").source("Jenga, section 5: Memtis-QC");

parameters! {
    pub(crate) struct Settings {
        cooling_samples: u64 = COOLING,
        common: Common,
        splits: Splits,
    }
}

parameters! {
    pub(crate) struct QuickSettings {
        cooling_samples: u64 = QUICK_COOLING,
        common: Common,
        splits: Splits,
    }
}

parameters! {
    pub(crate) struct Common {
        /// Samples after which the thresholds are fitted anew.
        adaptation_samples: u64 = count(1, 10_000_000, "100k").unit("samples")
            .source("Jenga, section 2.2.2; Memtis' artifact").scaled(),
        /// The sampling period that it starts with.
        shortest_period: u64 = count(1, 1_000_000_000, "199").unit("accesses").source("Memtis' artifact"),
        /// The longest sampling period, used where sampling takes too much time.
        longest_period: u64 = count(1, 1_000_000_000, "19997").unit("accesses").source("Memtis' artifact"),
        /// Periods from the shortest to the longest.
        period_steps: u32 = count(1, 1000, "30")
            .source("Memtis' artifact: 30 periods, primes near round numbers; here in equal proportions"),
        /// Takes every n-th store only; 0 samples stores as densely as loads.
        store_period: u64 = count(0, 1_000_000_000_000, "100007").unit("accesses")
            .source("Memtis' artifact; there of all retired stores, here of those that missed, which a host sees"),
        /// Time that sampling may take.
        cpu_target: f64 = number(0.0, 1.0, "3%").unit("of one core").source("Memtis' artifact"),
        /// By how much sampling may miss its target before the period changes.
        cpu_tolerance: f64 = number(0.0, 1.0, "0.5%").unit("of one core").source("Memtis' artifact"),
        /// Time between two adjustments of the period; the first comes after one round of moves.
        period_interval: Nanos = interval("15s").source("Memtis' artifact").scaled(),
        /// Time of the sampling thread for one sample, from which its share of a core follows.
        sample_cost: Nanos = duration(Nanos(0), Nanos(1_000_000), "220ns")
            .source("measured: 178 ns a sample for a table of 16 B a page and a histogram (Zipf 0.9 over 8 M pages), and 40 ns to read it"),
        /// Share of the fast tier that the hot set leaves free.
        promotion_reserve: f64 = number(0.0, 0.9, "3%").unit("of the fast tier").source("Memtis' artifact"),
        /// The least that the hot set leaves free, though never more than half the fast tier.
        smallest_reserve: Bytes = size(0, 1 << 44, "100M").source("Memtis' artifact").scaled(),
        /// The most that the hot set leaves free.
        largest_reserve: Bytes = size(0, 1 << 44, "1500M").source("Memtis' artifact").scaled(),
        /// With a smaller hot set than this, the bin below the hot threshold is warm and stays where it is.
        warm_below: f64 = number(0.0, 1.0, "75%").unit("of what the hot set may have")
            .source("Jenga, section 2.2.2, footnote 1; Memtis' artifact"),
        /// Share of the fast tier that demotion keeps free.
        demotion_watermark: f64 = number(0.0, 0.5, "2%").unit("of the fast tier").source("Memtis' artifact"),
        /// Time between two rounds of moves.
        migration_interval: Nanos = interval("500ms").source("Memtis' artifact").scaled(),
        /// The most that may be moved in either direction.
        migration_rate: Bytes = size(4096, 1 << 44, "2048M").unit("bytes per second")
            .source("Memtis' artifact"),
    }
}

parameters! {
    #[derive(Default)]
    pub(crate) struct Splits {
        /// In a run of base pages: begin with 2 MiB ranges that move as one and are split where their
        /// accesses are skewed. In a run of huge pages nothing can be split, and this changes nothing.
        huge_pages: bool = flag("false")
            .source("ours: Jenga, section 5, switches huge-page splitting off for its instability"),
        /// Ranges are split while this share of the hit ratio estimated for base pages exceeds the real one.
        split_margin: f64 = number(0.0, 1.0, "0.95").unit("of the estimated hit ratio")
            .source("Memtis' artifact"),
        /// Part of the gain in hits and latency that is turned into splits.
        split_strength: f64 = number(0.0, 100.0, "0.4").source("Memtis' artifact"),
        /// By how much the slow tier is slower; more splits the wider it is.
        latency_gap: f64 = number(0.0, 100.0, "1.125").unit("of the fast tier's latency")
            .source("Memtis' artifact: 80 ns DRAM, 170 ns CXL (270 ns NVM would be 2.375)"),
    }
}

#[derive(Debug, Clone)]
pub(super) struct Derived {
    /// Whether 2 MiB ranges of base pages are units.
    pub(super) huge_ranges: bool,
    /// A sample's weight in a page's count: base pages weigh as many times more as huge ones have pages.
    pub(super) weight: u32,
    pub(super) room: u64,
    /// With fewer hot pages than this there is a warm class.
    pub(super) warm_below: u64,
    /// Pages that demotion keeps free.
    pub(super) demotion_mark: u64,
    /// Pages that one round may move in either direction.
    pub(super) budget: u64,
    pub(super) split_margin: f64,
    /// Part of the missing hit ratio that is turned into splits: strength x latency gap.
    pub(super) split_gain: f64,
}

/// Base pages of a huge one.
pub(super) const BASE_PAGES: u32 = 1 << (PageSize::Huge.shift() - PageSize::Base.shift());

impl Derived {
    pub(super) fn new(settings: &Common, splits: &Splits, setup: &Setup) -> Self {
        let fast = setup.fast.0;
        let largest = setup.pages_in(settings.largest_reserve).min(fast / 2);
        let smallest = setup.pages_in(settings.smallest_reserve).min(largest);
        let room = fast.saturating_sub(setup.share(settings.promotion_reserve).clamp(smallest, largest));
        let moved = settings.migration_rate.0 as f64 * settings.migration_interval.as_seconds();
        let base = setup.page_size == PageSize::Base;
        Self {
            huge_ranges: splits.huge_pages && base,
            weight: if base { BASE_PAGES } else { 1 },
            room,
            warm_below: (room as f64 * settings.warm_below) as u64,
            demotion_mark: setup.share(settings.demotion_watermark),
            budget: setup.pages_in(Bytes(moved as u64)).max(1),
            split_margin: splits.split_margin,
            split_gain: splits.split_strength * splits.latency_gap,
        }
    }
}
