//! Defines Memtis' parameters: the tables that users see, and the validated values that the policy runs with.

use isotherm_core::parameters::{Kind, Parameters, Spec};
use isotherm_core::{Bytes, Nanos, PageSize};

use super::period::PeriodSettings;
use crate::Setup;

/// The number of parameters.
const COUNT: usize = 21;
/// The last of them, which are about splitting huge pages.
const OF_SPLITS: usize = 4;

/// What can be set. "Memtis" is Lee et al., SOSP 2023, "its artifact" the kernel published with it.
pub(crate) const SPECS: &[Spec] = &SPEC_TABLE;

/// The same for `memtis-qc`: quick cooling.
pub(crate) const QC_SPECS: &[Spec] = &quick_cooling();

const fn quick_cooling() -> [Spec; COUNT] {
    let mut specs = SPEC_TABLE;
    specs[0].default = "120k";
    specs[0].source = "Jenga, section 5: Memtis-QC";
    specs
}

/// The parameters of a policy that splits nothing, with quick cooling.
pub(crate) const fn unsplit() -> [Spec; COUNT - OF_SPLITS] {
    let all = quick_cooling();
    let mut kept = [all[0]; COUNT - OF_SPLITS];
    let mut index = 0;
    while index < kept.len() {
        kept[index] = all[index];
        index += 1;
    }
    kept
}

const SPEC_TABLE: [Spec; COUNT] = [
    Spec {
        name: "cooling_samples",
        kind: Kind::Count(1, 1_000_000_000_000),
        default: "2M",
        unit: "samples",
        source: "Jenga, section 2.2.2; Memtis' artifact",
        help: "Samples after which every count is halved.",
        scaled: true,
    },
    Spec {
        name: "adaptation_samples",
        kind: Kind::Count(1, 10_000_000),
        default: "100k",
        unit: "samples",
        source: "Jenga, section 2.2.2; Memtis' artifact",
        help: "Samples after which the thresholds are fitted anew.",
        scaled: true,
    },
    Spec {
        name: "shortest_period",
        kind: Kind::Count(1, 1_000_000_000),
        default: "199",
        unit: "accesses",
        source: "Memtis' artifact",
        help: "The sampling period that it starts with.",
        scaled: false,
    },
    Spec {
        name: "longest_period",
        kind: Kind::Count(1, 1_000_000_000),
        default: "19997",
        unit: "accesses",
        source: "Memtis' artifact",
        help: "The longest sampling period, used where sampling takes too much time.",
        scaled: false,
    },
    Spec {
        name: "period_steps",
        kind: Kind::Count(1, 1000),
        default: "30",
        unit: "",
        source: "Memtis' artifact: 30 periods, primes near round numbers; here in equal proportions",
        help: "Periods from the shortest to the longest.",
        scaled: false,
    },
    Spec {
        name: "store_period",
        kind: Kind::Count(0, 1_000_000_000_000),
        default: "100007",
        unit: "accesses",
        source: "Memtis' artifact; there of all retired stores, here of those that missed, which a host sees",
        help: "Takes every n-th store only; 0 samples stores as densely as loads.",
        scaled: false,
    },
    Spec {
        name: "cpu_target",
        kind: Kind::Number(0.0, 1.0),
        default: "3%",
        unit: "of one core",
        source: "Memtis' artifact",
        help: "Time that sampling may take.",
        scaled: false,
    },
    Spec {
        name: "cpu_tolerance",
        kind: Kind::Number(0.0, 1.0),
        default: "0.5%",
        unit: "of one core",
        source: "Memtis' artifact",
        help: "By how much sampling may miss its target before the period changes.",
        scaled: false,
    },
    Spec {
        name: "period_interval",
        kind: Kind::Duration(Nanos(1_000), Nanos(u64::MAX / 4)),
        default: "15s",
        unit: "",
        source: "Memtis' artifact",
        help: "Time between two adjustments of the period.",
        scaled: true,
    },
    Spec {
        name: "sample_cost",
        kind: Kind::Duration(Nanos(0), Nanos(1_000_000)),
        default: "220ns",
        unit: "",
        source: "measured: 178 ns a sample for a table of 16 B a page and a histogram (Zipf 0.9 over 8 M pages), and 40 ns to read it",
        help: "Time of the sampling thread for one sample, from which its share of a core follows.",
        scaled: false,
    },
    Spec {
        name: "promotion_reserve",
        kind: Kind::Number(0.0, 0.9),
        default: "3%",
        unit: "of the fast tier",
        source: "Memtis' artifact",
        help: "Share of the fast tier that the hot set leaves free.",
        scaled: false,
    },
    Spec {
        name: "smallest_reserve",
        kind: Kind::Size(Bytes(0), Bytes(1 << 44)),
        default: "100M",
        unit: "bytes",
        source: "Memtis' artifact",
        help: "The least that the hot set leaves free, though never more than half the fast tier.",
        scaled: true,
    },
    Spec {
        name: "largest_reserve",
        kind: Kind::Size(Bytes(0), Bytes(1 << 44)),
        default: "1500M",
        unit: "bytes",
        source: "Memtis' artifact",
        help: "The most that the hot set leaves free.",
        scaled: true,
    },
    Spec {
        name: "warm_below",
        kind: Kind::Number(0.0, 1.0),
        default: "75%",
        unit: "of what the hot set may have",
        source: "Jenga, section 2.2.2, footnote 1; Memtis' artifact",
        help: "With a smaller hot set than this, the bin below the hot threshold is warm and stays where it is.",
        scaled: false,
    },
    Spec {
        name: "demotion_watermark",
        kind: Kind::Number(0.0, 0.5),
        default: "2%",
        unit: "of the fast tier",
        source: "Memtis' artifact",
        help: "Share of the fast tier that demotion keeps free.",
        scaled: false,
    },
    Spec {
        name: "migration_interval",
        kind: Kind::Duration(Nanos(1_000), Nanos(u64::MAX / 4)),
        default: "500ms",
        unit: "",
        source: "Memtis' artifact",
        help: "Time between two rounds of moves.",
        scaled: true,
    },
    Spec {
        name: "migration_rate",
        kind: Kind::Size(Bytes(4096), Bytes(1 << 44)),
        default: "2048M",
        unit: "bytes per second",
        source: "Memtis' artifact",
        help: "The most that may be moved in either direction.",
        scaled: false,
    },
    Spec {
        name: "huge_pages",
        kind: Kind::Flag,
        default: "false",
        unit: "",
        source: "ours: Jenga, section 5, switches huge-page splitting off for its instability",
        help: "In a run of base pages: begin with 2 MiB ranges that move as one and are split where their accesses are \
               skewed. In a run of huge pages nothing can be split, and this changes nothing.",
        scaled: false,
    },
    Spec {
        name: "split_margin",
        kind: Kind::Number(0.0, 1.0),
        default: "0.95",
        unit: "of the estimated hit ratio",
        source: "Memtis' artifact",
        help: "Ranges are split while this share of the hit ratio estimated for base pages exceeds the real one.",
        scaled: false,
    },
    Spec {
        name: "split_strength",
        kind: Kind::Number(0.0, 100.0),
        default: "0.4",
        unit: "",
        source: "Memtis' artifact",
        help: "Part of the gain in hits and latency that is turned into splits.",
        scaled: false,
    },
    Spec {
        name: "latency_gap",
        kind: Kind::Number(0.0, 100.0),
        default: "1.125",
        unit: "of the fast tier's latency",
        source: "Memtis' artifact: 80 ns DRAM, 170 ns CXL (270 ns NVM would be 2.375)",
        help: "By how much the slow tier is slower; more splits the wider it is.",
        scaled: false,
    },
];

/// The values in force.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) cooling: u64,
    /// Samples between two fittings of the thresholds.
    pub(super) adaptation: u64,
    /// Whether 2 MiB ranges of base pages are units.
    pub(super) huge_ranges: bool,
    /// What a sample adds to a page's count: base pages weigh as many times more as huge ones have pages.
    pub(super) weight: u32,
    pub(super) store_period: u64,
    pub(super) period: PeriodSettings,
    /// Pages that the hot set may have.
    pub(super) room: u64,
    /// With fewer hot pages than this there is a warm class.
    pub(super) warm_below: u64,
    /// Pages that demotion keeps free.
    pub(super) demotion_mark: u64,
    pub(super) migration_interval: Nanos,
    /// Pages that one round may move in either direction.
    pub(super) budget: u64,
    pub(super) split_margin: f64,
    /// Part of the missing hit ratio that is turned into splits: strength x latency gap.
    pub(super) split_gain: f64,
}

/// Base pages of a huge one.
pub(super) const BASE_PAGES: u32 = 1 << (PageSize::Huge.shift() - PageSize::Base.shift());

impl Settings {
    /// From the parameters; `splits` says whether those about splitting are among them.
    pub(super) fn new(parameters: &Parameters, setup: &Setup, splits: bool) -> Self {
        let fast = setup.fast.0;
        let share = |name| (fast as f64 * parameters.number(name)).ceil() as u64;
        let pages = |size: Bytes| size.0 >> setup.page_size.shift();
        let bound = |name| pages(parameters.size(name));
        let largest = bound("largest_reserve").min(fast / 2);
        let smallest = bound("smallest_reserve").min(largest);
        let room = fast.saturating_sub(share("promotion_reserve").clamp(smallest, largest));
        let interval = parameters.duration("migration_interval");
        let moved = parameters.size("migration_rate").0 as f64 * interval.as_seconds();
        let base = setup.page_size == PageSize::Base;
        let shortest = parameters.count("shortest_period");
        let of_splits = |name| if splits { parameters.number(name) } else { 0.0 };
        Self {
            cooling: parameters.count("cooling_samples"),
            adaptation: parameters.count("adaptation_samples"),
            huge_ranges: splits && parameters.flag("huge_pages") && base,
            weight: if base { BASE_PAGES } else { 1 },
            store_period: parameters.count("store_period"),
            period: PeriodSettings {
                shortest,
                longest: parameters.count("longest_period").max(shortest),
                steps: parameters.count("period_steps") as u32,
                target: parameters.number("cpu_target"),
                tolerance: parameters.number("cpu_tolerance"),
                interval: parameters.duration("period_interval"),
                sample_cost: parameters.duration("sample_cost"),
            },
            room,
            warm_below: (room as f64 * parameters.number("warm_below")) as u64,
            demotion_mark: share("demotion_watermark"),
            migration_interval: interval,
            budget: pages(Bytes(moved as u64)).max(1),
            split_margin: of_splits("split_margin"),
            split_gain: of_splits("split_strength") * of_splits("latency_gap"),
        }
    }
}
