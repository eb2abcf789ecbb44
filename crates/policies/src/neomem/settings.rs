//! NeoMem's settings: Table IV of the paper.

use isotherm_core::{Bytes, Nanos, parameters};

use crate::support::numa_balancing::WatermarkSettings;

const TABLE: &str = "NeoMem, Table IV";

parameters! {
    pub(crate) struct Settings {
        /// Time between two readings of hot pages and their promotion.
        migration_interval: Nanos = interval("10ms").source(TABLE).scaled(),
        /// Time after which the device forgets its counts.
        clear_interval: Nanos = interval("5s").source(TABLE).scaled(),
        /// Time between two updates of the hotness threshold.
        update_interval: Nanos = interval("1s")
            .source("ours: the published daemon's policy loop; the paper names no time").scaled(),
        /// Accesses since the last clear above which a page is hot; 0 adjusts it by Algorithm 1.
        threshold: u32 = count(0, 65_535, "0").unit("accesses")
            .source("NeoMem, section VI-D: 100 to 400 are the fixed thresholds of Fig. 14"),
        /// The least share of entries above the threshold.
        p_min: f64 = number(0.0, 1.0, "0.01%").unit("of the entries").source(TABLE),
        /// The greatest share of entries above the threshold.
        p_max: f64 = number(0.0, 1.0, "1.56%").unit("of the entries").source(TABLE),
        /// The share of entries above the threshold at first.
        p_init: f64 = number(0.0, 1.0, "0.1%").unit("of the entries").source(TABLE),
        /// How strongly the slow tier's bandwidth lowers the threshold.
        alpha: f64 = number(0.0, 16.0, "1").source(TABLE),
        /// How strongly ping-pong raises the threshold.
        beta: f64 = number(0.0, 16.0, "2").source(TABLE),
        /// The error bound holds with a probability of 1 less this.
        delta: f64 = number(0.0001, 1.0, "25%").source("NeoMem, section IV-B: the example for two lanes"),
        /// Hot pages that are promoted in a quota_period.
        quota: Bytes = size(4096, 1 << 50, "256M").unit("bytes in quota_period")
            .source("NeoMem, Table IV: m_quota 256 MB/s").scaled_rate(),
        /// The period of the quota.
        quota_period: Nanos = interval("1s").source("NeoMem, Table IV: the quota is by the second").scaled(),
        /// Whether hot pages are promoted.
        migrate: bool = flag("true")
            .source("NeoMem, section VI-D: what profiling alone costs is measured without migration"),
        marks: WatermarkSettings,
    }
}
