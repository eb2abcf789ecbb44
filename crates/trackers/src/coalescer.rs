//! Defines how a batch of sampled pages becomes one `(page, count)` pair for each page (FreqTier, section V-C c).

use std::hint::black_box;

use crate::hash::mix;

/// Keys whose slots are read ahead at once.
const CHUNK: usize = 64;
/// The slots of a new coalescer.
const SMALLEST: usize = 64;

/// Collapses batches of keys; reused from batch to batch, it allocates only while batches grow.
///
/// An open-addressing table with linear probing, at most half full. A slot holds a key and the *serial number* of its
/// pair. Serial numbers run on from batch to batch, so a number below the batch's first one marks a slot as empty:
/// nothing is cleared in between.
#[derive(Debug, Clone)]
pub struct Coalescer {
    /// Serial number in the upper half, key in the lower.
    slots: Vec<u64>,
    /// The serial number of the first pair of this batch; at least 1, as a slot never used has 0.
    first: u32,
    pairs: Vec<(u32, u32)>,
}

impl Default for Coalescer {
    fn default() -> Self {
        Self { slots: vec![0; SMALLEST], first: 1, pairs: Vec::new() }
    }
}

impl Coalescer {
    /// The batch's distinct keys in order of first appearance, each with the number of its appearances.
    pub fn coalesce(&mut self, keys: impl IntoIterator<Item = u32>) -> &[(u32, u32)] {
        self.begin();
        let mut keys = keys.into_iter();
        let mut chunk = [0; CHUNK];
        loop {
            let mut length = 0;
            for (place, key) in chunk.iter_mut().zip(&mut keys) {
                *place = key;
                length += 1;
            }
            self.approach(&chunk[..length]);
            chunk[..length].iter().for_each(|&key| self.count(key));
            if length < CHUNK {
                return &self.pairs;
            }
        }
    }

    /// The memory that table and pairs occupy, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice()) + self.pairs.capacity() * size_of::<(u32, u32)>()
    }

    /// Starts a batch: this batch's serial numbers follow the last one's, until they run out.
    fn begin(&mut self) {
        let used = self.pairs.len() as u32;
        self.pairs.clear();
        match self.first.checked_add(used) {
            Some(first) if first < u32::MAX / 2 => self.first = first,
            _ => self.forget(),
        }
    }

    fn forget(&mut self) {
        self.slots.fill(0);
        self.first = 1;
    }

    #[inline(always)]
    fn home(&self, key: u32) -> usize {
        (mix(key) >> 32) as usize & (self.slots.len() - 1)
    }

    /// Reads the keys' slots, and the pairs that these name, with nothing depending on it, so that their cache misses overlap.
    #[inline(always)]
    fn approach(&self, keys: &[u32]) {
        black_box(keys.iter().fold(0, |sum, &key| sum ^ self.slots[self.home(key)]));
        let pair = |key| {
            let place = (self.slots[self.home(key)] >> 32).wrapping_sub(u64::from(self.first));
            self.pairs.get(place as usize).map_or(0, |pair| pair.1)
        };
        black_box(keys.iter().fold(0, |sum, &key| sum ^ pair(key)));
    }

    #[inline(always)]
    fn count(&mut self, key: u32) {
        let mut slot = self.home(key);
        loop {
            let (serial, owner) = ((self.slots[slot] >> 32) as u32, self.slots[slot] as u32);
            if serial < self.first {
                return self.insert(slot, key);
            }
            if owner == key {
                self.pairs[(serial - self.first) as usize].1 += 1;
                return;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline(always)]
    fn insert(&mut self, slot: usize, key: u32) {
        self.slots[slot] = u64::from(self.first + self.pairs.len() as u32) << 32 | u64::from(key);
        self.pairs.push((key, 1));
        if 2 * self.pairs.len() > self.slots.len() {
            self.grow();
        }
    }

    /// Doubles the table and enters the batch's pairs anew.
    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        self.first = 1;
        for index in 0..self.pairs.len() {
            let key = self.pairs[index].0;
            let mut slot = self.home(key);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = u64::from(self.first + index as u32) << 32 | u64::from(key);
        }
    }
}
