//! The popularities and value sizes that CacheLib's benchmark publishes for each workload.

use super::{popularity, sizes};

#[derive(Debug)]
pub(super) struct Shape {
    /// Cumulative share of accesses (second) of the hottest share of keys (first).
    pub popularity: &'static [(f64, f64)],
    /// Value sizes in bytes (second) by quantile (first).
    pub values: &'static [(f64, f64)],
    pub mean_value: f64,
}

/// Content delivery: `hit_ratio/cdn`.
pub(super) static CDN: Shape =
    Shape { popularity: &popularity::CDN, values: &sizes::CDN_VALUES, mean_value: sizes::CDN_MEAN_VALUE };

/// Edges of the social graph: `hit_ratio/graph_cache_leader_assocs`, the one that HybridTier's artifact runs.
pub(super) static SOCIAL: Shape = Shape {
    popularity: &popularity::SOCIAL,
    values: &sizes::SOCIAL_VALUES,
    mean_value: sizes::SOCIAL_MEAN_VALUE,
};
