//! Defines where the counters of a key stand: anywhere (standard) or all in one cache line (blocked).

use crate::FilterShape;
use crate::counters::{Counters, Slot};
use crate::hash::{mix, reduce, remix};

/// How a filter spreads the counters of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Over all counters: up to k cache lines an operation.
    Standard,
    /// Over one 64-byte block: one cache line an operation, a slightly higher false-positive rate.
    Blocked,
}

/// A rule that gives a key its counters.
pub(crate) trait Placement: std::fmt::Debug + Send + Copy {
    /// A key's hash bits, computed once; what they mean the placement knows.
    type Place: Copy + Default;
    /// Whether a key's counters are always different ones: then all can be read before the first is written.
    const APART: bool;

    /// The rule for a filter of this shape.
    fn new(shape: FilterShape) -> Self;

    /// Hashes a key.
    fn place(self, key: u32) -> Self::Place;

    /// The place's `index`-th counter.
    fn slot(self, counters: Counters, place: Self::Place, index: usize) -> Slot;

    /// The cache lines that `hashes` counters lie in, at most.
    fn lines(hashes: usize) -> usize;
}

/// Each counter anywhere, by double hashing: `h1 + i * h2` (Kirsch, Mitzenmacher, "Less Hashing, Same Performance",
/// 2006), which leaves the false-positive rate as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standard {
    counters: u64,
}

impl Placement for Standard {
    /// The two hashes.
    type Place = (u64, u64);

    const APART: bool = false;

    fn new(shape: FilterShape) -> Self {
        Self { counters: shape.counters() }
    }

    #[inline(always)]
    fn place(self, key: u32) -> Self::Place {
        let first = mix(key);
        (first, remix(first))
    }

    #[inline(always)]
    fn slot(self, counters: Counters, (first, second): Self::Place, index: usize) -> Slot {
        let counter = reduce(first.wrapping_add(second.wrapping_mul(index as u64)), self.counters);
        let lane = counter as u32 & ((1 << counters.per_word_log()) - 1);
        let word = counter >> counters.per_word_log();
        Slot { block: word >> 3, word, shift: lane << counters.log }
    }

    fn lines(hashes: usize) -> usize {
        hashes
    }
}

/// All counters in one block, each in another of its eight words.
///
/// A first word and an odd step choose the words, which are thus different for up to eight counters; in its word
/// each counter is chosen on its own. A key so has k different counters (drawn freely, one key in twenty would have
/// fewer at k = 4, which raises the false-positive rate by a quarter), and no operation waits for its own stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked {
    blocks: u64,
}

/// A key's counters in a blocked filter. What differs from counter to counter is a byte each, which costs one
/// instruction to load where fields of a word cost three to cut out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockedPlace {
    block: usize,
    words: [u8; 8],
    shifts: [u8; 8],
}

/// The words of each walk through a block: 8 first words times 4 odd steps.
const WALKS: [[u8; 8]; 32] = {
    let mut walks = [[0; 8]; 32];
    let mut at = 0;
    while at < 32 * 8 {
        let (walk, index) = (at / 8, at % 8);
        walks[walk][index] = ((walk + index * ((walk / 4) & 6 | 1)) & 7) as u8;
        at += 1;
    }
    walks
};

impl Placement for Blocked {
    type Place = BlockedPlace;

    const APART: bool = true;

    fn new(shape: FilterShape) -> Self {
        Self { blocks: shape.blocks() as u64 }
    }

    /// The upper bits of the hash choose the block, the lowest five the walk, the second hash the counters.
    #[inline(always)]
    fn place(self, key: u32) -> Self::Place {
        let hash = mix(key);
        BlockedPlace {
            block: reduce(hash, self.blocks),
            words: WALKS[hash as usize % WALKS.len()],
            shifts: remix(hash).to_be_bytes(),
        }
    }

    #[inline(always)]
    fn slot(self, counters: Counters, place: Self::Place, index: usize) -> Slot {
        let shift = u32::from(place.shifts[index]) & (64 - counters.bits());
        Slot { block: place.block, word: place.words[index].into(), shift }
    }

    fn lines(_hashes: usize) -> usize {
        1
    }
}
