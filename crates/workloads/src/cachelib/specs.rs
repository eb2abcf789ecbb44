//! Defines the parameters of the CacheLib workloads: one table, and what differs from workload to workload.

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Preset, Spec};

use crate::registry::{PAPER_PRESET, TEST_PRESET};

/// A default and its source.
type Sourced = (&'static str, &'static str);

/// What differs between the workloads.
struct Defaults {
    operations: Sourced,
    popularity: &'static str,
    sigma: Sourced,
    overcommit: Sourced,
    lone_gets: Sourced,
    refresh: Sourced,
    chain: Sourced,
    instructions: Sourced,
}

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

const fn table(own: &Defaults) -> [Spec; 15] {
    [
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
            own.operations.0,
            "requests",
            own.operations.1,
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
            own.popularity,
            "How often each key is asked for: CacheLib's table, or normal over the range of keys.",
        ),
        spec(
            "sigma",
            Kind::Number(0.001, 100.0),
            own.sigma.0,
            "of the key range",
            own.sigma.1,
            "Standard deviation of the hybridtier popularity.",
        ),
        spec(
            "overcommit",
            Kind::Number(0.01, 100.0),
            own.overcommit.0,
            "of the cache",
            own.overcommit.1,
            "Bytes of all keys' values.",
        ),
        spec(
            "lone_gets",
            Kind::Number(0.0, 1.0),
            own.lone_gets.0,
            "of requests",
            own.lone_gets.1,
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
            own.refresh.0,
            "requests an item",
            own.refresh.1,
            "An item moves to the head of its LRU list at most once in this many requests for each cached item.",
        ),
        spec(
            "chain",
            Kind::Number(0.1, 64.0),
            own.chain.0,
            "items a bucket",
            own.chain.1,
            "Items in a hash bucket, about; buckets are a power of two.",
        ),
        spec(
            "instructions",
            Kind::Count(0, 1_000_000),
            own.instructions.0,
            "",
            own.instructions.1,
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
        spec(
            "change_at",
            Kind::Number(0.0, 1.0),
            "0",
            "of the run",
            "ours: off; HybridTier 2.3.2 (Fig. 4) changes the hot set at 1800 of 3600 s",
            "From then on other keys are hot; 0 switches it off.",
        ),
        spec(
            "change_share",
            Kind::Number(0.0, 1.0),
            "0.667",
            "of hot keys",
            "HybridTier 2.3.2: two thirds of previously hot data are no longer hot",
            "Keys that lose their popularity to others at `change_at`.",
        ),
    ]
}

/// What can be set for `cachelib-cdn`.
pub(crate) const CDN_SPECS: &[Spec] = &table(&Defaults {
    popularity: "CacheLib hit_ratio/cdn/pop.json; HybridTier's artifact",
    operations: (
        "1M",
        "ours: about 240 requests a key, 168 million misses; FreqTier's hour at 0.87 Mop/s makes about 350",
    ),
    sigma: ("0.138", "HybridTier's artifact: 2,000,000 of 14.5 million keys"),
    overcommit: (
        "1.07",
        "CacheLib's 8,935,378 keys of 33,024 B over FreqTier's 256 GiB; HybridTier's artifact has 2.28",
    ),
    lone_gets: ("0.00884", "CacheLib hit_ratio/cdn/config.json"),
    refresh: ("6.8", "CacheLib lruRefreshSec 60 s, at 0.87 Mop/s (FreqTier Table II) over 7.7 million items"),
    chain: ("2", "CacheLib cachebench htBucketPower 22 under about 8 million items"),
    instructions: (
        "4000",
        "ours: a median get of 3.6 us with all memory local (FreqTier Table II) less its misses",
    ),
});

/// What can be set for `cachelib-social`.
pub(crate) const SOCIAL_SPECS: &[Spec] = &table(&Defaults {
    popularity: "CacheLib hit_ratio/graph_cache_leader_assocs/pop.json; HybridTier's artifact",
    operations: ("4M", "ours: about 150 requests a key; in FreqTier's hour at 5.9 Mop/s it is about 330"),
    sigma: ("0.1", "HybridTier's artifact: 2,000,000 of 20 million keys"),
    overcommit: (
        "0.338",
        "CacheLib's 65,345,659 keys of 1,423 B over FreqTier's 256 GiB; HybridTier's artifact has 0.136",
    ),
    lone_gets: ("0.11589", "CacheLib hit_ratio/graph_cache_leader_assocs/config.json"),
    refresh: (
        "1.7",
        "CacheLib lruRefreshSec 60 s, at 5.6 Mop/s (FreqTier Table III) over 193 million items of 1,423 B",
    ),
    chain: ("0.55", "HybridTier's artifact: htBucketPower 28 for 147 million items of 1,423 B"),
    instructions: (
        "800",
        "ours: a median get of 0.745 us with all memory local (FreqTier Table III), in the proportion of cachelib-cdn's",
    ),
});

/// The published shape of `cachelib-cdn` that is not upstream's.
pub(crate) const CDN_PRESETS: &[Preset] = &[
    Preset {
        name: TEST_PRESET,
        source: "ours",
        help: "Small enough for tests.",
        values: &[("footprint", "32M"), ("operations", "20k")],
    },
    Preset {
        name: "hybridtier",
        source: "HybridTier's artifact: 14.5 million keys, a cache of 200,000 MiB",
        help: "Popularity normal over the range of keys, and more keys than fit.",
        values: &[("popularity", "hybridtier"), ("sigma", "0.138"), ("overcommit", "2.28")],
    },
    PAPER,
];

/// The published shape of `cachelib-social` that is not upstream's.
pub(crate) const SOCIAL_PRESETS: &[Preset] = &[
    Preset {
        name: TEST_PRESET,
        source: "ours",
        help: "Small enough for tests.",
        values: &[("footprint", "32M"), ("operations", "200k")],
    },
    Preset {
        name: "hybridtier",
        source: "HybridTier's artifact: 20 million keys, a cache of 200,000 MiB",
        help: "Popularity normal over the range of keys, and fewer keys, which lone gets outnumber.",
        values: &[("popularity", "hybridtier"), ("sigma", "0.1"), ("overcommit", "0.136")],
    },
    PAPER,
];

/// The papers' footprint; the operations follow it, as at the default scale.
const PAPER: Preset = Preset {
    name: PAPER_PRESET,
    source: "FreqTier Table I: 267 GB",
    help: "The footprint of the paper.",
    values: &[("footprint", "267G")],
};
