//! The sizes of keys and values.

use crate::{Permutation, mix};

/// Value sizes of CacheLib's `hit_ratio/cdn/sizes.json` by quantile, with the published median, 90th and 99th
/// percentile (13,343, 77,631 and 274,239 B). The smallest is one of its small buckets; the largest makes the
/// mean the published 33,024 B. Between quantiles the logarithm of the size is linear.
pub(super) const CDN_VALUES: [(f64, f64); 5] =
    [(0.0, 64.0), (0.5, 13_343.0), (0.9, 77_631.0), (0.99, 274_239.0), (1.0, 361_500.0)];

pub(super) const CDN_MEAN_VALUE: f64 = 33_024.0;

/// Value sizes of `hit_ratio/graph_cache_leader_assocs/sizes.json`, likewise: percentiles 63, 895 and 24,991
/// B; the largest makes the mean the published 1,423 B.
pub(super) const SOCIAL_VALUES: [(f64, f64); 5] =
    [(0.0, 15.0), (0.5, 63.0), (0.9, 895.0), (0.99, 24_991.0), (1.0, 127_800.0)];

pub(super) const SOCIAL_MEAN_VALUE: f64 = 1_423.0;

/// Returns the size at a quantile of 0 to 1, of a table of sizes by quantile.
fn value_at(table: &[(f64, f64)], quantile: f64) -> u64 {
    let upper = table.iter().position(|knot| quantile <= knot.0).unwrap_or(table.len() - 1).max(1);
    let (low, high) = (table[upper - 1], table[upper]);
    let part = (quantile - low.0) / (high.0 - low.0);
    (low.1 * (high.1 / low.1).powf(part)).round() as u64
}

/// Returns the value size of each key: every quantile appears once, at a key that `seed` chooses.
pub(super) fn values(table: &[(f64, f64)], keys: u64, seed: u64) -> Vec<u32> {
    let order = Permutation::new(keys, seed);
    (0..keys).map(|key| value_at(table, (order.at(key) as f64 + 0.5) / keys as f64) as u32).collect()
}

/// Returns a key's length as in the benchmark's `hit_ratio` configurations: 8 bytes with probability 0.3 (the
/// range 1 to 8, raised to 8 so that keys differ), otherwise uniform from 8 to 64.
pub(super) fn key_bytes(hash: u64) -> u64 {
    let dice = mix(hash) >> 32;
    if dice % 1000 < 300 { 8 } else { 8 + (dice / 1000) % 57 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_published_mean_and_percentiles() {
        for (table, published) in [
            (&CDN_VALUES, [CDN_MEAN_VALUE, 13_343.0, 77_631.0, 274_239.0]),
            (&SOCIAL_VALUES, [SOCIAL_MEAN_VALUE, 63.0, 895.0, 24_991.0]),
        ] {
            let mut values = values(table, 8_000, 1);
            values.sort_unstable();
            let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64;
            let percentile = |percent: usize| f64::from(values[values.len() * percent / 100]);
            let found = [mean, percentile(50), percentile(90), percentile(99)];
            for (found, published) in found.into_iter().zip(published) {
                assert!((found / published - 1.0).abs() < 0.05, "{found} for {published}");
            }
        }
    }

    #[test]
    fn a_third_of_the_keys_are_short_and_none_is_longer_than_64() {
        let lengths: Vec<u64> = (0..100_000).map(|key| key_bytes(mix(key))).collect();
        assert!(lengths.iter().all(|length| (8..=64).contains(length)));
        let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
        assert!((mean - (0.3 * 8.0 + 0.7 * 36.0)).abs() < 0.3, "{mean}");
    }
}
