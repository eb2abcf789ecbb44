//! The hash table: buckets of compressed pointers, and chains through the items' headers.

use super::item::{HEADER, Item, Key, NIL};
use crate::{Memory, Token};

/// Bytes of a bucket: a compressed pointer.
const BUCKET: u64 = 4;
const LOCK: u64 = 8;
/// Buckets that share a lock (CacheLib's benchmark: 2^22 buckets, 2^20 locks).
const BUCKETS_PER_LOCK: u64 = 4;

pub(super) struct Index {
    buckets: Vec<u32>,
    table: u64,
    locks: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Item, or [`NIL`] if the key is absent.
    pub item: u32,
    /// Item before it in its chain, or [`NIL`] for the first.
    before: u32,
    /// Name of the value that the walk's last address came with.
    pub token: Token,
}

impl Index {
    pub(super) fn bytes(buckets: u64) -> u64 {
        buckets * BUCKET + buckets.div_ceil(BUCKETS_PER_LOCK) * LOCK
    }

    /// Creates an empty table of `buckets`, a power of two.
    pub(super) fn new(buckets: u64, memory: &mut dyn Memory) -> Self {
        let table = memory.allocate(buckets * BUCKET, "hash buckets");
        let locks = memory.allocate(buckets.div_ceil(BUCKETS_PER_LOCK) * LOCK, "hash locks");
        memory.store_range(table, buckets * BUCKET, Token::NONE);
        Self { buckets: vec![NIL; buckets as usize], table, locks }
    }

    fn bucket(&self, key: Key) -> usize {
        (key.hash & (self.buckets.len() as u64 - 1)) as usize
    }

    /// Locks the bucket and walks its chain, comparing lengths and, where they agree, the keys.
    pub(super) fn find(&self, items: &[Item], key: Key, memory: &mut dyn Memory, after: Token) -> Found {
        let bucket = self.bucket(key);
        let lock = self.locks + bucket as u64 / BUCKETS_PER_LOCK * LOCK;
        memory.load(lock, after);
        memory.store(lock, after);
        let mut token = memory.load(self.table + bucket as u64 * BUCKET, after);
        let (mut before, mut item) = (NIL, self.buckets[bucket]);
        while let Some(candidate) = items.get(item as usize) {
            token = memory.load_range(candidate.address, HEADER, token);
            if candidate.key.bytes == key.bytes {
                memory.load_range(candidate.address + HEADER, key.bytes, token);
            }
            if candidate.key.id == key.id {
                break;
            }
            (before, item) = (item, candidate.next);
        }
        Found { item, before, token }
    }

    pub(super) fn read_ahead(&self, items: &[Item], keys: &[Key]) {
        for key in keys {
            let mut item = self.buckets[self.bucket(*key)];
            while let Some(candidate) = items.get(item as usize).filter(|found| found.key.id != key.id) {
                item = candidate.next;
            }
        }
    }

    pub(super) fn insert(&mut self, items: &mut [Item], item: u32, memory: &mut dyn Memory) {
        let bucket = self.bucket(items[item as usize].key);
        items[item as usize].next = self.buckets[bucket];
        memory.store(items[item as usize].address, Token::NONE);
        self.buckets[bucket] = item;
        memory.store(self.table + bucket as u64 * BUCKET, Token::NONE);
    }

    pub(super) fn remove(&mut self, items: &mut [Item], item: u32, memory: &mut dyn Memory, after: Token) {
        let (key, next) = (items[item as usize].key, items[item as usize].next);
        let found = self.find(items, key, memory, after);
        match items.get_mut(found.before as usize) {
            Some(before) => {
                before.next = next;
                memory.store(before.address, found.token);
            }
            None => {
                let bucket = self.bucket(key);
                self.buckets[bucket] = next;
                memory.store(self.table + bucket as u64 * BUCKET, Token::NONE);
            }
        }
    }
}
