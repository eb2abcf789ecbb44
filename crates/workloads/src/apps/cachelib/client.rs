//! The client: the benchmark's own memory, from which each request comes.
//!
//! A request takes a random entry of a long array, which leads to a request object, to the key's string, to
//! its characters (on the heap if there are more than 15) and, for an insertion, to the value's size. Keys
//! are numbered by popularity. The array's contents are not stored: a uniform entry and an independent key
//! touch the same pages equally often.

use super::item::Key;
use crate::{AliasTable, Memory, Permutation, Random, Token};

const ENTRY: u64 = 4;
/// Bytes of a request object: key, size range, operation, time to live, identifier, a map of features.
const REQUEST: u64 = 128;
/// Bytes of a string object; shorter keys lie inside.
const STRING: u64 = 32;
/// The longest key that lies inside its string object.
const INLINE_KEY: u64 = 15;
/// Bytes of the heap block of a longer key: up to 64 characters, the terminator and the heap's own header.
const KEY_BLOCK: u64 = 80;
/// Bytes of a key's list of sizes: the vector and its heap block.
const SIZES: u64 = 24 + 32;
/// Instructions to hash a key.
const HASH_INSTRUCTIONS: u32 = 100;

#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub key: Key,
    /// Name of the value that the key's characters came with.
    pub token: Token,
}

pub(super) struct Client {
    popularity: AliasTable,
    values: Vec<u32>,
    entries: u64,
    heap_order: Permutation,
    pool: u64,
    requests: u64,
    strings: u64,
    characters: u64,
    sizes: u64,
}

impl Client {
    /// Returns bytes that `keys` keys occupy in the client, the request array aside.
    pub(super) fn bytes(keys: u64) -> u64 {
        keys * (REQUEST + STRING + KEY_BLOCK + SIZES)
    }

    pub(super) fn new(
        weights: &[f64],
        values: Vec<u32>,
        pool: u64,
        seed: u64,
        memory: &mut dyn Memory,
    ) -> Self {
        let keys = weights.len() as u64;
        let mut made = |bytes: u64, context| {
            let start = memory.allocate(bytes, context);
            memory.store_range(start, bytes, Token::NONE);
            start
        };
        Self {
            popularity: AliasTable::new(weights),
            values,
            entries: pool / ENTRY,
            heap_order: Permutation::new(keys, seed ^ 1),
            strings: made(keys * STRING, "client keys"),
            characters: made(keys * KEY_BLOCK, "client keys"),
            sizes: made(keys * SIZES, "client sizes"),
            requests: made(keys * REQUEST, "client requests"),
            pool: made(pool, "client request array"),
        }
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        u64::from(self.popularity.draw(random))
    }

    pub(super) fn draw_entry(&self, random: &mut Random) -> u64 {
        random.below(self.entries)
    }

    pub(super) fn next(&self, id: u64, entry: u64, memory: &mut dyn Memory) -> Request {
        let entry = memory.load(self.pool + entry * ENTRY, Token::NONE);
        let request = memory.load(self.requests + id * REQUEST, entry);
        memory.store(self.requests + id * REQUEST, entry);
        self.read_key(id, request, memory)
    }

    /// Reads and hashes a key whose request object has been read.
    pub(super) fn read_key(&self, id: u64, after: Token, memory: &mut dyn Memory) -> Request {
        let key = Key::new(id);
        let mut token = memory.load(self.strings + id * STRING, after);
        if key.bytes > INLINE_KEY {
            token = memory.load_range(self.characters + self.heap_order.at(id) * KEY_BLOCK, key.bytes, token);
        }
        memory.compute(HASH_INSTRUCTIONS);
        Request { key, token }
    }

    pub(super) fn value(&self, id: u64, after: Token, memory: &mut dyn Memory) -> u64 {
        memory.load_range(self.sizes + id * SIZES, SIZES, after);
        u64::from(self.values[id as usize])
    }
}
