//! Defines the parameters that several systems share, with Linux' defaults.

use isotherm_core::parameters::{Kind, Spec};
use isotherm_core::{Bytes, Nanos};

/// The longest duration that can be set.
pub(crate) const LONGEST: Nanos = Nanos(u64::MAX / 4);

pub(crate) const SCAN_SIZE: Spec = Spec {
    name: "scan_size",
    kind: Kind::Size(Bytes(4096), Bytes(1 << 42)),
    default: "256M",
    unit: "bytes",
    source: "Linux: numa_balancing scan_size_mb",
    help: "Memory whose pages are made to fault in one scan.",
    scaled: true,
};

pub(crate) const SCAN_PERIOD: Spec = Spec {
    name: "scan_period",
    kind: Kind::Duration(Nanos(1_000), LONGEST),
    default: "100ms",
    unit: "",
    source: "Linux: task_scan_min() of a process of more than 2.5 GB (MAX_SCAN_WINDOW); see docs/policies.md",
    help: "Time between two scans.",
    scaled: true,
};

pub(crate) const MIN_WATERMARK: Spec = Spec {
    name: "min_watermark",
    kind: Kind::Number(0.0, 0.5),
    default: "0.0173%",
    unit: "of the fast tier",
    source: "Linux: min_free_kbytes = 4 sqrt(KiB of memory) of 512 GiB, spread evenly",
    help: "What only the kernel may allocate: the lowest watermark.",
    scaled: false,
};

pub(crate) const WATERMARK_STEP: Spec = Spec {
    name: "watermark_step",
    kind: Kind::Number(0.0, 0.2),
    default: "0.1%",
    unit: "of the fast tier",
    source: "Linux: watermark_scale_factor 10",
    help: "Distance from each watermark (min, low, high, promo) to the next.",
    scaled: false,
};

pub(crate) const HOT_THRESHOLD: Spec = Spec {
    name: "hot_threshold",
    kind: Kind::Duration(Nanos(1_000), LONGEST),
    default: "1s",
    unit: "",
    source: "Linux: numa_balancing hot_threshold_ms",
    help: "A page that faults sooner than this after it was armed is hot: the reference of the threshold in force.",
    scaled: true,
};

pub(crate) const ADJUST_PERIOD: Spec = Spec {
    name: "adjust_period",
    kind: Kind::Duration(Nanos(1_000), LONGEST),
    default: "60s",
    unit: "",
    source: "Linux: numa_promotion_adjust_threshold() uses scan_period_max_ms",
    help: "Time between two steps of the hot threshold.",
    scaled: true,
};

pub(crate) const RATE_LIMIT: Spec = Spec {
    name: "rate_limit",
    kind: Kind::Size(Bytes(0), Bytes(1 << 50)),
    default: "64G",
    unit: "bytes in rate_period",
    source: "Linux: numa_balancing_promote_rate_limit_MBps 65536",
    help: "Hot pages that may be promoted in a rate_period; the threshold is stepped to meet it.",
    scaled: true,
};

pub(crate) const RATE_PERIOD: Spec = Spec {
    name: "rate_period",
    kind: Kind::Duration(Nanos(1_000), LONGEST),
    default: "1s",
    unit: "",
    source: "Linux: numa_promotion_rate_limit() counts by the second",
    help: "The window of the rate limit.",
    scaled: true,
};

pub(crate) const ENOUGH_FREE: Spec = Spec {
    name: "enough_free",
    kind: Kind::Size(Bytes(0), Bytes(1 << 50)),
    default: "1G",
    unit: "bytes",
    source: "Linux: pgdat_free_space_enough(), the larger of 1 GiB and 1/16 of the node",
    help: "With this and 1/16 of the fast tier free, every page that faults is promoted.",
    scaled: true,
};

pub(crate) const DEMOTE_WATERMARK: Spec = Spec {
    name: "demote_watermark",
    kind: Kind::Number(0.0, 0.9),
    default: "2%",
    unit: "of the fast tier",
    source: "TPP section 5.2: demote_scale_factor, 2 % by default",
    help: "Reclaim begins with less than this free and ends there, far above the marks of allocation.",
    scaled: false,
};
