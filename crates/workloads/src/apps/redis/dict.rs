//! Redis' hash table: chained entries, tables of a power of two, and rehashing a bucket at a time.
//!
//! A growing dict has two tables: every operation moves one bucket and looks in both; additions go to the new
//! one. On the heap (56 bytes): type, tables, counts, the next bucket to move, sizes as powers.

use std::collections::HashMap;

use crate::{Heap, LINE, Memory, NULL, Token, WORD, mix};

const DICT: u64 = 56;
/// Bytes of an entry: key, value, next.
pub(crate) const ENTRY: u64 = 24;
/// Slots of the first table, as a power of two.
const FIRST_POWER: u64 = 2;
/// Empty buckets that one step of rehashing passes at most.
const EMPTY_VISITS: u32 = 10;
/// Buckets that one addition moves, or passes, most of the time.
const MOVED: u64 = 4;
/// Instructions of a lookup beside loads: the hash function (SipHash) of a short key.
const HASH_INSTRUCTIONS: u32 = 60;

const TABLES: u64 = 8;
const USED: u64 = 24;
const REHASH: u64 = 40;
const POWERS: u64 = 48;
const NOT_REHASHING: u64 = u64::MAX;
const NO_TABLE: u64 = 0xff;

const KEY: u64 = 0;
const VALUE: u64 = 8;
const NEXT: u64 = 16;

/// The heap of a server, and freed blocks that wait to be used again, by their words.
pub(crate) struct Space {
    pub heap: Heap,
    freed: HashMap<u64, Vec<u64>>,
}

/// A dict, by its address. Its keys are strings whose first word tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dict(pub u64);

impl Space {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { heap: Heap::new(bytes), freed: HashMap::new() }
    }

    /// Returns a block of zeros that can be freed: a freed one of this size, or a new one.
    pub(crate) fn block(&mut self, words: u64, context: &'static str, memory: &mut dyn Memory) -> u64 {
        let block = match self.freed.get_mut(&words).and_then(Vec::pop) {
            Some(block) => block,
            None => self.heap.allocate(memory, words * WORD, context),
        };
        self.heap.words_mut(block, words).fill(0);
        memory.store_range(block, words * WORD, Token::NONE);
        block
    }

    pub(crate) fn free(&mut self, block: u64, words: u64) {
        self.freed.entry(words).or_default().push(block);
    }
}

impl Dict {
    pub(crate) fn new(space: &mut Space, memory: &mut dyn Memory) -> Self {
        let dict = Self(space.heap.allocate(memory, DICT, "redis dict"));
        space.heap.set_word(dict.0 + REHASH, NOT_REHASHING);
        space.heap.set_word(dict.0 + POWERS, NO_TABLE | NO_TABLE << 8);
        memory.store_range(dict.0, DICT, Token::NONE);
        dict
    }

    fn table(self, which: u64, heap: &Heap) -> u64 {
        heap.word(self.0 + TABLES + which * WORD)
    }

    fn used(self, which: u64, heap: &Heap) -> u64 {
        heap.word(self.0 + USED + which * WORD)
    }

    fn slots(self, which: u64, heap: &Heap) -> u64 {
        match heap.word(self.0 + POWERS) >> (8 * which) & 0xff {
            NO_TABLE => 0,
            power => 1 << power,
        }
    }

    /// Returns the places of the buckets of `id`, the old table's first.
    fn slots_of(self, id: u64, heap: &Heap) -> impl Iterator<Item = u64> {
        (0..=u64::from(self.is_rehashing(heap))).filter_map(move |which| {
            let mask = self.slots(which, heap).checked_sub(1)?;
            Some(self.table(which, heap) + (mix(id) & mask) * WORD)
        })
    }

    fn is_rehashing(self, heap: &Heap) -> bool {
        heap.word(self.0 + REHASH) != NOT_REHASHING
    }

    #[cfg(test)]
    pub(crate) fn len(self, heap: &Heap) -> u64 {
        self.used(0, heap) + self.used(1, heap)
    }

    /// Returns the value of the key whose string begins with `id`, and the name of the pointer to it.
    pub(crate) fn find(
        self,
        id: u64,
        space: &mut Space,
        memory: &mut dyn Memory,
        after: Token,
    ) -> Option<(u64, Token)> {
        let token = memory.load_range(self.0, DICT, after);
        memory.compute(HASH_INSTRUCTIONS);
        self.rehash_step(space, memory);
        let heap = &space.heap;
        for slot in self.slots_of(id, heap) {
            let (mut entry, mut token) = heap.load(memory, slot, token);
            while entry != NULL {
                token = memory.load_range(entry, ENTRY, token);
                let key = heap.word(entry + KEY);
                if heap.load(memory, key, token).0 == id {
                    return Some((heap.word(entry + VALUE), token));
                }
                entry = heap.word(entry + NEXT);
            }
        }
        None
    }

    /// Returns the value of the key whose string begins with `id`, natively: it reports and moves nothing.
    #[inline]
    pub(crate) fn peek(self, id: u64, heap: &Heap) -> Option<u64> {
        for slot in self.slots_of(id, heap) {
            let mut entry = heap.word(slot);
            while entry != NULL {
                if heap.word(heap.word(entry + KEY)) == id {
                    return Some(heap.word(entry + VALUE));
                }
                entry = heap.word(entry + NEXT);
            }
        }
        None
    }

    /// Prefetches what adding `id` to each of these dicts reads, step by step.
    pub(crate) fn read_ahead(dicts: &[Self], id: u64, heap: &Heap) {
        let mut slots = Vec::with_capacity(4 * dicts.len());
        for dict in dicts {
            slots.extend(dict.slots_of(id, heap).map(|slot| (slot, None)));
            if dict.is_rehashing(heap) {
                // The buckets that the next steps of rehashing move.
                let (first, end) = (heap.word(dict.0 + REHASH), dict.slots(0, heap));
                let moved = (first..end.min(first + MOVED)).map(|bucket| dict.table(0, heap) + bucket * WORD);
                slots.extend(moved.map(|slot| (slot, Some(*dict))));
            }
        }
        slots.iter().for_each(|&(slot, _)| heap.prefetch(slot, WORD));
        let mut entries: Vec<(u64, Option<Self>)> =
            slots.into_iter().map(|(slot, dict)| (heap.word(slot), dict)).collect();
        let mut keys = Vec::with_capacity(entries.len());
        loop {
            entries.retain(|&(entry, _)| entry != NULL);
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|&(entry, _)| heap.prefetch(entry, ENTRY));
            keys.extend(entries.iter().map(|&(entry, dict)| (heap.word(entry + KEY), dict)));
            entries.iter_mut().for_each(|(entry, _)| *entry = heap.word(*entry + NEXT));
        }
        keys.iter().for_each(|&(key, _)| heap.prefetch(key, WORD));
        for (key, dict) in keys.into_iter().filter_map(|(key, dict)| Some((key, dict?))) {
            let slot = mix(heap.word(key)) & (dict.slots(1, heap) - 1);
            heap.prefetch(dict.table(1, heap) + slot * WORD, WORD);
        }
    }

    pub(crate) fn add(
        self,
        key: u64,
        value: u64,
        context: &'static str,
        space: &mut Space,
        memory: &mut dyn Memory,
    ) {
        self.rehash_step(space, memory);
        self.expand_if_full(space, memory);
        let entry = space.heap.allocate(memory, ENTRY, context);
        space.heap.set_word(entry + KEY, key);
        space.heap.set_word(entry + VALUE, value);
        let which = u64::from(self.is_rehashing(&space.heap));
        self.link(entry, which, &mut space.heap, memory);
    }

    fn link(self, entry: u64, which: u64, heap: &mut Heap, memory: &mut dyn Memory) {
        let id = heap.word(heap.word(entry + KEY));
        let slot = self.table(which, heap) + (mix(id) & (self.slots(which, heap) - 1)) * WORD;
        let (first, token) = heap.load(memory, slot, Token::NONE);
        heap.set_word(entry + NEXT, first);
        memory.store_range(entry, ENTRY, token);
        heap.store(memory, slot, entry, Token::NONE);
        let used = self.used(which, heap) + 1;
        heap.store(memory, self.0 + USED + which * WORD, used, Token::NONE);
    }

    fn set_table(self, which: u64, table: u64, power: u64, heap: &mut Heap) {
        heap.set_word(self.0 + TABLES + which * WORD, table);
        heap.set_word(self.0 + USED + which * WORD, 0);
        let powers = heap.word(self.0 + POWERS) & !(0xff << (8 * which));
        heap.set_word(self.0 + POWERS, powers | power << (8 * which));
    }

    fn expand_if_full(self, space: &mut Space, memory: &mut dyn Memory) {
        let (slots, used) = (self.slots(0, &space.heap), self.used(0, &space.heap));
        if self.is_rehashing(&space.heap) || used < slots {
            return;
        }
        let which = u64::from(slots > 0);
        let power = if slots == 0 { FIRST_POWER } else { u64::from((used + 1).next_power_of_two().ilog2()) };
        let table = space.block(1 << power, "redis dict table", memory);
        self.set_table(which, table, power, &mut space.heap);
        if which == 1 {
            space.heap.set_word(self.0 + REHASH, 0);
        }
        memory.store_range(self.0, DICT, Token::NONE);
    }

    /// Moves the next bucket that is not empty to the new table; after the last one the old table is freed.
    fn rehash_step(self, space: &mut Space, memory: &mut dyn Memory) {
        if !self.is_rehashing(&space.heap) {
            return;
        }
        for _ in 0..EMPTY_VISITS {
            let bucket = space.heap.word(self.0 + REHASH);
            if bucket == self.slots(0, &space.heap) {
                self.finish_rehash(space, memory);
                return;
            }
            let slot = self.table(0, &space.heap) + bucket * WORD;
            let (first, token) = space.heap.load(memory, slot, Token::NONE);
            space.heap.set_word(self.0 + REHASH, bucket + 1);
            if first != NULL {
                self.move_chain(first, token, &mut space.heap, memory);
                space.heap.store(memory, slot, NULL, Token::NONE);
                break;
            }
        }
        memory.store(self.0 + REHASH, Token::NONE);
        if self.used(0, &space.heap) == 0 {
            self.finish_rehash(space, memory);
        }
    }

    fn move_chain(self, mut entry: u64, mut token: Token, heap: &mut Heap, memory: &mut dyn Memory) {
        while entry != NULL {
            token = memory.load_range(entry, ENTRY, token);
            let next = heap.word(entry + NEXT);
            memory.load(heap.word(entry + KEY), token);
            self.link(entry, 1, heap, memory);
            let left = self.used(0, heap) - 1;
            heap.set_word(self.0 + USED, left);
            entry = next;
        }
    }

    fn finish_rehash(self, space: &mut Space, memory: &mut dyn Memory) {
        let (old, slots) = (self.table(0, &space.heap), self.slots(0, &space.heap));
        space.free(old, slots);
        let heap = &mut space.heap;
        let (table, used) = (self.table(1, heap), self.used(1, heap));
        let power = heap.word(self.0 + POWERS) >> 8 & 0xff;
        self.set_table(0, table, power, heap);
        self.set_table(1, NULL, NO_TABLE, heap);
        heap.set_word(self.0 + USED, used);
        heap.set_word(self.0 + REHASH, NOT_REHASHING);
        memory.store_range(self.0, DICT, Token::NONE);
    }

    pub(crate) fn for_each(
        self,
        heap: &Heap,
        memory: &mut dyn Memory,
        after: Token,
        mut visit: impl FnMut(u64, u64, Token, &mut dyn Memory),
    ) {
        let token = memory.load_range(self.0, DICT, after);
        for which in 0..=u64::from(self.is_rehashing(heap)) {
            let mut line = token;
            for bucket in 0..self.slots(which, heap) {
                let slot = self.table(which, heap) + bucket * WORD;
                if bucket == 0 || slot.is_multiple_of(LINE) {
                    line = memory.load(slot, token);
                }
                let (mut entry, mut token) = (heap.word(slot), line);
                while entry != NULL {
                    token = memory.load_range(entry, ENTRY, token);
                    visit(heap.word(entry + KEY), heap.word(entry + VALUE), token, memory);
                    entry = heap.word(entry + NEXT);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CountingMemory;

    proptest! {
        #[test]
        fn it_is_the_map_of_what_was_added_at_every_stage_of_rehashing(
            keys in prop::collection::hash_set(0u64..3000, 1..400),
        ) {
            let (mut memory, mut space) = (CountingMemory::default(), Space::new(1 << 20));
            let dict = Dict::new(&mut space, &mut memory);
            let mut map = HashMap::new();
            for &id in &keys {
                let key = space.heap.allocate(&mut memory, 8, "key");
                space.heap.set_word(key, id);
                dict.add(key, id + 9, "entry", &mut space, &mut memory);
                map.insert(id, id + 9);
                let other = id / 2;
                let found = dict.find(other, &mut space, &mut memory, Token::NONE).map(|(value, _)| value);
                prop_assert_eq!(found, map.get(&other).copied());
                prop_assert_eq!(dict.len(&space.heap), map.len() as u64);
            }
            let mut seen = HashMap::new();
            dict.for_each(&space.heap, &mut memory, Token::NONE, |key, value, _, _| {
                seen.insert(space.heap.word(key), value);
            });
            prop_assert_eq!(seen, map);
        }
    }

    #[test]
    fn tables_are_powers_of_two_and_freed_ones_are_used_again() {
        let (mut memory, mut space) = (CountingMemory::default(), Space::new(1 << 20));
        for _ in 0..2 {
            let dict = Dict::new(&mut space, &mut memory);
            for id in 0..40 {
                let key = space.heap.allocate(&mut memory, 8, "key");
                space.heap.set_word(key, id);
                dict.add(key, id, "entry", &mut space, &mut memory);
                assert!(dict.find(id, &mut space, &mut memory, Token::NONE).is_some());
            }
        }
        let tables = memory.allocations().iter().filter(|found| found.context == "redis dict table");
        // The second dict reuses tables of 4, 8 and 16 slots; both still move buckets from 32 to 64.
        assert_eq!(tables.map(|found| found.bytes / 8).collect::<Vec<_>>(), [4, 8, 16, 32, 64, 32, 64]);
    }
}
