//! Counting Bloom filters: standard and blocked, with counters of 2, 4, 8 or 16 bits.
//!
//! A key has k counters. Its estimate is their minimum; an increase raises those that are below the new estimate and
//! no others (FreqTier, section V-A: "increment the minimum counters"; known as conservative update), so that a key
//! never disturbs neighbours more than it must, and an estimate never falls below the true count.
//!
//! # Batches
//! In a filter larger than the caches each operation misses, and an unpredicted branch or a full reorder window
//! keeps misses from overlapping. A batch is therefore done in chunks, in three passes: hash all keys; read a
//! word of every line, with nothing depending on it (a prefetch that needs no `unsafe`); then do the work on lines
//! that are near by now. The passes stay apart: a loop that hashes and reads holds a third of the reads in flight.
//! In a 128 MiB filter half of the time is then the misses themselves; a small one is bound by its instructions, hence
//! the branch-free arithmetic below.

use std::hint::{black_box, select_unpredictable};

use crate::counters::{Block, Slot, allocate, halve};
use crate::placement::{Blocked, Placement, Standard};
use crate::{Change, Counters, FilterShape, Layout, ShapeError, Tracker};

/// Keys in flight at once: enough to hide the latency of memory, few enough for their lines to stay in the
/// first-level cache.
const CHUNK: usize = 64;

/// A filter with `K` hash functions and counters of `2^LOG` bits: both constant in the inner loops.
#[derive(Debug)]
struct Filter<P, const K: usize, const LOG: u32> {
    placement: P,
    blocks: Vec<Block>,
}

impl FilterShape {
    /// Builds an empty filter of this shape.
    pub fn build(self, layout: Layout) -> Result<Box<dyn Tracker>, ShapeError> {
        match layout {
            Layout::Standard => self.build_placed::<Standard>(),
            Layout::Blocked => self.build_placed::<Blocked>(),
        }
    }

    fn build_placed<P: Placement + 'static>(self) -> Result<Box<dyn Tracker>, ShapeError> {
        match self.width().bits() {
            2 => self.build_wide::<P, 1>(),
            4 => self.build_wide::<P, 2>(),
            8 => self.build_wide::<P, 3>(),
            _ => self.build_wide::<P, 4>(),
        }
    }

    fn build_wide<P: Placement + 'static, const LOG: u32>(self) -> Result<Box<dyn Tracker>, ShapeError> {
        Ok(match self.hashes() {
            1 => Box::new(Filter::<P, 1, LOG>::new(self)?),
            2 => Box::new(Filter::<P, 2, LOG>::new(self)?),
            3 => Box::new(Filter::<P, 3, LOG>::new(self)?),
            4 => Box::new(Filter::<P, 4, LOG>::new(self)?),
            5 => Box::new(Filter::<P, 5, LOG>::new(self)?),
            6 => Box::new(Filter::<P, 6, LOG>::new(self)?),
            7 => Box::new(Filter::<P, 7, LOG>::new(self)?),
            8 => Box::new(Filter::<P, 8, LOG>::new(self)?),
            other => return Err(ShapeError::Hashes(other)),
        })
    }
}

impl<P: Placement, const K: usize, const LOG: u32> Filter<P, K, LOG> {
    const COUNTERS: Counters = Counters { log: LOG };

    fn new(shape: FilterShape) -> Result<Self, ShapeError> {
        let blocks = allocate(shape.blocks())?;
        Ok(Self { placement: P::new(shape), blocks })
    }

    #[inline(always)]
    fn slots(&self, place: P::Place) -> [Slot; K] {
        std::array::from_fn(|index| self.placement.slot(Self::COUNTERS, place, index))
    }

    #[inline(always)]
    fn count(&self, slot: Slot) -> u32 {
        (self.blocks[slot.block].0[slot.word & 7] >> slot.shift) as u32 & Self::COUNTERS.maximum()
    }

    #[inline(always)]
    fn estimate(&self, place: P::Place) -> u32 {
        self.slots(place).into_iter().map(|slot| self.count(slot)).fold(u32::MAX, u32::min)
    }

    /// The sum of two counts, clipped to the maximum: an overflow's bit sets all bits below it.
    ///
    /// Of `min` the compiler would make a mispredicted branch.
    #[inline(always)]
    fn saturated(sum: u32) -> u32 {
        let overflow = sum >> Self::COUNTERS.bits();
        (sum | overflow.wrapping_neg()) & Self::COUNTERS.maximum()
    }

    /// Raises the counters below the new estimate to it.
    ///
    /// Of a plain `saturating_sub` the compiler makes a branch, which is mispredicted every other time.
    #[inline(always)]
    fn update(&mut self, place: P::Place, amount: u32) -> Change {
        let slots = self.slots(place);
        let counts = slots.map(|slot| self.count(slot));
        let before = counts.into_iter().fold(u32::MAX, u32::min);
        let after = Self::saturated(before + amount.min(Self::COUNTERS.maximum()));
        for (slot, count) in slots.into_iter().zip(counts) {
            let count = if P::APART { count } else { self.count(slot) };
            let rise = select_unpredictable(count < after, after.wrapping_sub(count), 0);
            // The sum stays within the counter's bits.
            self.blocks[slot.block].0[slot.word & 7] += u64::from(rise) << slot.shift;
        }
        Change { before, after }
    }

    /// Reads a word of each line of the place.
    #[inline(always)]
    fn read(&self, place: P::Place) -> u64 {
        let lines = self.slots(place).into_iter().take(P::lines(K));
        lines.fold(0, |sum, slot| sum ^ self.blocks[slot.block].0[0])
    }

    /// Hashes a chunk's keys and reads a word of each of their lines.
    #[inline(always)]
    fn approach(&self, keys: impl Iterator<Item = u32>, places: &mut [P::Place]) {
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.placement.place(key);
        }
        // Unrolled: the fewer instructions between reads, the more reads are in flight.
        let (groups, rest) = places.as_chunks::<8>();
        let unrolled =
            groups.iter().fold(0, |sum, group| group.iter().fold(sum, |sum, &place| sum ^ self.read(place)));
        black_box(rest.iter().fold(unrolled, |sum, &place| sum ^ self.read(place)));
    }
}

impl<P: Placement, const K: usize, const LOG: u32> Tracker for Filter<P, K, LOG> {
    fn increase(&mut self, key: u32, amount: u32) -> Change {
        self.update(self.placement.place(key), amount)
    }

    fn get(&self, key: u32) -> u32 {
        self.estimate(self.placement.place(key))
    }

    fn age(&mut self) {
        halve(&mut self.blocks, Self::COUNTERS);
    }

    fn maximum(&self) -> u32 {
        Self::COUNTERS.maximum()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }

    fn lines(&self) -> u32 {
        P::lines(K) as u32
    }

    fn increase_batch(&mut self, items: &[(u32, u32)], changes: &mut Vec<Change>) {
        changes.clear();
        let mut places = [P::Place::default(); CHUNK];
        for chunk in items.chunks(CHUNK) {
            self.approach(chunk.iter().map(|&(key, _)| key), &mut places[..chunk.len()]);
            let update = |(&place, &(_, amount)): (&P::Place, &(u32, u32))| self.update(place, amount);
            changes.extend(places.iter().zip(chunk).map(update));
        }
    }

    fn get_batch(&self, keys: &[u32], counts: &mut Vec<u32>) {
        counts.clear();
        let mut places = [P::Place::default(); CHUNK];
        for chunk in keys.chunks(CHUNK) {
            self.approach(chunk.iter().copied(), &mut places[..chunk.len()]);
            counts.extend(places[..chunk.len()].iter().map(|&place| self.estimate(place)));
        }
    }
}
