//! The cache itself: lookups, insertions and evictions over index, lists and slabs.

use super::index::Index;
use super::item::{HEADER, Item, Key, NIL};
use super::lru::Lists;
use super::slabs::Slabs;
use crate::{Memory, Token};

pub(super) struct Cache {
    items: Vec<Item>,
    index: Index,
    lists: Lists,
    slabs: Slabs,
}

impl Cache {
    /// Creates an empty cache of `bytes`. A hit moves its item in the LRU list after `refresh` requests.
    pub(super) fn new(bytes: u64, buckets: u64, refresh: u64, memory: &mut dyn Memory) -> Self {
        let index = Index::new(buckets, memory);
        let slabs = Slabs::new(memory.allocate(bytes, "cache slabs"), bytes);
        let lists = Lists::new(slabs.classes.len(), refresh, memory);
        Self { items: Vec::new(), index, lists, slabs }
    }

    pub(super) fn read_ahead(&self, keys: &[Key], memory: &dyn Memory) {
        if memory.reads_ahead() {
            self.index.read_ahead(&self.items, keys);
        }
    }

    /// Looks up a key, which depends on `after`; returns whether it is present.
    pub(super) fn get(
        &mut self,
        key: Key,
        now: u64,
        touch_value: bool,
        memory: &mut dyn Memory,
        after: Token,
    ) -> bool {
        let found = self.index.find(&self.items, key, memory, after);
        let Some(&item) = self.items.get(found.item as usize) else { return false };
        // The handle takes a reference and drops it at the end of the request.
        memory.store(item.address, found.token);
        let class = &mut self.slabs.classes[usize::from(item.class)];
        self.lists.touch(class, &mut self.items, found.item, now, memory, found.token);
        if touch_value {
            memory.load_range(item.address + HEADER + key.bytes, item.value, found.token);
        }
        memory.store(item.address, found.token);
        true
    }

    /// Inserts a new key and writes its value, evicting if memory is short; returns whether there was room.
    pub(super) fn set(
        &mut self,
        key: Key,
        value: u64,
        now: u64,
        memory: &mut dyn Memory,
        after: Token,
    ) -> bool {
        let bytes = Item::bytes(key, value);
        let Some(class) = self.slabs.class_of(bytes) else { return false };
        let Some((slot, address)) = self.room(class, memory) else { return false };
        let item = Item {
            key,
            address,
            value,
            class: class as u8,
            refreshed: now,
            next: NIL,
            newer: NIL,
            older: NIL,
        };
        match self.items.get_mut(slot as usize) {
            Some(place) => *place = item,
            None => self.items.push(item),
        }
        memory.store_range(address, bytes, Token::NONE);
        self.lists.push(&mut self.slabs.classes[class], &mut self.items, slot, memory);
        // insertOrReplace looks for an older version first.
        self.index.find(&self.items, key, memory, after);
        self.index.insert(&mut self.items, slot, memory);
        true
    }

    /// Returns a chunk of a class and the slot of its item: fresh, or the evicted least recent one's.
    fn room(&mut self, class: usize, memory: &mut dyn Memory) -> Option<(u32, u64)> {
        if let Some(address) = self.slabs.take(class) {
            return Some((self.items.len() as u32, address));
        }
        let (victim, token) = self.lists.pop(&mut self.slabs.classes[class], &mut self.items, memory)?;
        self.index.remove(&mut self.items, victim, memory, token);
        Some((victim, self.items[victim as usize].address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const BYTES: u64 = 2 << 20;

    fn cache(refresh: u64, memory: &mut CountingMemory) -> Cache {
        Cache::new(BYTES, 64, refresh, memory)
    }

    /// Returns the ids in a class' list, the most recent first; checks the links both ways.
    fn recency(cache: &Cache, class: usize) -> Vec<u64> {
        let (mut ids, mut newer, mut at) = (Vec::new(), NIL, cache.slabs.classes[class].head);
        while let Some(item) = cache.items.get(at as usize) {
            assert_eq!(item.newer, newer);
            ids.push(item.key.id);
            (newer, at) = (at, item.older);
        }
        assert_eq!(cache.slabs.classes[class].tail, newer);
        ids
    }

    #[test]
    fn the_least_recently_refreshed_item_of_a_full_class_leaves() {
        let mut memory = CountingMemory::default();
        let mut cache = cache(1, &mut memory);
        let class = cache.slabs.class_of(141_000).expect("a class");
        let capacity = BYTES / (512 << 10) * ((512 << 10) / cache.slabs.classes[class].chunk);
        (0..capacity).for_each(|id| assert!(cache.set(Key::new(id), 140_000, id, &mut memory, Token::NONE)));
        assert!(cache.get(Key::new(0), 1000, false, &mut memory, Token::NONE), "0 is refreshed");
        assert!(cache.set(Key::new(777), 140_000, 1001, &mut memory, Token::NONE));
        assert!(!cache.get(Key::new(1), 1002, false, &mut memory, Token::NONE), "1 was the oldest");
        assert!(cache.get(Key::new(0), 1003, false, &mut memory, Token::NONE));
        assert_eq!(recency(&cache, class)[..2], [0, 777]);
    }

    #[test]
    fn hits_within_the_refresh_time_leave_the_list_alone() {
        let mut memory = CountingMemory::default();
        let mut cache = cache(100, &mut memory);
        (0..3).for_each(|id| assert!(cache.set(Key::new(id), 1000, 0, &mut memory, Token::NONE)));
        let stores = |cache: &mut Cache, memory: &mut CountingMemory, now| {
            let before = memory.stores;
            assert!(cache.get(Key::new(0), now, false, memory, Token::NONE));
            memory.stores - before
        };
        // Stores: lock, reference taken and dropped; later also list, newer neighbour, item and old head.
        assert_eq!(stores(&mut cache, &mut memory, 50), 3);
        assert_eq!(stores(&mut cache, &mut memory, 100), 7);
    }

    #[test]
    fn a_value_is_read_only_if_asked_for() {
        let mut memory = CountingMemory::default();
        let mut cache = cache(1000, &mut memory);
        assert!(cache.set(Key::new(1), 64_000, 0, &mut memory, Token::NONE));
        let mut loads = |touch_value| {
            let before = memory.loads;
            assert!(cache.get(Key::new(1), 1, touch_value, &mut memory, Token::NONE));
            memory.loads - before
        };
        let without = loads(false);
        assert!(without < 8);
        assert!(loads(true) - without >= 1000);
    }

    proptest! {
        /// A get hits if and only if the key was set and not evicted; chains and lists stay whole.
        #[test]
        fn the_cache_holds_what_was_set_and_not_evicted(
            requests in prop::collection::vec((0u64..200, 0u64..60_000), 1..400)
        ) {
            let mut memory = CountingMemory::default();
            let mut cache = cache(3, &mut memory);
            let mut values: HashMap<u64, u64> = HashMap::new();
            for (now, &(id, value)) in requests.iter().enumerate() {
                let held = cache.items.iter().any(|item| item.key.id == id);
                let hit = cache.get(Key::new(id), now as u64, false, &mut memory, Token::NONE);
                prop_assert_eq!(hit, held, "the index agrees with the items");
                if !hit && cache.set(Key::new(id), value, now as u64, &mut memory, Token::NONE) {
                    values.insert(id, value);
                }
            }
            prop_assert!(cache.items.iter().all(|item| values[&item.key.id] == item.value));
            let listed: usize = (0..cache.slabs.classes.len()).map(|class| recency(&cache, class).len()).sum();
            prop_assert_eq!(listed, cache.items.len());
        }
    }
}
