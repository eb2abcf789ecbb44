//! The parameters of the CacheLib workloads: one table, and the defaults in which the second differs.

use isotherm_core::parameters::{Preset, Spec};
use isotherm_core::{Bytes, choices, parameters};

use crate::presets::{paper, test};

choices! {
    pub(super) enum Popularity {
        Upstream = "upstream",
        HybridTier = "hybridtier",
    }
}

parameters! {
    /// Parameters of both workloads, with the defaults of `cachelib-cdn`.
    pub(super) struct Settings {
        /// Memory of cache, index and client together.
        footprint: Bytes = size(32 << 20, 1 << 40, "128M").source("ours: a two-thousandth of FreqTier's 267 GB"),
        /// Requests after the warm-up, over all threads.
        operations: u64 = count(1, 1 << 40, "1M").unit("requests")
            .source("ours: about 240 requests a key, 168 million misses; FreqTier's hour at 0.87 Mop/s makes about 350"),
        /// Threads; they take turns request by request.
        threads: u64 = count(1, 1024, "16").source("FreqTier VI-C"),
        /// How often each key is asked for: CacheLib's table, or normal over the range of keys.
        popularity: Popularity = choice("upstream")
            .source("CacheLib hit_ratio/cdn/pop.json; HybridTier's artifact"),
        /// Standard deviation of the hybridtier popularity.
        sigma: f64 = number(0.001, 100.0, "0.138").unit("of the key range")
            .source("HybridTier's artifact: 2,000,000 of 14.5 million keys"),
        /// Bytes of all keys' values.
        overcommit: f64 = number(0.01, 100.0, "1.07").unit("of the cache")
            .source("CacheLib's 8,935,378 keys of 33,024 B over FreqTier's 256 GiB; HybridTier's artifact has 2.28"),
        /// Gets of a key that nobody asked for before: they miss and insert it.
        lone_gets: f64 = number(0.0, 1.0, "0.00884").unit("of requests")
            .source("CacheLib hit_ratio/cdn/config.json"),
        /// Whether a hit reads the value too.
        touch_value: bool = flag("false").source("CacheLib cachebench touchValue"),
        /// Insert every key once, in random order, before the first request.
        populate: bool = flag("true").source("FreqTier VII-D: first, all items are inserted"),
        /// An item moves to the head of its LRU list at most once in this many requests for each cached item.
        refresh: f64 = number(0.0, 1e6, "6.8").unit("requests an item")
            .source("CacheLib lruRefreshSec 60 s, at 0.87 Mop/s (FreqTier Table II) over 7.7 million items"),
        /// Items in a hash bucket, about; buckets are a power of two.
        chain: f64 = number(0.1, 64.0, "2").unit("items a bucket")
            .source("CacheLib cachebench htBucketPower 22 under about 8 million items"),
        /// Instructions of a request that touch no memory of interest.
        instructions: u32 = count(0, 1_000_000, "83000")
            .source("fitted: 1.015 Mop/s of 16 threads with all memory local (FreqTier Table II); `make pace`"),
        /// Until then all requests go to the first half of keys, from then on to the second; 0 switches it
        /// off.
        shift: f64 = number(0.0, 1.0, "0").unit("of the run")
            .source("FreqTier VII-D, Fig. 11 (with all items cached: overcommit=0.7)"),
        /// From then on other keys are hot; 0 switches it off.
        change_at: f64 = number(0.0, 1.0, "0").unit("of the run")
            .source("ours: off; HybridTier 2.3.2 (Fig. 4) changes the hot set at 1800 of 3600 s"),
        /// Keys that lose their popularity to others at `change_at`.
        change_share: f64 = number(0.0, 1.0, "0.667").unit("of hot keys")
            .source("HybridTier 2.3.2: two thirds of previously hot data are no longer hot"),
    }
}

pub(super) const CDN_SPECS: &[Spec] = Settings::SPECS;

pub(super) const SOCIAL_SPECS: &[Spec] = &with_defaults::<{ CDN_SPECS.len() }>(&[
    ("operations", "4M", "ours: about 150 requests a key; in FreqTier's hour at 5.9 Mop/s it is about 330"),
    (
        "popularity",
        "upstream",
        "CacheLib hit_ratio/graph_cache_leader_assocs/pop.json; HybridTier's artifact",
    ),
    ("sigma", "0.1", "HybridTier's artifact: 2,000,000 of 20 million keys"),
    (
        "overcommit",
        "0.338",
        "CacheLib's 65,345,659 keys of 1,423 B over FreqTier's 256 GiB; HybridTier's artifact has 0.136",
    ),
    ("lone_gets", "0.11589", "CacheLib hit_ratio/graph_cache_leader_assocs/config.json"),
    (
        "refresh",
        "1.7",
        "CacheLib lruRefreshSec 60 s, at 5.6 Mop/s (FreqTier Table III) over 193 million items of 1,423 B",
    ),
    ("chain", "0.55", "HybridTier's artifact: htBucketPower 28 for 147 million items of 1,423 B"),
    (
        "instructions",
        "14100",
        "fitted: 5.9 Mop/s of 16 threads with all memory local (FreqTier Table III); `make pace`",
    ),
]);

/// Returns the table with other defaults and their sources, which name parameters in the table's order.
const fn with_defaults<const N: usize>(own: &[(&str, &'static str, &'static str)]) -> [Spec; N] {
    let mut specs = [Settings::SPECS[0]; N];
    let (mut index, mut next) = (0, 0);
    while index < N {
        specs[index] = Settings::SPECS[index];
        if next < own.len() && same(own[next].0, specs[index].name) {
            (_, specs[index].default, specs[index].source) = own[next];
            next += 1;
        }
        index += 1;
    }
    assert!(next == own.len(), "a default names no parameter, or not in the table's order");
    specs
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

pub(super) const CDN_PRESETS: &[Preset] = &[
    test(&[("footprint", "32M"), ("operations", "20k")]),
    Preset {
        name: "hybridtier",
        source: "HybridTier's artifact: 14.5 million keys, a cache of 200,000 MiB",
        help: "Popularity normal over the range of keys, and more keys than fit.",
        values: &[("popularity", "hybridtier"), ("sigma", "0.138"), ("overcommit", "2.28")],
    },
    PAPER,
];

pub(super) const SOCIAL_PRESETS: &[Preset] = &[
    test(&[("footprint", "32M"), ("operations", "200k")]),
    Preset {
        name: "hybridtier",
        source: "HybridTier's artifact: 20 million keys, a cache of 200,000 MiB",
        help: "Popularity normal over the range of keys, and fewer keys, which lone gets outnumber.",
        values: &[("popularity", "hybridtier"), ("sigma", "0.1"), ("overcommit", "0.136")],
    },
    PAPER,
];

/// The papers' footprint; the operations follow it, as at the default scale.
const PAPER: Preset =
    paper("FreqTier Table I: 267 GB", "The footprint of the paper.", &[("footprint", "267G")]);
