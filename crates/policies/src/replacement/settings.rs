//! Defines the parameters that the policies over recency lists share.

use isotherm_core::SamplingRate;
use isotherm_core::parameters::{Kind, Parameters, Spec};

pub(crate) const SAMPLING_FREQUENCY: Spec = Spec {
    name: "sampling_frequency",
    kind: Kind::Count(1, 100_000_000),
    default: "100k",
    unit: "Hz per thread",
    source: "ours: FreqTier's highest level (section V-B 2), so that both see as much",
    help: "Samples a second of each thread, if no period is set.",
    scaled: false,
};

pub(crate) const SAMPLING_PERIOD: Spec = Spec {
    name: "sampling_period",
    kind: Kind::Count(0, 1_000_000_000),
    default: "0",
    unit: "accesses",
    source: "ours: off",
    help: "Samples every n-th access of each thread instead; 1 makes it LRU over all accesses, 0 is off.",
    scaled: false,
};

pub(crate) const BATCH: Spec = Spec {
    name: "batch",
    kind: Kind::Count(64, 10_000_000),
    default: "100k",
    unit: "samples",
    source: "ours: FreqTier's (section IV-C)",
    help: "Samples after which pages are moved.",
    scaled: true,
};

pub(crate) const FREE_RESERVE: Spec = Spec {
    name: "free_reserve",
    kind: Kind::Number(0.0, 0.9),
    default: "2%",
    unit: "of the fast tier",
    source: "ours: above the kernel's minimum watermark, below which no move succeeds",
    help: "Share of the fast tier that is kept free.",
    scaled: false,
};

/// The sampling rate that frequency and period stand for.
pub(crate) fn rate(parameters: &Parameters) -> SamplingRate {
    match parameters.count(SAMPLING_PERIOD.name) {
        0 => SamplingRate::Frequency(parameters.count(SAMPLING_FREQUENCY.name)),
        period => SamplingRate::Period(period),
    }
}
