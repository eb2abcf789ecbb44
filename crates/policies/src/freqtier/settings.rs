//! Defines FreqTier's parameters: the table that users see, and the validated values that the policy runs with.

use isotherm_core::parameters::{Kind, Parameters, Spec};
use isotherm_core::{Bytes, Nanos, PageSize, SamplingScope};
use isotherm_trackers::{FilterShape, Layout, ShapeError};

use crate::Setup;
use crate::demotion_scan::Watermarks;
use crate::filter_shape::filter_shape;
use crate::hot_threshold::ThresholdSettings;

/// What can be set. Sections are the paper's.
pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "batch",
        kind: Kind::Count(64, 10_000_000),
        default: "100k",
        unit: "samples",
        source: "sections IV-C, VII-E 2",
        help: "Samples that are coalesced and acted upon at once.",
        scaled: true,
    },
    Spec {
        name: "filter",
        kind: Kind::Choice(&["blocked", "standard"]),
        default: "blocked",
        unit: "",
        source: "section V-C b",
        help: "Whether a page's counters share one cache line.",
        scaled: false,
    },
    Spec {
        name: "hashes",
        kind: Kind::Count(1, 8),
        default: "3",
        unit: "counters per page",
        source: "Fig. 5 and section V-C b: three counters; nowhere called a default",
        help: "Hash functions of the filter, k.",
        scaled: false,
    },
    Spec {
        name: "counter_bits",
        kind: Kind::Choice(&["auto", "2", "4", "8", "16"]),
        default: "auto",
        unit: "bits",
        source: "section V-A: 4 for 4 KiB pages; HybridTier's 16 for huge ones",
        help: "Width of a counter; auto is 4 for base and 16 for huge pages.",
        scaled: false,
    },
    Spec {
        name: "false_positive_rate",
        kind: Kind::Number(1e-9, 0.5),
        default: "0.001",
        unit: "",
        source: "section V-A",
        help: "The filter is sized for this rate with every page of the fast tier in it.",
        scaled: false,
    },
    Spec {
        name: "filter_bytes",
        kind: Kind::Size(Bytes(0), Bytes(1 << 38)),
        default: "0",
        unit: "bytes",
        source: "Fig. 12 varies it",
        help: "Size of the filter instead of the false-positive rate; 0 is off.",
        scaled: false,
    },
    Spec {
        name: "initial_threshold",
        kind: Kind::Count(1, 65_535),
        default: "5",
        unit: "samples",
        source: "section V-C a",
        help: "The hot threshold until the distribution is known.",
        scaled: false,
    },
    Spec {
        name: "threshold_warmup",
        kind: Kind::Number(0.0, 1e6),
        default: "1",
        unit: "samples per fast page",
        source: "ours: before, an empty histogram would pull the threshold to 1",
        help: "Samples counted before the hot threshold follows the distribution.",
        scaled: false,
    },
    Spec {
        name: "ties",
        kind: Kind::Choice(&["split", "exclude"]),
        default: "split",
        unit: "",
        source: "ours: the hot set then fills the fast tier, as section V-C a wants, where counts tie at its border",
        help: "Pages just below the threshold: as many as fit are hot, chosen by a hash (split), or none (exclude).",
        scaled: false,
    },
    Spec {
        name: "ageing_samples_per_page",
        kind: Kind::Number(0.01, 1e6),
        default: "10",
        unit: "samples per 4 KiB of the fast tier",
        source: "ours: the paper ages 'periodically'; HybridTier's 160 would saturate 4-bit counters, against Fig. 14",
        help: "Samples after which all counters are halved.",
        scaled: false,
    },
    Spec {
        name: "age_on_resume",
        kind: Kind::Flag,
        default: "true",
        unit: "",
        source: "HybridTier's artifact; the paper is silent",
        help: "Whether counters are halved when monitoring ends: what was hot then need not be now.",
        scaled: false,
    },
    Spec {
        name: "promote_watermark",
        kind: Kind::Number(0.0, 0.5),
        default: "1.25%",
        unit: "of the fast tier",
        source: "HybridTier's artifact (1/80); see docs/policies.md",
        help: "PROMO_WMARK: with less than this free, pages are demoted.",
        scaled: false,
    },
    Spec {
        name: "demote_watermark",
        kind: Kind::Number(0.0, 0.9),
        default: "5%",
        unit: "of the fast tier",
        source: "HybridTier's artifact (1/20); section V-B 1: a demotion moves 160k of 16 GB's 4.2M pages",
        help: "DEMOTE_WMARK: pages are demoted until more than this is free.",
        scaled: false,
    },
    Spec {
        name: "scan_batch",
        kind: Kind::Count(1, 1 << 20),
        default: "1024",
        unit: "pages",
        source: "HybridTier's artifact; section V-B 1 only says a batch of contiguous pages",
        help: "Pages read from the page table at once by the demotion scan.",
        scaled: false,
    },
    Spec {
        name: "sampling_high",
        kind: Kind::Count(1, 100_000_000),
        default: "100k",
        unit: "Hz per thread and event",
        source: "section V-B 2",
        help: "Sampling frequency of the highest level, where it starts.",
        scaled: false,
    },
    Spec {
        name: "sampling_middle",
        kind: Kind::Count(1, 100_000_000),
        default: "10k",
        unit: "Hz per thread and event",
        source: "section V-B 2",
        help: "Sampling frequency of the middle level.",
        scaled: false,
    },
    Spec {
        name: "sampling_low",
        kind: Kind::Count(1, 100_000_000),
        default: "1k",
        unit: "Hz per thread and event",
        source: "section V-B 2",
        help: "Sampling frequency of the lowest level.",
        scaled: false,
    },
    Spec {
        name: "sampling_scope",
        kind: Kind::Choice(&["each-tier", "all-tiers"]),
        default: "each-tier",
        unit: "",
        source: "section VII-C: 2 counters per core",
        help: "One event for each tier, which samples a rarely used tier more densely, or one for all.",
        scaled: false,
    },
    Spec {
        name: "stable_window",
        kind: Kind::Duration(Nanos(1_000), Nanos(u64::MAX / 4)),
        default: "60s",
        unit: "",
        source: "section V-B 2",
        help: "Time over which hit ratio and promotions are measured while pages are promoted.",
        scaled: true,
    },
    Spec {
        name: "stable_within",
        kind: Kind::Number(0.0, 1.0),
        default: "0.005",
        unit: "of all loads",
        source: "section V-B 2: 0.5 %, read as points",
        help: "Hit ratios that differ by no more than this are stable.",
        scaled: false,
    },
    Spec {
        name: "monitor_interval",
        kind: Kind::Duration(Nanos(1_000), Nanos(u64::MAX / 4)),
        default: "10s",
        unit: "",
        source: "ours: Fig. 11's change is noticed within 30 s, so HybridTier's 60 s cannot be",
        help: "Time between two looks at the hit counters in monitoring mode.",
        scaled: true,
    },
];

/// The values in force.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) batch: usize,
    pub(super) layout: Layout,
    pub(super) shape: FilterShape,
    /// Its hot set: the fast tier up to the promotion mark.
    pub(super) threshold: ThresholdSettings,
    /// Samples between two ageings.
    pub(super) ageing: u64,
    pub(super) age_on_resume: bool,
    pub(super) watermarks: Watermarks,
    pub(super) scan_batch: usize,
    /// Hz of the three levels, highest first.
    pub(super) frequencies: [u64; 3],
    pub(super) scope: SamplingScope,
    pub(super) window: Nanos,
    pub(super) tolerance: f64,
    pub(super) monitor_interval: Nanos,
}

impl Settings {
    pub(super) fn new(parameters: &Parameters, setup: &Setup) -> Result<Self, ShapeError> {
        let fast = setup.fast.0;
        let share = |name| (fast as f64 * parameters.number(name)).ceil() as u64;
        let promote_mark = share("promote_watermark").max(1);
        let base_pages = setup.page_size.bytes().0 / PageSize::Base.bytes().0 * fast;
        let samples = |name, pages: u64| (parameters.number(name) * pages.max(1) as f64).ceil() as u64;
        Ok(Self {
            batch: parameters.count("batch") as usize,
            layout: if parameters.choice("filter") == "standard" {
                Layout::Standard
            } else {
                Layout::Blocked
            },
            shape: filter_shape(parameters, setup)?,
            threshold: ThresholdSettings {
                room: fast.saturating_sub(promote_mark),
                split_ties: parameters.choice("ties") == "split",
                initial: parameters.count("initial_threshold") as u32,
                warmup: samples("threshold_warmup", fast),
                seed: setup.seed,
            },
            ageing: samples("ageing_samples_per_page", base_pages),
            age_on_resume: parameters.flag("age_on_resume"),
            watermarks: Watermarks {
                promote: promote_mark,
                demote: share("demote_watermark").max(promote_mark),
            },
            scan_batch: parameters.count("scan_batch") as usize,
            frequencies: ["sampling_high", "sampling_middle", "sampling_low"]
                .map(|name| parameters.count(name)),
            scope: match parameters.choice("sampling_scope") {
                "all-tiers" => SamplingScope::AllTiers,
                _ => SamplingScope::EachTier,
            },
            window: parameters.duration("stable_window"),
            tolerance: parameters.number("stable_within"),
            monitor_interval: parameters.duration("monitor_interval"),
        })
    }
}
