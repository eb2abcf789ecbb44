//! Defines the parameters of `cachelib-cdn` and what follows from them.

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Parameters, Spec};

use super::client::Client;
use super::index::Index;
use super::{popularity, sizes};
use crate::WorkloadError;
use crate::random::Probability;

/// The cache's part of the footprint: 256 of 267 GB (FreqTier VI-C and Table I); the rest is index and client.
const CACHE_SHARE: f64 = 256.0 / 267.0;
/// The least request array, in bytes, where the keys leave no room for more.
const SMALLEST_ARRAY: u64 = 64 << 10;

const fn spec(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    unit: &'static str,
    source: &'static str,
    help: &'static str,
) -> Spec {
    Spec { name, kind, default, unit, source, help, scaled: false }
}

pub(crate) const SPECS: &[Spec] = &[
    spec(
        "footprint",
        Kind::Size(Bytes(32 << 20), Bytes(1 << 40)),
        "128M",
        "bytes",
        "ours: a two-thousandth of FreqTier's 267 GB",
        "Memory of cache, index and client together.",
    ),
    spec(
        "operations",
        Kind::Count(1, 1 << 40),
        "1M",
        "requests",
        "ours: about 240 requests a key, 168 million misses; FreqTier's hour at 0.87 Mop/s makes about 350",
        "Requests after the warm-up, over all threads.",
    ),
    spec(
        "threads",
        Kind::Count(1, 1024),
        "16",
        "",
        "FreqTier VI-C",
        "Threads; they take turns request by request.",
    ),
    spec(
        "popularity",
        Kind::Choice(&["upstream", "hybridtier"]),
        "upstream",
        "",
        "CacheLib hit_ratio/cdn/pop.json; HybridTier's artifact",
        "How often each key is asked for: CacheLib's table, or normal over the range of keys.",
    ),
    spec(
        "sigma",
        Kind::Number(0.001, 100.0),
        "0.138",
        "of the key range",
        "HybridTier's artifact: 2,000,000 of 14.5 million keys",
        "Standard deviation of the hybridtier popularity.",
    ),
    spec(
        "overcommit",
        Kind::Number(0.01, 100.0),
        "1.07",
        "of the cache",
        "CacheLib's 8,935,378 keys of 33,024 B over FreqTier's 256 GiB; HybridTier's artifact has 2.4",
        "Bytes of all keys' values.",
    ),
    spec(
        "lone_gets",
        Kind::Number(0.0, 1.0),
        "0.00884",
        "of requests",
        "CacheLib hit_ratio/cdn/config.json",
        "Gets of a key that nobody asked for before: they miss and insert it.",
    ),
    spec(
        "touch_value",
        Kind::Flag,
        "false",
        "",
        "CacheLib cachebench touchValue",
        "Whether a hit reads the value too.",
    ),
    spec(
        "populate",
        Kind::Flag,
        "true",
        "",
        "FreqTier VII-D: first, all items are inserted",
        "Insert every key once, in random order, before the first request.",
    ),
    spec(
        "refresh",
        Kind::Number(0.0, 1e6),
        "6.8",
        "requests an item",
        "CacheLib lruRefreshSec 60 s, at 0.87 Mop/s (FreqTier Table II) over 7.7 million items",
        "An item moves to the head of its LRU list at most once in this many requests for each cached item.",
    ),
    spec(
        "chain",
        Kind::Number(0.1, 64.0),
        "2",
        "items a bucket",
        "CacheLib cachebench htBucketPower 22 under about 8 million items",
        "Items in a hash bucket, about; buckets are a power of two.",
    ),
    spec(
        "instructions",
        Kind::Count(0, 1_000_000),
        "4000",
        "",
        "ours: a median get of 3.6 us with all memory local (FreqTier Table II) less its misses",
        "Instructions of a request that touch no memory of interest.",
    ),
    spec(
        "shift",
        Kind::Number(0.0, 1.0),
        "0",
        "of the run",
        "FreqTier VII-D, Fig. 11 (with all items cached: overcommit=0.7)",
        "Until then all requests go to the first half of keys, from then on to the second; 0 switches it off.",
    ),
];

/// Everything a run needs to know, derived from the parameters.
#[derive(Debug)]
pub(super) struct Settings {
    /// Bytes for items.
    pub cache: u64,
    /// Bytes of the client's array of requests.
    pub request_array: u64,
    /// Hash buckets; a power of two.
    pub buckets: u64,
    /// Keys with a popularity.
    pub keys: u64,
    pub requests: u64,
    pub threads: u64,
    pub lone_gets: Probability,
    pub touch_value: bool,
    pub populate: bool,
    /// In requests.
    pub refresh: u64,
    pub instructions: u32,
    /// The standard deviation of a normal popularity; `None` for CacheLib's own.
    sigma: Option<f64>,
    /// The request at which the popularity moves; 0 for never.
    shift: u64,
}

impl Settings {
    pub(super) fn new(parameters: &Parameters) -> Result<Self, WorkloadError> {
        let footprint = parameters.size("footprint").0;
        let cache = (footprint as f64 * CACHE_SHARE) as u64;
        let keys = (cache as f64 * parameters.number("overcommit") / sizes::CDN_MEAN_VALUE) as u64;
        if !(2..=u64::from(u32::MAX)).contains(&keys) {
            let problem = format!("overcommit and footprint make {keys} keys; expected 2 to {}", u32::MAX);
            return Err(WorkloadError::Inconsistent { workload: "cachelib-cdn", problem });
        }
        let items = keys.min((cache as f64 / sizes::CDN_MEAN_VALUE) as u64).max(1);
        let buckets = ((items as f64 / parameters.number("chain")) as u64).next_power_of_two();
        let rest = footprint - cache;
        let request_array =
            rest.saturating_sub(Client::bytes(keys) + Index::bytes(buckets)).max(SMALLEST_ARRAY);
        let requests = parameters.count("operations");
        Ok(Self {
            cache,
            request_array,
            buckets,
            keys,
            requests,
            threads: parameters.count("threads"),
            lone_gets: Probability::new(parameters.number("lone_gets")),
            touch_value: parameters.flag("touch_value"),
            populate: parameters.flag("populate"),
            refresh: (parameters.number("refresh") * items as f64) as u64,
            instructions: parameters.count("instructions") as u32,
            sigma: (parameters.choice("popularity") == "hybridtier").then(|| parameters.number("sigma")),
            shift: (parameters.number("shift") * requests as f64) as u64,
        })
    }

    /// The weight of each key.
    pub(super) fn weights(&self) -> Vec<f64> {
        match self.sigma {
            Some(sigma) => popularity::normal(sigma, self.keys),
            None => popularity::upstream(&popularity::CDN, self.keys),
        }
    }

    /// The key that a request for `key` at time `now` goes to.
    pub(super) fn redirect(&self, key: u64, now: u64) -> u64 {
        if self.shift == 0 {
            return key;
        }
        let half = self.keys / 2;
        key % half + if now < self.shift { 0 } else { half }
    }

    /// What cache, index and client occupy.
    pub(super) fn footprint(&self) -> Bytes {
        Bytes(self.cache + self.request_array + Client::bytes(self.keys) + Index::bytes(self.buckets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &[(&str, &str)]) -> Result<Settings, WorkloadError> {
        let mut parameters = Parameters::new("cachelib-cdn", SPECS);
        text.iter().for_each(|(key, value)| parameters.set(key, value).expect("in range"));
        Settings::new(&parameters)
    }

    #[test]
    fn the_parts_add_up_to_the_footprint_at_every_scale() {
        for footprint in ["32M", "256M", "8G", "267G"] {
            let asked: Bytes = footprint.parse().expect("a size");
            let settings = settings(&[("footprint", footprint)]).expect("consistent");
            assert!((settings.footprint().0 as f64 / asked.0 as f64 - 1.0).abs() < 0.01, "{footprint}");
        }
    }

    #[test]
    fn at_full_scale_the_numbers_are_the_papers() {
        let settings = settings(&[("footprint", "267G")]).expect("consistent");
        assert!((settings.keys as f64 / 8_935_378.0 - 1.0).abs() < 0.01, "{}", settings.keys);
        assert_eq!(settings.buckets, 1 << 22);
    }

    #[test]
    fn the_shift_sends_every_request_to_one_half_and_then_to_the_other() {
        let settings = settings(&[("shift", "0.5"), ("operations", "100")]).expect("consistent");
        let half = settings.keys / 2;
        assert!((0..settings.keys).all(|key| settings.redirect(key, 49) < half));
        assert!((0..settings.keys).all(|key| (half..2 * half).contains(&settings.redirect(key, 50))));
    }

    #[test]
    fn absurd_combinations_are_refused_in_one_line() {
        let error = settings(&[("footprint", "1T"), ("overcommit", "100")]).expect("fits");
        assert!(error.keys > 0);
        let few = settings(&[("footprint", "32M"), ("overcommit", "0.01")]);
        assert!(few.is_ok_and(|settings| settings.keys >= 2));
    }
}
