//! Defines the exact hash table: for pages that are few and far apart.

use crate::hash::mix;
use crate::{Change, Tracker};

/// The slots of an empty table.
const SMALLEST: usize = 16;

/// One key's count; a count of 0 is an empty slot.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    key: u32,
    count: u32,
}

/// An exact count for each page seen, in an open-addressing table with linear probing, at most half full.
///
/// Ageing forgets the pages whose count falls to 0, so the table follows the number of live pages.
#[derive(Debug, Clone)]
pub struct HashTable {
    entries: Vec<Entry>,
    used: usize,
}

impl Default for HashTable {
    fn default() -> Self {
        Self { entries: vec![Entry::default(); SMALLEST], used: 0 }
    }
}

impl HashTable {
    /// The number of pages with a count above 0.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether no page has a count.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The slot of `key`, or the empty one where it belongs. There always is one: the table is never full.
    #[inline]
    fn find(&self, key: u32) -> usize {
        let mask = self.entries.len() - 1;
        let mut slot = (mix(key) >> 32) as usize & mask;
        while self.entries[slot].count != 0 && self.entries[slot].key != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Moves every entry, its count changed by `count`, to a table of the size that fits.
    fn rebuild(&mut self, room: usize, count: impl Fn(u32) -> u32) {
        let size = (2 * room).next_power_of_two().max(SMALLEST);
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); size]);
        self.used = 0;
        for entry in old.into_iter().map(|entry| Entry { count: count(entry.count), ..entry }) {
            if entry.count != 0 {
                let slot = self.find(entry.key);
                self.entries[slot] = entry;
                self.used += 1;
            }
        }
    }
}

impl Tracker for HashTable {
    fn increase(&mut self, key: u32, amount: u32) -> Change {
        if amount > 0 && 2 * self.used >= self.entries.len() {
            self.rebuild(2 * self.used, |count| count);
        }
        let slot = self.find(key);
        let entry = &mut self.entries[slot];
        let before = entry.count;
        *entry = Entry { key, count: before.saturating_add(amount) };
        self.used += usize::from(before == 0 && amount > 0);
        Change { before, after: before.saturating_add(amount) }
    }

    fn get(&self, key: u32) -> u32 {
        self.entries[self.find(key)].count
    }

    fn age(&mut self) {
        let live = self.entries.iter().filter(|entry| entry.count > 1).count();
        self.rebuild(live, |count| count / 2);
    }

    fn maximum(&self) -> u32 {
        u32::MAX
    }

    fn bytes(&self) -> usize {
        size_of_val(self.entries.as_slice())
    }

    /// Linear probing at half load stays within a line or the next.
    fn lines(&self) -> u32 {
        2
    }
}
