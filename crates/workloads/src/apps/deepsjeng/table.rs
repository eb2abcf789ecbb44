//! The transposition table: buckets of four 16-byte entries, a line each.
//!
//! It is one mapping, so that the system can use large pages: buckets lie at random places, and with small
//! pages most accesses would also read the page table from memory.

use memmap2::{Advice, MmapMut};
use prefetch_index::prefetch_index;

use crate::{Memory, Token};

/// Entries of a bucket, bytes of an entry, and bytes of a bucket.
const BUCKET: usize = 4;
const ENTRY_BYTES: usize = 16;
pub(super) const BUCKET_BYTES: usize = BUCKET * ENTRY_BYTES;
/// The best move of an empty entry: its bytes are all zero.
const NO_MOVE: u8 = 64;

/// Relation of a stored value to a position's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Exact,
    AtLeast,
    AtMost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) value: i16,
    /// The square of the best move, 64 for none.
    pub(super) best: u8,
    pub(super) depth: u8,
    pub(super) age: u8,
    pub(super) bound: Bound,
}

impl Entry {
    #[inline]
    fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        let all = u128::from_le_bytes(bytes);
        let bound = [Bound::Exact, Bound::AtLeast, Bound::AtMost, Bound::AtMost][(all >> 104) as usize & 3];
        let best = (all >> 80) as u8 ^ NO_MOVE;
        Self {
            key: all as u64,
            value: (all >> 64) as i16,
            best,
            depth: (all >> 88) as u8,
            age: (all >> 96) as u8,
            bound,
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let rest = u64::from(self.value as u16)
            | u64::from(self.best ^ NO_MOVE) << 16
            | u64::from(self.depth) << 24
            | u64::from(self.age) << 32
            | (self.bound as u64) << 40;
        (u128::from(self.key) | u128::from(rest) << 64).to_le_bytes()
    }
}

pub(super) struct Table {
    start: u64,
    bytes: MmapMut,
    buckets: usize,
}

fn map(length: usize) -> MmapMut {
    let map = MmapMut::map_anon(length)
        .unwrap_or_else(|error| panic!("cannot map {length} bytes for the transposition table: {error}"));
    // Only a hint: a system without large pages uses small ones.
    _ = map.advise(Advice::HugePage);
    map
}

impl Table {
    pub(super) fn new(buckets: usize, memory: &mut dyn Memory) -> Self {
        let length = buckets * BUCKET_BYTES;
        let start = memory.allocate(length as u64, "transposition table");
        let bytes = map(length);
        memory.backed_by(start, bytes.as_ptr().addr() as u64);
        memory.store_range(start, length as u64, Token::NONE);
        Self { start, bytes, buckets }
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets as u128) >> 64) as usize * BUCKET_BYTES
    }

    /// Returns the bytes of a bucket's entries. Most visits decode at most one.
    #[inline]
    fn bucket(&self, place: usize) -> [[u8; ENTRY_BYTES]; BUCKET] {
        let bytes = &self.bytes[place..place + BUCKET_BYTES];
        let entries = bytes.as_chunks().0;
        [0, 1, 2, 3].map(|at: usize| entries[at])
    }

    #[inline]
    pub(super) fn read_ahead(&self, key: u64) {
        prefetch_index(&self.bytes[..], self.place(key));
    }

    #[inline]
    pub(super) fn probe(&self, key: u64, memory: &mut dyn Memory) -> (Option<Entry>, Token) {
        let place = self.place(key);
        let token = memory.load(self.start + place as u64, Token::NONE);
        let bucket = self.bucket(place);
        // Looks at every entry, because the match is unpredictable.
        let is_it = |entry: Entry| (entry.key == key) & (entry.best < NO_MOVE);
        let found = (0..BUCKET)
            .rev()
            .fold(BUCKET, |found, at| if is_it(Entry::from_bytes(bucket[at])) { at } else { found });
        (bucket.get(found).map(|bytes| Entry::from_bytes(*bytes)), token)
    }

    /// Puts an entry over its own earlier one, or over the shallowest of the oldest.
    pub(super) fn store(&mut self, entry: Entry, token: Token, memory: &mut dyn Memory) {
        let place = self.place(entry.key);
        memory.load(self.start + place as u64, token);
        let bucket = self.bucket(place);
        let worth = |old: Entry| {
            u32::from(old.key != entry.key) << 9 | u32::from(old.age == entry.age) << 8 | u32::from(old.depth)
        };
        // The first of equals: the place breaks ties.
        let worths = [0, 1, 2, 3].map(|at: u32| worth(Entry::from_bytes(bucket[at as usize])) << 2 | at);
        let at = (worths.into_iter().fold(u32::MAX, u32::min) & 3) as usize;
        let from = place + at * ENTRY_BYTES;
        self.bytes[from..from + ENTRY_BYTES].copy_from_slice(&entry.to_bytes());
        memory.store(self.start + place as u64, token);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CountingMemory;

    proptest! {
        #[test]
        fn an_entry_comes_out_as_it_went_in(
            (key, value) in (any::<u64>(), any::<i16>()),
            (best, depth, age, bound) in (0u8..=64, any::<u8>(), any::<u8>(), 0usize..3),
        ) {
            let bound = [Bound::Exact, Bound::AtLeast, Bound::AtMost][bound];
            let entry = Entry { key, value, best, depth, age, bound };
            prop_assert_eq!(Entry::from_bytes(entry.to_bytes()), entry);
        }
    }

    #[test]
    fn an_entry_takes_its_own_place_then_the_oldest_and_shallowest() {
        let mut memory = CountingMemory::default();
        let mut table = Table::new(1, &mut memory);
        let entry = |key, depth, age| Entry { key, value: 1, best: 3, depth, age, bound: Bound::Exact };
        for (key, depth, age) in [(1, 5, 2), (2, 4, 2), (3, 9, 1), (4, 8, 1), (1, 1, 2), (5, 1, 2)] {
            table.store(entry(key, depth, age), Token::NONE, &mut memory);
        }
        let found = [1, 2, 3, 4, 5].map(|key| table.probe(key, &mut memory).0.map(|entry| entry.depth));
        assert_eq!(found, [Some(1), Some(4), Some(9), None, Some(1)]);
        assert_eq!(table.probe(0, &mut memory).0, None);
    }
}
