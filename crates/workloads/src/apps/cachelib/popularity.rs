//! The popularity of keys over the *share* of ranks: with fewer keys the hottest 1 % keep their share.
//!
//! `upstream` joins the cumulative shares of CacheLib's table (equal-weight buckets) at seven ranks by power
//! laws: between two ranks the density falls as `rank^-a`, with `a` from the mean densities on both sides.
//! `hybridtier` comes from HybridTier's artifact: normal over the range of keys.

/// Cumulative share of accesses (second) of the hottest share of keys (first) in CacheLib's
/// `hit_ratio/cdn/pop.json`; the first entry is the hottest key.
pub(super) const CDN: [(f64, f64); 7] = [
    (1.0 / 8_935_378.0, 0.0021),
    (0.001, 0.066),
    (0.01, 0.139),
    (0.1, 0.375),
    (0.2, 0.499),
    (0.5, 0.698),
    (1.0, 1.0),
];

/// Cumulative shares in `hit_ratio/graph_cache_leader_assocs/pop.json`, likewise.
pub(super) const SOCIAL: [(f64, f64); 7] = [
    (1.0 / 65_345_659.0, 0.0178),
    (0.001, 0.241),
    (0.01, 0.327),
    (0.1, 0.553),
    (0.2, 0.674),
    (0.5, 0.860),
    (1.0, 1.0),
];

/// A stretch of ranks over which the density follows one power law.
#[derive(Debug, Clone, Copy)]
struct Segment {
    from: (f64, f64),
    to: (f64, f64),
    exponent: f64,
}

impl Segment {
    /// Returns the cumulative share at `rank`, which lies within.
    fn at(&self, rank: f64) -> f64 {
        let power = 1.0 - self.exponent;
        let integral = |rank: f64| rank.powf(power) - self.from.0.powf(power);
        self.from.1 + (self.to.1 - self.from.1) * integral(rank) / integral(self.to.0)
    }
}

fn segments(quantiles: &[(f64, f64)]) -> Vec<Segment> {
    let mean = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let means: Vec<f64> = quantiles.windows(2).map(mean).collect();
    // The density at an inner rank is the geometric mean of both sides; at the ends that of the only side.
    let mut densities = vec![quantiles[0].1 / quantiles[0].0];
    densities.extend(means.windows(2).map(|pair| (pair[0] * pair[1]).sqrt()));
    densities.extend(means.last());
    let segment = |(pair, density): (&[(f64, f64)], &[f64])| Segment {
        from: pair[0],
        to: pair[1],
        exponent: (density[0] / density[1]).ln() / (pair[1].0 / pair[0].0).ln(),
    };
    quantiles.windows(2).zip(densities.windows(2)).map(segment).collect()
}

/// Returns the cumulative share of accesses of the hottest `rank` (a share, 0 to 1) of keys.
fn cumulative(segments: &[Segment], rank: f64) -> f64 {
    let first = segments[0].from;
    if rank <= first.0 {
        return first.1 * rank / first.0;
    }
    segments.iter().find(|segment| rank <= segment.to.0).map_or(1.0, |segment| segment.at(rank))
}

/// Returns the weight of each of `keys` keys in CacheLib's own shape, the hottest first.
pub(super) fn upstream(quantiles: &[(f64, f64)], keys: u64) -> Vec<f64> {
    let segments = segments(quantiles);
    let shares: Vec<f64> = (0..=keys).map(|key| cumulative(&segments, key as f64 / keys as f64)).collect();
    shares.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Returns the weight of each key, normal around the middle of the range; `sigma` is a share of it.
pub(super) fn normal(sigma: f64, keys: u64) -> Vec<f64> {
    let density = |key: u64| {
        let distance = ((key as f64 + 0.5) / keys as f64 - 0.5) / sigma;
        (-0.5 * distance * distance).exp()
    };
    (0..keys).map(density).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alias::AliasTable;
    use crate::random::Random;

    /// Returns the part of the accesses drawn that the hottest share of keys got, for each of `shares`.
    fn measured(weights: &[f64], shares: &[f64]) -> Vec<f64> {
        let table = AliasTable::new(weights);
        let mut random = Random::new(11);
        let mut counts = vec![0u64; weights.len()];
        let draws = 10_000_000;
        (0..draws).for_each(|_| counts[table.draw(&mut random) as usize] += 1);
        // By expectation: sorting by what each got would count luck as popularity.
        let mut hottest: Vec<usize> = (0..weights.len()).collect();
        hottest.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let part = |share: &f64| {
            let keys = &hottest[..(counts.len() as f64 * share) as usize];
            keys.iter().map(|&key| counts[key]).sum::<u64>() as f64
        };
        shares.iter().map(|share| part(share) / f64::from(draws)).collect()
    }

    #[test]
    fn the_generator_follows_the_published_quantiles_at_any_number_of_keys() {
        let shares = [0.001, 0.01, 0.1, 0.2, 0.5];
        for (table, expected) in
            [(&CDN, [0.066, 0.139, 0.375, 0.499, 0.698]), (&SOCIAL, [0.241, 0.327, 0.553, 0.674, 0.860])]
        {
            for keys in [8_000, 50_000] {
                for (found, expected) in measured(&upstream(table, keys), &shares).iter().zip(expected) {
                    assert!((found - expected).abs() < 0.01, "{keys} keys: {found:.4} for {expected}");
                }
            }
        }
    }

    #[test]
    fn the_hottest_key_of_the_published_number_has_its_published_share() {
        let segments = segments(&CDN);
        assert!((cumulative(&segments, CDN[0].0) - 0.0021).abs() < 1e-6);
        assert!((cumulative(&segments, 1.0) - 1.0).abs() < 1e-9);
        let social = super::segments(&SOCIAL);
        assert!((cumulative(&social, SOCIAL[0].0) - 0.0178).abs() < 1e-6);
        // Ranks 100 to 89,354: a Zipf exponent near the fitted 0.62.
        assert!((0.55..0.8).contains(&segments[1].exponent), "{segments:?}");
    }

    #[test]
    fn normal_popularity_gives_its_hottest_percent_what_the_artifact_does() {
        let sigma = 2.0 / 14.5;
        let found = measured(&normal(sigma, 20_000), &[0.01]);
        let closed_form = 0.01 / (sigma * (2.0 * std::f64::consts::PI).sqrt());
        assert!((found[0] - closed_form).abs() < 0.003, "{found:?} for {closed_form}");
        assert!((0.0285..0.0405).contains(&closed_form), "the range that the artifact's configurations span");
    }
}
