//! The store: a hash table with buckets of a line, and items in segments of a log.
//!
//! A bucket holds five item pointers with hashes and a lock; further items are chained behind the fifth.

use crate::{Heap, Memory, NULL, Token, WORD, mix};

/// Items that a bucket points to.
const DIRECT: u64 = 5;
pub(super) const BUCKET: u64 = 64;
/// Bytes of a log segment (FlexKVS' default).
pub(super) const SEGMENT: u64 = 2 << 20;
/// Bytes of an item before its key: chain, hash, lengths, references, flags.
pub(super) const HEADER: u64 = 24;
/// Bytes of a key (kvsbench's default).
pub(super) const KEY: u64 = 32;
/// Instructions of a request beside loads: hash, parsing, response.
const REQUEST: u32 = 300;

const HASHES: u64 = DIRECT * WORD;
const HASH: u64 = 8;
const REFERENCES: u64 = 16;

pub(super) struct Store {
    heap: Heap,
    table: u64,
    buckets: u64,
    value: u64,
    segment: u64,
    /// Bytes of the segment that are in use.
    filled: u64,
}

fn hash_of(key: u64) -> u64 {
    mix(key) & u64::from(u32::MAX)
}

impl Store {
    pub(super) fn new(buckets: u64, value: u64, bytes: u64, memory: &mut dyn Memory) -> Self {
        let mut heap = Heap::new(buckets * BUCKET + bytes + 2 * SEGMENT);
        let table = heap.allocate(memory, buckets * BUCKET, "flexkvs hash table");
        memory.store_range(table, buckets * BUCKET, Token::NONE);
        Self { heap, table, buckets, value, segment: NULL, filled: SEGMENT }
    }

    fn item(&self) -> u64 {
        HEADER + KEY + self.value
    }

    fn append(&mut self, memory: &mut dyn Memory) -> u64 {
        if self.filled + self.item() > SEGMENT {
            self.segment = self.heap.allocate(memory, SEGMENT, "flexkvs log segment");
            self.filled = 0;
        }
        self.filled += self.item();
        self.segment + self.filled - self.item()
    }

    fn bucket(&self, key: u64) -> u64 {
        self.table + hash_of(key) % self.buckets * BUCKET
    }

    /// Returns the hash beside a bucket's pointer; two share a word.
    fn hash_beside(&self, bucket: u64, place: u64) -> u64 {
        self.heap.word(bucket + HASHES + place / 2 * WORD) >> (place % 2 * 32) & u64::from(u32::MAX)
    }

    /// Adds a new key whose value consists of words of `value`.
    pub(super) fn put(&mut self, key: u64, value: u64, memory: &mut dyn Memory) {
        memory.compute(REQUEST);
        let item = self.append(memory);
        self.heap.set_word(item + HASH, hash_of(key));
        self.heap.words_mut(item + HEADER, KEY / WORD).fill(key);
        self.heap.words_mut(item + HEADER + KEY, self.value / WORD).fill(value);
        memory.store_range(item, self.item(), Token::NONE);
        let bucket = self.bucket(key);
        memory.load(bucket, Token::NONE);
        // The last free place, or else the fifth, whose items then form a chain.
        let free = (0..DIRECT).rev().find(|&place| self.heap.word(bucket + place * WORD) == NULL);
        let place = free.unwrap_or(DIRECT - 1);
        let next = self.heap.word(bucket + place * WORD);
        self.heap.set_word(item, next);
        let (hashes, shift) = (bucket + HASHES + place / 2 * WORD, place % 2 * 32);
        let others = self.heap.word(hashes) & !(u64::from(u32::MAX) << shift);
        self.heap.set_word(hashes, others | hash_of(key) << shift);
        self.heap.store(memory, bucket + place * WORD, item, Token::NONE);
    }

    /// Reads ahead, natively, what getting these keys will, but for items beyond a bucket's own.
    pub(super) fn read_ahead(&self, keys: &[u64], memory: &dyn Memory) {
        if !memory.reads_ahead() {
            return;
        }
        let item = |&key: &u64| {
            let bucket = self.bucket(key);
            let same = |place: &u64| self.hash_beside(bucket, *place) == hash_of(key);
            let item = (0..DIRECT).find(same).map_or(NULL, |place| self.heap.word(bucket + place * WORD));
            Some(item).filter(|&item| item != NULL)
        };
        let items: Vec<u64> = keys.iter().filter_map(item).collect();
        items.iter().for_each(|&item| self.heap.read_ahead(item, self.item()));
    }

    /// Returns the item of `key`, and the name of what its key comparison read.
    fn find(&self, key: u64, memory: &mut dyn Memory) -> Option<(u64, Token)> {
        let bucket = self.bucket(key);
        let token = memory.load(bucket, Token::NONE);
        memory.store(bucket, token);
        let matches = |item: u64, token: Token, memory: &mut dyn Memory| {
            let token = memory.load_range(item, HEADER + KEY, token);
            (self.heap.word(item + HEADER) == key).then_some((item, token))
        };
        for place in 0..DIRECT {
            let item = self.heap.word(bucket + place * WORD);
            let same = item != NULL && self.hash_beside(bucket, place) == hash_of(key);
            if let Some(found) = same.then(|| matches(item, token, memory)).flatten() {
                return Some(found);
            }
        }
        let (mut item, mut token) = (self.heap.word(bucket + (DIRECT - 1) * WORD), token);
        while item != NULL {
            let next;
            (next, token) = self.heap.load(memory, item, token);
            let same = self.heap.word(item + HASH) == hash_of(key);
            if let Some(found) = same.then(|| matches(item, token, memory)).flatten() {
                return Some(found);
            }
            item = next;
        }
        None
    }

    /// Copies the value of `key` to the response, which stays in the cache; returns the sum of its words.
    pub(super) fn get(&mut self, key: u64, memory: &mut dyn Memory) -> Option<u64> {
        memory.compute(REQUEST);
        let (item, token) = self.find(key, memory)?;
        let references = self.heap.word(item + REFERENCES);
        self.heap.store(memory, item + REFERENCES, references, token);
        memory.load_range(item + HEADER + KEY, self.value, token);
        let words = self.heap.words(item + HEADER + KEY, self.value / WORD);
        Some(words.iter().fold(0, |sum, &word| sum.wrapping_add(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn every_key_is_found_with_its_value_even_in_overfull_buckets() {
        let mut memory = CountingMemory::default();
        // Two buckets for a thousand keys: nearly all of them are in chains.
        for buckets in [2, 512] {
            let mut store = Store::new(buckets, 64, 1 << 20, &mut memory);
            (0..1000).for_each(|key| store.put(key, key + 5, &mut memory));
            assert!((0..1000).all(|key| store.get(key, &mut memory) == Some(8 * (key + 5))));
            assert_eq!(store.get(1000, &mut memory), None);
        }
    }

    #[test]
    fn items_follow_each_other_in_the_log() {
        let mut memory = CountingMemory::default();
        let mut store = Store::new(4096, 1024, 8 << 20, &mut memory);
        (0..4000).for_each(|key| store.put(key, key, &mut memory));
        let segments = memory.allocations().iter().filter(|found| found.bytes == SEGMENT).count() as u64;
        assert_eq!(segments, 4000u64.div_ceil(SEGMENT / (HEADER + KEY + 1024)));
    }
}
