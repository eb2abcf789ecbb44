//! An item of the cache and its key.

use super::sizes;
use crate::random::mix;

/// Bytes before the key: reference count and flags, hooks of hash chain and LRU list with the time of the
/// last refresh, creation and expiry times, sizes of key and value (CacheLib: 31 bytes, rounded here).
pub(super) const HEADER: u64 = 32;

pub(super) const NIL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Number that stands for its characters.
    pub id: u64,
    pub hash: u64,
    pub bytes: u64,
}

impl Key {
    pub(super) fn new(id: u64) -> Self {
        let hash = mix(id ^ 0x5bd1_e995);
        Self { id, hash, bytes: sizes::key_bytes(hash) }
    }
}

/// An item: a chunk of an allocation class with header, key and value. Its bytes exist only as addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub key: Key,
    pub address: u64,
    pub value: u64,
    pub class: u8,
    /// When it last moved to the head of its LRU list, in requests.
    pub refreshed: u64,
    pub next: u32,
    pub newer: u32,
    pub older: u32,
}

impl Item {
    pub(super) fn bytes(key: Key, value: u64) -> u64 {
        HEADER + key.bytes + value
    }
}
