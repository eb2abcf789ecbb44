//! The parameters that the policies over recency lists share, and those of LRU and of the adapter.

use isotherm_core::parameters::Builder;
use isotherm_core::parameters::build::{count, number};
use isotherm_core::{SamplingRate, SamplingScope, parameters};

const SAMPLING_FREQUENCY: Builder<u64> = count(1, 100_000_000, "100k")
    .unit("Hz per thread")
    .help("Samples a second of each thread, if no period is set.");
const SAMPLING_PERIOD: Builder<u64> = count(0, 1_000_000_000, "0").unit("accesses").source("ours: off");
const BATCH: Builder<usize> = count(64, 10_000_000, "100k")
    .unit("samples")
    .source("ours: FreqTier's (section IV-C)")
    .help("Samples after which pages are moved.")
    .scaled();
const FREE_RESERVE: Builder<f64> = number(0.0, 0.9, "2%")
    .unit("of the fast tier")
    .source("ours: above the kernel's minimum watermark, below which no move succeeds")
    .help("Share of the fast tier that is kept free.");

parameters! {
    pub(crate) struct LruSettings {
        sampling_frequency: u64 = SAMPLING_FREQUENCY
            .source("ours: FreqTier's highest level (section V-B 2), so that both see as much"),
        /// Samples every n-th access of each thread instead; 1 makes it LRU over all accesses, 0 is off.
        sampling_period: u64 = SAMPLING_PERIOD,
        batch: usize = BATCH,
        free_reserve: f64 = FREE_RESERVE,
    }
}

parameters! {
    pub(crate) struct Settings {
        sampling_frequency: u64 = SAMPLING_FREQUENCY.source("HybridTier's artifact: 100,001 Hz"),
        /// Samples every n-th access of each thread instead; 0 is off.
        sampling_period: u64 = SAMPLING_PERIOD,
        /// One event for each tier, which samples a rarely used tier more densely, or one for all.
        sampling_scope: SamplingScope = choice("each-tier")
            .source("HybridTier's artifact: an event for local and one for remote loads"),
        batch: usize = BATCH,
        free_reserve: f64 = FREE_RESERVE,
        /// Pages promoted a batch at most; those beyond it wait for the next one.
        promotion_budget: usize = count(1, 1_000_000_000, "100k").unit("pages a batch")
            .source("HybridTier 6.1: every missed page is promoted at once; a batch holds no more").scaled(),
    }
}

parameters! {
    pub(crate) struct TwoQSettings {
        common: Settings,
        /// Pages that the queue of newcomers, A1in, keeps when room is needed.
        kin: f64 = number(0.0, 1.0, "25%").unit("of the fast tier").source("2Q section 3.2; HybridTier 6.1"),
        /// Newcomers that are remembered after they left, in A1out.
        kout: f64 = number(0.0, 100.0, "50%").unit("of the fast tier").source("2Q section 3.2; HybridTier 6.1"),
    }
}

pub(crate) fn rate(frequency: u64, period: u64) -> SamplingRate {
    if period == 0 { SamplingRate::Frequency(frequency) } else { SamplingRate::Period(period) }
}
