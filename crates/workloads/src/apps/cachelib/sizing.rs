//! The sizes and counts that follow from the parameters of a CacheLib workload.

use isotherm_core::Bytes;

use super::client::Client;
use super::index::Index;
use super::popularity;
use super::settings::{Popularity, Settings};
use super::shape::Shape;
use super::shift::Shift;
use crate::random::Probability;

/// Share of the footprint that the cache takes: 256 of 267 GB (FreqTier VI-C, Table I).
const CACHE_SHARE: f64 = 256.0 / 267.0;
/// Least share of the footprint, and least bytes, of the request array.
const ARRAY_SHARE: f64 = 0.01;
const MIN_ARRAY: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Sizing {
    pub settings: Settings,
    pub cache: u64,
    pub request_array: u64,
    /// Hash buckets; a power of two.
    pub buckets: u64,
    /// Keys with a popularity.
    pub keys: u64,
    pub lone_gets: Probability,
    /// Time between two refreshes of an item, in requests.
    pub refresh: u64,
    pub shape: &'static Shape,
    /// Request at which all requests move to the other half of keys; 0 for never.
    shift: u64,
    /// Request at which the hot set changes; 0 for never.
    change: u64,
}

impl Sizing {
    pub(super) fn new(settings: Settings, shape: &'static Shape) -> Result<Self, String> {
        let Settings { overcommit, chain, operations: requests, .. } = settings;
        let footprint = settings.footprint.0;
        let cache =
            cache_bytes(footprint as f64, overcommit / shape.mean_value, 1.0 / (chain * shape.mean_value));
        let keys = (cache as f64 * overcommit / shape.mean_value) as u64;
        if !(2..=u64::from(u32::MAX)).contains(&keys) {
            return Err(format!("overcommit and footprint make {keys} keys; expected 2 to {}", u32::MAX));
        }
        let request = |share: f64| (share * requests as f64) as u64;
        let (shift, change) = (request(settings.shift), request(settings.change_at));
        if shift > 0 && change > 0 {
            return Err("shift and change_at are both set; expected one of them".into());
        }
        // Lone gets fill the room that keys leave.
        let wanted = keys + request(settings.lone_gets);
        let items = wanted.min((cache as f64 / shape.mean_value) as u64).max(1);
        let buckets = ((items as f64 / chain) as u64).next_power_of_two();
        let rest = footprint - cache;
        let request_array = rest.saturating_sub(Client::bytes(keys) + Index::bytes(buckets)).max(MIN_ARRAY);
        Ok(Self {
            cache,
            request_array,
            buckets,
            keys,
            lone_gets: Probability::new(settings.lone_gets),
            refresh: (settings.refresh * items as f64) as u64,
            shape,
            shift,
            change,
            settings,
        })
    }

    pub(super) fn weights(&self) -> Vec<f64> {
        match self.settings.popularity {
            Popularity::HybridTier => popularity::normal(self.settings.sigma, self.keys),
            Popularity::Upstream => popularity::upstream(self.shape.popularity, self.keys),
        }
    }

    pub(super) fn shift(&self, seed: u64) -> Shift {
        match (self.shift, self.change) {
            (0, 0) => Shift::Never,
            (0, at) => Shift::change(at, self.keys, self.settings.change_share, seed),
            (at, _) => Shift::Halves { at, half: self.keys / 2 },
        }
    }

    pub(super) fn footprint(&self) -> Bytes {
        Bytes(self.cache + self.request_array + Client::bytes(self.keys) + Index::bytes(self.buckets))
    }
}

/// Returns the cache's bytes: its share, or the rest beside array, `keys` and `chains` (a byte of it).
fn cache_bytes(footprint: f64, keys: f64, chains: f64) -> u64 {
    // A power of two of buckets may be twice what the chains ask for.
    let beside = keys * Client::bytes(1) as f64 + chains * Index::bytes(8) as f64 / 4.0;
    (footprint * CACHE_SHARE.min((1.0 - ARRAY_SHARE) / (1.0 + beside))) as u64
}

#[cfg(test)]
mod tests {
    use super::super::shape::{CDN, SOCIAL};
    use super::*;

    fn name(shape: &'static Shape) -> &'static str {
        if std::ptr::eq(shape, &CDN) { "cachelib-cdn" } else { "cachelib-social" }
    }

    fn settings(shape: &'static Shape, text: &[(&str, &str)]) -> Result<Sizing, String> {
        let workload = crate::find(name(shape)).expect("registered");
        let mut parameters = workload.parameters();
        text.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
        Sizing::new(Settings::read(&parameters), shape)
    }

    #[test]
    fn the_parts_add_up_to_the_footprint_at_every_scale() {
        for (shape, preset) in
            [(&CDN, "default"), (&CDN, "hybridtier"), (&SOCIAL, "default"), (&SOCIAL, "hybridtier")]
        {
            for footprint in ["32M", "256M", "8G", "267G"] {
                let asked: Bytes = footprint.parse().expect("a size");
                let settings =
                    settings(shape, &[("preset", preset), ("footprint", footprint)]).expect("consistent");
                let part = settings.footprint().0 as f64 / asked.0 as f64;
                assert!((part - 1.0).abs() < 0.01, "{} {preset} {footprint}: {part}", name(shape));
            }
        }
    }

    #[test]
    fn at_full_scale_the_numbers_are_the_papers() {
        let keys = |shape, preset| {
            let footprint = [("preset", preset), ("footprint", "267G"), ("operations", "1G")];
            settings(shape, &footprint).expect("consistent").keys as f64
        };
        for (shape, preset, published, within) in [
            (&CDN, "default", 8_935_378.0, 0.01),
            (&SOCIAL, "default", 65_345_659.0, 0.05),
            // The artifact's caches are 200,000 MiB, 0.76 of ours.
            (&CDN, "hybridtier", 14_500_000.0 / 0.763, 0.03),
            (&SOCIAL, "hybridtier", 20_000_000.0 / 0.763, 0.03),
        ] {
            let found = keys(shape, preset);
            assert!((found / published - 1.0).abs() < within, "{} {preset}: {found}", name(shape));
        }
        assert_eq!(settings(&CDN, &[("footprint", "267G")]).expect("consistent").buckets, 1 << 22);
    }

    #[test]
    fn the_hot_set_moves_in_one_way_or_the_other_and_not_in_both() {
        let moves = |text: &[(&str, &str)]| settings(&SOCIAL, text).expect("consistent").shift(1);
        assert!(matches!(moves(&[]), Shift::Never));
        assert!(matches!(moves(&[("shift", "0.5")]), Shift::Halves { at: 2_000_000, .. }));
        assert!(matches!(moves(&[("change_at", "0.5")]), Shift::Change { at: 2_000_000, .. }));
        let error = settings(&CDN, &[("shift", "0.5"), ("change_at", "0.5")]).expect_err("both");
        assert_eq!(error, "shift and change_at are both set; expected one of them");
    }

    #[test]
    fn absurd_combinations_are_refused_in_one_line() {
        let error = settings(&CDN, &[("footprint", "1T"), ("overcommit", "100")]).expect("fits");
        assert!(error.keys > 0);
        let few = settings(&CDN, &[("footprint", "32M"), ("overcommit", "0.01")]);
        assert!(few.is_ok_and(|settings| settings.keys >= 2));
    }
}
