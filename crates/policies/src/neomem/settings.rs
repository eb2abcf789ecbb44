//! What can be set: Table IV of the paper.

use isotherm_core::parameters::{Kind, Spec};
use isotherm_core::{Bytes, Nanos};

use crate::numa_balancing::specs;

const TABLE: &str = "NeoMem, Table IV";

/// A time that stands for the paper's footprint.
const fn interval(
    name: &'static str,
    default: &'static str,
    source: &'static str,
    help: &'static str,
) -> Spec {
    Spec {
        name,
        kind: Kind::Duration(Nanos(1_000), specs::LONGEST),
        default,
        unit: "",
        source,
        help,
        scaled: true,
    }
}

/// A share of the sketch's entries.
const fn share(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    Spec {
        name,
        kind: Kind::Number(0.0, 1.0),
        default,
        unit: "of the entries",
        source: TABLE,
        help,
        scaled: false,
    }
}

/// An exponent of Algorithm 1.
const fn exponent(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    Spec { name, kind: Kind::Number(0.0, 16.0), default, unit: "", source: TABLE, help, scaled: false }
}

/// What can be set.
pub(crate) const SPECS: &[Spec] = &[
    interval(
        "migration_interval",
        "10ms",
        TABLE,
        "Time between two readings of hot pages and their promotion.",
    ),
    interval("clear_interval", "5s", TABLE, "Time after which the device forgets its counts."),
    interval(
        "update_interval",
        "1s",
        "ours: the published daemon's policy loop; the paper names no time",
        "Time between two updates of the hotness threshold.",
    ),
    Spec {
        name: "threshold",
        kind: Kind::Count(0, 65_535),
        default: "0",
        unit: "accesses",
        source: "NeoMem, section VI-D: 100 to 400 are the fixed thresholds of Fig. 14",
        help: "Accesses since the last clear above which a page is hot; 0 adjusts it by Algorithm 1.",
        scaled: false,
    },
    share("p_min", "0.01%", "The least share of entries above the threshold."),
    share("p_max", "1.56%", "The greatest share of entries above the threshold."),
    share("p_init", "0.1%", "The share of entries above the threshold at first."),
    exponent("alpha", "1", "How strongly the slow tier's bandwidth lowers the threshold."),
    exponent("beta", "2", "How strongly ping-pong raises the threshold."),
    Spec {
        name: "delta",
        kind: Kind::Number(0.0001, 1.0),
        default: "25%",
        unit: "",
        source: "NeoMem, section IV-B: the example for two lanes",
        help: "The error bound holds with a probability of 1 less this.",
        scaled: false,
    },
    Spec {
        name: "quota",
        kind: Kind::Size(Bytes(4096), Bytes(1 << 50)),
        default: "256M",
        unit: "bytes in quota_period",
        source: "NeoMem, Table IV: m_quota 256 MB/s",
        help: "Hot pages that are promoted in a quota_period.",
        scaled: true,
    },
    interval(
        "quota_period",
        "1s",
        "NeoMem, Table IV: the quota is by the second",
        "The period of the quota.",
    ),
    Spec {
        name: "reclaim",
        kind: Kind::Count(1, 1 << 20),
        default: "32",
        unit: "pages",
        source: "Linux: SWAP_CLUSTER_MAX, what the kernel reclaims in one go; the paper leaves cold pages to kswapd, beside the daemon",
        help: "Pages that the kernel's LRU takes off the fast tier between two readings, at most; promotions wait for that room.",
        scaled: false,
    },
    Spec {
        name: "migrate",
        kind: Kind::Flag,
        default: "true",
        unit: "",
        source: "NeoMem, section VI-D: what profiling alone costs is measured without migration",
        help: "Whether hot pages are promoted.",
        scaled: false,
    },
    specs::MIN_WATERMARK,
    specs::WATERMARK_STEP,
];
