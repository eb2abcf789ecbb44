//! Parameters that the systems on Linux' NUMA balancing share, with Linux' defaults.

use isotherm_core::{Bytes, Nanos, parameters};

parameters! {
    pub(crate) struct ScanSettings {
        /// Memory whose pages are made to fault in one scan.
        scan_size: Bytes = size(4096, 1 << 42, "256M").source("Linux: numa_balancing scan_size_mb").scaled_rate(),
        /// Time between two scans.
        scan_period: Nanos = interval("100ms")
            .source("Linux: task_scan_min() of a process of more than 2.5 GB (MAX_SCAN_WINDOW); see docs/reference/policies.md")
            .scaled(),
    }
}

parameters! {
    pub(crate) struct PromotionSettings {
        /// A page that faults sooner than this after it was armed is hot: the reference of the threshold in
        /// force.
        hot_threshold: Nanos = interval("1s").source("Linux: numa_balancing hot_threshold_ms").scaled(),
        /// Time between two steps of the hot threshold.
        adjust_period: Nanos = interval("60s")
            .source("Linux: numa_promotion_adjust_threshold() uses scan_period_max_ms").scaled(),
        /// Hot pages that may be promoted in a rate_period; the threshold is stepped to meet it.
        rate_limit: Bytes = size(0, 1 << 50, "64G").unit("bytes in rate_period")
            .source("Linux: numa_balancing_promote_rate_limit_MBps 65536").scaled_rate(),
        /// The window of the rate limit.
        rate_period: Nanos = interval("1s").source("Linux: numa_promotion_rate_limit() counts by the second")
            .scaled(),
        /// With this and 1/16 of the fast tier free, every page that faults is promoted.
        enough_free: Bytes = size(0, 1 << 50, "1G")
            .source("Linux: pgdat_free_space_enough(), the larger of 1 GiB and 1/16 of the node").scaled(),
    }
}

parameters! {
    pub(crate) struct WatermarkSettings {
        /// Memory that only the kernel may allocate: the lowest watermark.
        min_watermark: f64 = number(0.0, 0.5, "0.0173%").unit("of the fast tier")
            .source("Linux: min_free_kbytes = 4 sqrt(KiB of memory) of 512 GiB, spread evenly"),
        /// Distance from each watermark (min, low, high, promo) to the next.
        watermark_step: f64 = number(0.0, 0.2, "0.1%").unit("of the fast tier")
            .source("Linux: watermark_scale_factor 10"),
    }
}

parameters! {
    pub(crate) struct HeadroomSettings {
        /// Reclaim begins with less than this free and ends there, far above the marks of allocation.
        demote_watermark: f64 = number(0.0, 0.9, "2%").unit("of the fast tier")
            .source("TPP section 5.2: demote_scale_factor, 2 % by default"),
    }
}

parameters! {
    pub(crate) struct Settings {
        scan: ScanSettings,
        promotion: PromotionSettings,
        marks: WatermarkSettings,
    }
}
