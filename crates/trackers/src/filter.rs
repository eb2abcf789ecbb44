//! Counting Bloom filters: standard and blocked, with counters of 2, 4, 8 or 16 bits.
//!
//! A key has k counters, and its estimate is their minimum. An increase raises only the counters below the
//! new estimate (conservative update; FreqTier, section V-A: "increment the minimum counters"), so an
//! estimate never falls below the true count.
//!
//! In a filter larger than the caches each operation misses, and an unpredicted branch or a full reorder
//! window keeps the misses from overlapping. Batches therefore run in chunks of three passes: hash all keys;
//! read a word of every line, with nothing depending on it (a prefetch without `unsafe`); then work on lines
//! that have arrived. A loop that both hashes and reads holds only a third of the reads in flight. Single
//! calls wait for their line; inlined, they minimise the instructions that follow its arrival.

use std::hint::{black_box, select_unpredictable};

use crate::counters::{Block, Slot, halve};
use crate::placement::{Blocked, Placement, Standard};
use crate::shape::allocate;
use crate::{Change, Counters, FilterShape, Layout, ShapeError, Tracker};

/// Keys in flight at once: they hide the memory's latency, and their lines stay in the first-level cache.
const CHUNK: usize = 64;

/// A counting Bloom filter with `K` hash functions and `BITS`-bit counters placed by [`Blocked`] or
/// [`Standard`]: all constants in the inner loops. [`FilterShape::build`] chooses the type where the shape is
/// not.
#[derive(Debug)]
pub struct Filter<P, const K: usize, const BITS: u32> {
    placement: P,
    blocks: Vec<Block>,
}

/// Returns the minimum, found by halves: a chain of K comparisons would wait for each other.
#[inline(always)]
fn least<const K: usize>(mut values: [u64; K]) -> u64 {
    let mut length = K;
    while length > 1 {
        let half = length.div_ceil(2);
        for index in 0..length / 2 {
            values[index] = values[index].min(values[index + half]);
        }
        length = half;
    }
    values[0]
}

impl FilterShape {
    /// Builds an empty filter of this shape. Fails with [`ShapeError::Memory`] if the allocator refuses.
    pub fn build(self, layout: Layout) -> Result<Box<dyn Tracker>, ShapeError> {
        match layout {
            Layout::Standard => self.build_placed::<Standard>(),
            Layout::Blocked => self.build_placed::<Blocked>(),
        }
    }

    fn build_placed<P: Placement + 'static>(self) -> Result<Box<dyn Tracker>, ShapeError> {
        match self.width().bits() {
            2 => self.build_wide::<P, 2>(),
            4 => self.build_wide::<P, 4>(),
            8 => self.build_wide::<P, 8>(),
            _ => self.build_wide::<P, 16>(),
        }
    }

    fn build_wide<P: Placement + 'static, const BITS: u32>(self) -> Result<Box<dyn Tracker>, ShapeError> {
        Ok(match self.hashes() {
            1 => Box::new(Filter::<P, 1, BITS>::new(self)?),
            2 => Box::new(Filter::<P, 2, BITS>::new(self)?),
            3 => Box::new(Filter::<P, 3, BITS>::new(self)?),
            4 => Box::new(Filter::<P, 4, BITS>::new(self)?),
            5 => Box::new(Filter::<P, 5, BITS>::new(self)?),
            6 => Box::new(Filter::<P, 6, BITS>::new(self)?),
            7 => Box::new(Filter::<P, 7, BITS>::new(self)?),
            8 => Box::new(Filter::<P, 8, BITS>::new(self)?),
            other => return Err(ShapeError::Hashes(other)),
        })
    }
}

impl<P: Placement, const K: usize, const BITS: u32> Filter<P, K, BITS> {
    const COUNTERS: Counters = Counters { log: BITS.ilog2() };

    /// Creates an empty filter of this shape.
    /// Fails if the shape's hash functions or counter width are not the type's, or the allocator refuses.
    pub fn new(shape: FilterShape) -> Result<Self, ShapeError> {
        if (shape.hashes(), shape.width().bits()) != (K as u32, BITS) {
            return Err(ShapeError::Type { shape, hashes: K as u32, bits: BITS });
        }
        Ok(Self { placement: P::new(shape), blocks: allocate(shape.blocks())? })
    }

    #[inline(always)]
    fn slots(&self, place: P::Place) -> [Slot; K] {
        std::array::from_fn(|index| self.placement.slot(Self::COUNTERS, place, index))
    }

    /// Returns the slot's word, shifted so that its counter is at the top and compares without being cut out.
    #[inline(always)]
    fn turned(&self, slot: Slot) -> u64 {
        self.blocks[slot.block].0[slot.word & 7] << (slot.turn & 63)
    }

    /// Returns the highest counter of a word.
    #[inline(always)]
    fn count(turned: u64) -> u32 {
        (turned >> (64 - Self::COUNTERS.bits())) as u32
    }

    #[inline(always)]
    fn estimate(&self, place: P::Place) -> u32 {
        Self::count(least(self.slots(place).map(|slot| self.turned(slot))))
    }

    /// Clips the sum of two counts to the maximum: the overflow bit sets all bits below it. (The compiler
    /// would turn `min` into a mispredicted branch.)
    #[inline(always)]
    fn saturated(sum: u32) -> u32 {
        let overflow = sum >> Self::COUNTERS.bits();
        (sum | overflow.wrapping_neg()) & Self::COUNTERS.maximum()
    }

    /// Raises the counters below the new estimate to it, without a branch mispredicted every other time.
    #[inline(always)]
    fn update(&mut self, place: P::Place, amount: u32) -> Change {
        let slots = self.slots(place);
        let counts = slots.map(|slot| Self::count(self.turned(slot)));
        let before = counts.into_iter().fold(u32::MAX, u32::min);
        let after = Self::saturated(before + amount.min(Self::COUNTERS.maximum()));
        for (slot, count) in slots.into_iter().zip(counts) {
            let count = if P::APART { count } else { Self::count(self.turned(slot)) };
            let rise = select_unpredictable(count < after, after.wrapping_sub(count), 0);
            // The sum stays within the counter's bits.
            self.blocks[slot.block].0[slot.word & 7] += u64::from(rise) << Self::COUNTERS.shift(slot);
        }
        Change { before, after }
    }

    /// Does the same as [`Self::update`] by one, for counters that are all different; computes the increment
    /// before the lines arrive, since more of them overlap when fewer instructions wait.
    #[inline(always)]
    fn step(&mut self, place: P::Place) -> Change {
        let unit = 1 << (64 - Self::COUNTERS.bits());
        let slots = self.slots(place);
        let turned = slots.map(|slot| self.turned(slot));
        let least = least(turned);
        // Words below the limit have the least counter on top. At the maximum it wraps to 0: none is below.
        let limit = (least | (unit - 1)).wrapping_add(1);
        for (slot, turned) in slots.into_iter().zip(turned) {
            let rise = select_unpredictable(turned < limit, unit >> (slot.turn & 63), 0);
            self.blocks[slot.block].0[slot.word & 7] += rise;
        }
        let before = Self::count(least);
        Change { before, after: before + u32::from(limit != 0) }
    }

    #[inline(always)]
    fn read(&self, place: P::Place) -> u64 {
        let lines = self.slots(place).into_iter().take(P::lines(K));
        lines.fold(0, |sum, slot| sum ^ self.blocks[slot.block].0[0])
    }

    /// Hashes a chunk's keys and reads a word of each of their lines.
    #[inline(always)]
    fn approach(&self, keys: impl Iterator<Item = u32>, places: &mut [P::Place]) {
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.placement.place(Self::COUNTERS, key);
        }
        // Unrolled, since fewer instructions between reads keep more reads in flight.
        let (groups, rest) = places.as_chunks::<8>();
        let unrolled =
            groups.iter().fold(0, |sum, group| group.iter().fold(sum, |sum, &place| sum ^ self.read(place)));
        black_box(rest.iter().fold(unrolled, |sum, &place| sum ^ self.read(place)));
    }
}

impl<P: Placement, const K: usize, const BITS: u32> Tracker for Filter<P, K, BITS> {
    #[inline]
    fn increase(&mut self, key: u32, amount: u32) -> Change {
        self.update(self.placement.place(Self::COUNTERS, key), amount)
    }

    #[inline]
    fn increment(&mut self, key: u32) -> Change {
        let place = self.placement.place(Self::COUNTERS, key);
        if P::APART { self.step(place) } else { self.update(place, 1) }
    }

    #[inline]
    fn get(&self, key: u32) -> u32 {
        self.estimate(self.placement.place(Self::COUNTERS, key))
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
