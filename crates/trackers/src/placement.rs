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

/// A key's hash bits, computed once; what they mean the placement knows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    first: u64,
    second: u64,
}

/// A rule that gives a key its counters.
pub(crate) trait Placement: std::fmt::Debug + Send + Copy {
    /// Whether a key's counters always lie in different words: then all can be read before the first is written.
    const APART: bool;

    /// The rule for a filter of this shape.
    fn new(shape: FilterShape) -> Self;

    /// Hashes a key.
    fn place(self, key: u32) -> Place;

    /// The place's `index`-th counter.
    fn slot(self, counters: Counters, place: Place, index: usize) -> Slot;

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
    const APART: bool = false;

    fn new(shape: FilterShape) -> Self {
        Self { counters: shape.counters() }
    }

    #[inline(always)]
    fn place(self, key: u32) -> Place {
        let first = mix(key);
        Place { first, second: remix(first) }
    }

    #[inline(always)]
    fn slot(self, counters: Counters, place: Place, index: usize) -> Slot {
        let counter =
            reduce(place.first.wrapping_add(place.second.wrapping_mul(index as u64)), self.counters);
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
/// The first word and an odd step choose the words, which are thus different for up to eight counters; in its word
/// each counter is chosen on its own. A key so has k different counters (drawn freely, one key in twenty would have
/// fewer at k = 4, which raises the false-positive rate by a quarter), and no operation waits for its own stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked {
    blocks: u64,
}

impl Placement for Blocked {
    const APART: bool = true;

    fn new(shape: FilterShape) -> Self {
        Self { blocks: shape.blocks() as u64 }
    }

    #[inline(always)]
    fn place(self, key: u32) -> Place {
        let hash = mix(key);
        Place { first: reduce(hash, self.blocks) as u64, second: remix(hash) }
    }

    /// From the top, the pattern's bits are: 3 of the first word, 2 of the step, 5 of each counter.
    #[inline(always)]
    fn slot(self, counters: Counters, place: Place, index: usize) -> Slot {
        let pattern = place.second;
        let step = (pattern >> 58) as usize & 6 | 1;
        let word = (pattern >> 61) as usize + index * step;
        let lane = (pattern >> (54 - 5 * index)) as u32 & ((1 << counters.per_word_log()) - 1);
        Slot { block: place.first as usize, word, shift: lane << counters.log }
    }

    fn lines(_hashes: usize) -> usize {
        1
    }
}
