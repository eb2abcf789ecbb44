//! Collapses a batch of sampled pages into one `(page, count)` pair per page (FreqTier, section V-C c).

use std::hint::{black_box, select_unpredictable};
use std::ops::Range;

use crate::hash::mix;

/// Keys looked up together, so that their cache misses overlap.
const CHUNK: usize = 64;

/// Collapses batches of keys. It is reused from batch to batch and allocates only while batches grow.
///
/// An open-addressing table with linear probing, at most half full, finds where in the batch a key first
/// appeared; it is counted there, and keys without a count are dropped at the end. A slot holds the *number*
/// of a key: one below the batch's first marks an empty slot, so nothing is cleared between batches.
#[derive(Debug, Clone)]
pub struct Coalescer {
    slots: Vec<u32>,
    /// Number of this batch's first key; at least 1, because unused slots hold 0.
    first: u32,
    /// Number of the next batch's first key.
    next: u32,
    pairs: Vec<(u32, u32)>,
}

impl Default for Coalescer {
    fn default() -> Self {
        Self { slots: vec![0; 2 * CHUNK], first: 1, next: 1, pairs: Vec::new() }
    }
}

impl Coalescer {
    /// Returns the batch's distinct keys in order of first appearance, each with its number of appearances.
    pub fn coalesce(&mut self, keys: impl IntoIterator<Item = u32>) -> &[(u32, u32)] {
        self.pairs.clear();
        self.pairs.extend(keys.into_iter().map(|key| (key, 0)));
        self.begin();
        let length = self.pairs.len();
        (0..length).step_by(CHUNK).for_each(|start| self.count(start..length.min(start + CHUNK)));
        self.drop_uncounted();
        &self.pairs
    }

    /// Returns the size of the table and the pairs in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice()) + self.pairs.capacity() * size_of::<(u32, u32)>()
    }

    /// Makes room for the batch, whose numbers follow the last batch's until they run out.
    fn begin(&mut self) {
        let slots = (2 * self.pairs.len()).next_power_of_two();
        let next = self.next.checked_add(self.pairs.len() as u32);
        if let Some(next) = next.filter(|_| slots <= self.slots.len()) {
            (self.first, self.next) = (self.next, next);
        } else {
            self.slots = vec![0; slots.max(self.slots.len())];
            (self.first, self.next) = (1, 1 + self.pairs.len() as u32);
        }
    }

    /// Counts a chunk of the batch in passes in which no key waits for the one before.
    #[inline(always)]
    fn count(&mut self, chunk: Range<usize>) {
        let (mut homes, mut firsts) = ([0; CHUNK], [0; CHUNK]);
        let (homes, firsts) = (&mut homes[..chunk.len()], &mut firsts[..chunk.len()]);
        for (home, pair) in homes.iter_mut().zip(&self.pairs[chunk.clone()]) {
            *home = (mix(pair.0) >> 32) as usize & (self.slots.len() - 1);
        }
        black_box(homes.iter().fold(0, |sum, &home| sum ^ self.slots[home]));
        for ((first, &home), index) in firsts.iter_mut().zip(&*homes).zip(chunk.clone()) {
            *first = self.claim(home, index);
        }
        black_box(firsts.iter().fold(0, |sum, &first| sum ^ self.pairs[first].0));
        for ((&first, &home), index) in firsts.iter().zip(&*homes).zip(chunk) {
            let is_there = self.pairs[first].0 == self.pairs[index].0;
            let first = if is_there { first } else { self.probe(home, index) };
            self.pairs[first].1 += 1;
        }
    }

    /// Claims the slot for the `index`-th key if it is empty. Returns the slot's owner.
    #[inline(always)]
    fn claim(&mut self, slot: usize, index: usize) -> usize {
        let held = self.slots[slot];
        // Half of the keys are new, so a branch would be mispredicted half of the time.
        let number = select_unpredictable(held < self.first, self.first + index as u32, held);
        self.slots[slot] = number;
        (number - self.first) as usize
    }

    /// Finds where the `index`-th key first appeared when its home slot belongs to another key.
    fn probe(&mut self, home: usize, index: usize) -> usize {
        let mut slot = home;
        loop {
            slot = (slot + 1) & (self.slots.len() - 1);
            let first = self.claim(slot, index);
            if self.pairs[first].0 == self.pairs[index].0 {
                return first;
            }
        }
    }

    fn drop_uncounted(&mut self) {
        let mut kept = 0;
        for index in 0..self.pairs.len() {
            let pair = self.pairs[index];
            self.pairs[kept] = pair;
            kept += usize::from(pair.1 > 0);
        }
        self.pairs.truncate(kept);
    }
}
