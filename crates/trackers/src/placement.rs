//! Places a key's counters anywhere (standard) or all in one cache line (blocked).

use crate::FilterShape;
use crate::counters::{Counters, Slot};
use crate::hash::{mix, reduce, remix};

/// Spread of a key's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Over all counters: up to k cache lines per operation.
    Standard,
    /// Over one 64-byte block: one cache line per operation and a slightly higher false-positive rate.
    Blocked,
}

/// A rule that assigns counters to keys.
pub trait Placement: std::fmt::Debug + Send + Copy {
    /// A key's hash bits, computed once and interpreted by the placement.
    type Place: Copy + Default;
    /// Whether a key's counters are always distinct, so that all can be read before the first is written.
    const APART: bool;

    /// Creates the rule for a filter of this shape.
    fn new(shape: FilterShape) -> Self;

    /// Hashes a key.
    fn place(self, counters: Counters, key: u32) -> Self::Place;

    /// Returns the place's `index`-th counter.
    fn slot(self, counters: Counters, place: Self::Place, index: usize) -> Slot;

    /// Returns the largest number of cache lines that `hashes` counters lie in.
    fn lines(hashes: usize) -> usize;
}

/// Places each counter anywhere by double hashing, `h1 + i * h2`, which leaves the false-positive rate as it
/// is (Kirsch, Mitzenmacher, "Less Hashing, Same Performance", 2006).
#[derive(Debug, Clone, Copy)]
pub struct Standard {
    counters: u64,
}

impl Placement for Standard {
    type Place = (u64, u64);

    const APART: bool = false;

    fn new(shape: FilterShape) -> Self {
        Self { counters: shape.counters() }
    }

    #[inline(always)]
    fn place(self, _: Counters, key: u32) -> Self::Place {
        let first = mix(key);
        (first, remix(first))
    }

    #[inline(always)]
    fn slot(self, counters: Counters, (first, second): Self::Place, index: usize) -> Slot {
        let counter = reduce(first.wrapping_add(second.wrapping_mul(index as u64)), self.counters);
        let word = counter >> counters.per_word_log();
        Slot { block: word >> 3, word, turn: counters.turn((counter as u32) << counters.log) }
    }

    fn lines(hashes: usize) -> usize {
        hashes
    }
}

/// Places all counters in one block, each in a different one of its eight words, chosen by a first word and
/// an odd step. A key thus has k distinct counters, and no operation waits for its own stores; drawn freely,
/// one key in twenty would have fewer at k = 4, which raises the false-positive rate by a quarter.
#[derive(Debug, Clone, Copy)]
pub struct Blocked {
    blocks: u64,
}

/// A key's counters in a blocked filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockedPlace {
    block: usize,
    /// Index into [`WALKS`].
    walk: usize,
    /// [`Slot::turn`] of each counter, one byte each, the first counter's highest.
    turns: u64,
}

/// A word of a block. The compiler knows that a type with eight values needs no bounds check as an index.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Word {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
}

const WORDS: [Word; 8] = [Word::A, Word::B, Word::C, Word::D, Word::E, Word::F, Word::G, Word::H];

/// Words of each walk through a block: 8 first words times 4 odd steps. A load finds a word, where cutting it
/// out of the hash takes three instructions.
static WALKS: [[Word; 8]; 32] = {
    let mut walks = [[Word::A; 8]; 32];
    let mut at = 0;
    while at < 32 * 8 {
        let (walk, index) = (at / 8, at % 8);
        walks[walk][index] = WORDS[(walk + index * ((walk / 4) & 6 | 1)) & 7];
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

    /// The hash's upper bits choose the block, its lowest five the walk, the second hash the counters.
    #[inline(always)]
    fn place(self, counters: Counters, key: u32) -> Self::Place {
        let hash = mix(key);
        let turns = !remix(hash) & (u64::from(64 - counters.bits()) * 0x0101_0101_0101_0101);
        BlockedPlace { block: reduce(hash, self.blocks), walk: hash as usize % WALKS.len(), turns }
    }

    #[inline(always)]
    fn slot(self, _: Counters, place: Self::Place, index: usize) -> Slot {
        let turn = (place.turns >> (56 - 8 * index)) as u32;
        Slot { block: place.block, word: WALKS[place.walk % WALKS.len()][index] as usize, turn }
    }

    fn lines(_hashes: usize) -> usize {
        1
    }
}
