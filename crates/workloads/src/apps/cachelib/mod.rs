//! `cachelib-cdn` and `cachelib-social`: a look-aside key-value cache in CacheLib's shape. They differ in the
//! tables of `shape` and the defaults of `settings`.
//!
//! Popularity scales by share of ranks, index and client by bytes for each key, slabs by number where
//! possible, the refresh time by requests for each item, and [`crate::Workload::cache`] scales the last-level
//! cache, so that objects relate to pages as in the original.

mod cache;
mod client;
mod index;
mod item;
mod lru;
mod popularity;
mod settings;
mod shape;
mod shift;
mod sizes;
mod sizing;
mod slabs;

use isotherm_core::Bytes;
use isotherm_core::parameters::Parameters;

use self::cache::Cache;
use self::client::Client;
use self::item::Key;
use self::settings::{CDN_PRESETS, CDN_SPECS, SOCIAL_PRESETS, SOCIAL_SPECS, Settings};
use self::shape::{CDN, SOCIAL, Shape};
use self::shift::Shift;
use self::sizing::Sizing;
use crate::{Built, Memory, ObjectSize, Permutation, Program, Random, Token, Workload, mix};

struct CacheLib {
    sizing: Sizing,
    seed: u64,
}

fn build(parameters: &Parameters, seed: u64, shape: &'static Shape) -> Built {
    Ok(Box::new(CacheLib { sizing: Sizing::new(Settings::read(parameters), shape)?, seed }))
}

pub(crate) static CDN_WORKLOAD: Workload = Workload {
    name: "cachelib-cdn",
    title: "a key-value cache with the content-delivery distributions of CacheLib's benchmark",
    source: "CacheLib (cachebench hit_ratio/cdn), as run in FreqTier VI-C and HybridTier 6.1",
    object_size: ObjectSize::Mixed,
    objects: "33 KB mean, 13 KB median",
    hot_set_changes: false,
    hot_set: "stable; moves once if set (FreqTier VII-D, HybridTier 2.3.2)",
    accesses: 178_224_206,
    specs: CDN_SPECS,
    presets: CDN_PRESETS,
    reference_footprint: Some(Bytes(267_000_000_000)),
    reference_cache: Some(crate::XEON_4314),
    peak: 0.15,
    builder: |parameters, seed| build(parameters, seed, &CDN),
};

pub(crate) static SOCIAL_WORKLOAD: Workload = Workload {
    name: "cachelib-social",
    title: "a key-value cache with the social-graph distributions of CacheLib's benchmark",
    source: "CacheLib (cachebench hit_ratio/graph_cache_leader_assocs), as run in FreqTier VI-C and HybridTier 6.1",
    object_size: ObjectSize::Small,
    objects: "1.4 KB mean, 63 B median",
    hot_set_changes: false,
    hot_set: "stable; moves once if set (HybridTier 2.3.2)",
    accesses: 73_235_209,
    specs: SOCIAL_SPECS,
    presets: SOCIAL_PRESETS,
    reference_footprint: Some(Bytes(267_000_000_000)),
    reference_cache: Some(crate::XEON_4314),
    peak: 0.15,
    builder: |parameters, seed| build(parameters, seed, &SOCIAL),
};

/// Requests that are drawn at once.
const AHEAD: u64 = 16;

/// A request to come: its key, its place in the request array, whether it asks for a fresh key instead.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    id: u64,
    entry: u64,
    lone: bool,
}

struct Run<'a> {
    sizing: &'a Sizing,
    client: Client,
    cache: Cache,
    shift: Shift,
    random: Random,
    drawn: Vec<Drawn>,
    /// Keys from this number on are asked for once.
    next_lone_key: u64,
}

impl Run<'_> {
    fn populate(&mut self, seed: u64, memory: &mut dyn Memory) {
        let order = Permutation::new(self.sizing.keys, mix(seed ^ 2));
        for index in 0..self.sizing.keys {
            if memory.finished() {
                return;
            }
            if index.is_multiple_of(AHEAD) {
                let batch = index..self.sizing.keys.min(index + AHEAD);
                let keys: Vec<Key> = batch.map(|index| Key::new(order.at(index))).collect();
                self.cache.read_ahead(&keys, memory);
            }
            memory.thread((index % self.sizing.settings.threads) as u16);
            let id = order.at(index);
            let request = self.client.read_key(id, Token::NONE, memory);
            self.insert(id, request.key, 0, memory, request.token);
        }
    }

    fn insert(&mut self, id: u64, key: Key, now: u64, memory: &mut dyn Memory, after: Token) {
        let value = self.client.value(id, after, memory);
        self.cache.set(key, value, now, memory, after);
    }

    fn draw(&mut self, now: u64) -> Drawn {
        let id = self.shift.redirect(self.client.draw(&mut self.random), now);
        let entry = self.client.draw_entry(&mut self.random);
        Drawn { id, entry, lone: self.random.chance(self.sizing.lone_gets) }
    }

    /// Draws the requests from `now` on and reads ahead what they will ask for.
    fn draw_ahead(&mut self, now: u64, memory: &dyn Memory) {
        self.drawn.clear();
        for now in now..now + AHEAD {
            let drawn = self.draw(now);
            self.drawn.push(drawn);
        }
        let keys: Vec<Key> = self.drawn.iter().map(|drawn| Key::new(drawn.id)).collect();
        self.cache.read_ahead(&keys, memory);
    }

    fn serve(&mut self, now: u64, memory: &mut dyn Memory) {
        if now.is_multiple_of(AHEAD) {
            self.draw_ahead(now, memory);
        }
        let Drawn { id, entry, lone } = self.drawn[(now % AHEAD) as usize];
        memory.compute(self.sizing.settings.instructions / 2);
        let mut request = self.client.next(id, entry, memory);
        if lone {
            request.key = Key::new(self.next_lone_key);
            self.next_lone_key += 1;
        }
        if !self.cache.get(request.key, now, self.sizing.settings.touch_value, memory, request.token) {
            self.insert(id, request.key, now, memory, request.token);
        }
        memory.compute(self.sizing.settings.instructions / 2);
    }
}

impl Program for CacheLib {
    fn footprint(&self) -> Bytes {
        self.sizing.footprint()
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let sizing = &self.sizing;
        memory.thread(0);
        let values = sizes::values(sizing.shape.values, sizing.keys, self.seed);
        let client = Client::new(&sizing.weights(), values, sizing.request_array, self.seed, memory);
        let cache = Cache::new(sizing.cache, sizing.buckets, sizing.refresh, memory);
        let random = Random::new(self.seed);
        let shift = sizing.shift(self.seed);
        let drawn = Vec::new();
        let mut run = Run { sizing, client, cache, shift, random, drawn, next_lone_key: sizing.keys };
        if sizing.settings.populate {
            run.populate(self.seed, memory);
        }
        for now in 0..sizing.settings.operations {
            if memory.finished() {
                return;
            }
            memory.thread((now % sizing.settings.threads) as u16);
            run.serve(now, memory);
        }
    }
}
