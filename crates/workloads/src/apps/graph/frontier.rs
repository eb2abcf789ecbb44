//! The two forms of a frontier: a queue whose window slides, and a bitmap.

use std::ops::Range;

use super::csr::AHEAD;
use super::schedule::Threads;
use crate::{Array, Memory, Token};

/// Bits of a word.
const WORD: usize = 64;

/// A queue that is read in windows: what was pushed becomes the next window.
pub(crate) struct SlidingQueue {
    vertices: Array<u32>,
    window: Range<usize>,
    end: usize,
}

impl SlidingQueue {
    pub(crate) fn new(memory: &mut dyn Memory, capacity: usize) -> Self {
        Self { vertices: Array::new(memory, capacity, 0, "frontier queue"), window: 0..0, end: 0 }
    }

    pub(crate) fn reset(&mut self) {
        (self.window, self.end) = (0..0, 0);
    }

    #[inline]
    pub(crate) fn push(&mut self, memory: &mut dyn Memory, vertex: u32) {
        self.vertices.store(memory, self.end, vertex, Token::NONE);
        self.end += 1;
    }

    pub(crate) fn slide(&mut self) {
        self.window = self.window.end..self.end;
    }

    pub(crate) fn window(&self) -> Range<usize> {
        self.window.clone()
    }

    pub(crate) fn part(&self, part: &Range<usize>) -> Range<usize> {
        self.window.start + part.start..self.window.start + part.end
    }

    /// Returns the next vertices, unreported, if `place` starts a block of the part that is read.
    #[inline]
    pub(crate) fn block(&self, place: usize, part: &Range<usize>) -> &[u32] {
        match (place - part.start).is_multiple_of(AHEAD) {
            true => &self.vertices[place..part.end.min(place + AHEAD)],
            false => &[],
        }
    }

    /// Returns the vertex at a place that is read in order from `first` on.
    #[inline]
    pub(crate) fn get(&self, memory: &mut dyn Memory, place: usize, first: usize, line: &mut Token) -> u32 {
        if place == first || self.vertices.starts_line(place) {
            *line = memory.load(self.vertices.address(place), Token::NONE);
        }
        self.vertices[place]
    }
}

pub(crate) struct Bitmap {
    words: Array<u64>,
}

impl Bitmap {
    pub(crate) fn new(memory: &mut dyn Memory, bits: usize, context: &'static str) -> Self {
        Self { words: Array::new(memory, bits.div_ceil(WORD), 0, context) }
    }

    /// Empties it (one thread: `std::fill`).
    pub(crate) fn reset(&mut self, memory: &mut dyn Memory) {
        memory.thread(0);
        let words = 0..self.words.len();
        self.words.fill(0);
        self.words.store_run(memory, words, Token::NONE);
    }

    #[inline]
    pub(crate) fn read_ahead(&self, bit: usize) {
        self.words.prefetch(bit / WORD);
    }

    /// Returns whether it holds `bit`, whose number came with the value `after`.
    #[inline]
    pub(crate) fn has(&self, memory: &mut dyn Memory, bit: usize, after: Token) -> (bool, Token) {
        let (word, token) = self.words.load(memory, bit / WORD, after);
        (word >> (bit % WORD) & 1 == 1, token)
    }

    #[inline]
    pub(crate) fn set(&mut self, memory: &mut dyn Memory, bit: usize, after: Token) {
        let word = self.words[bit / WORD] | 1 << (bit % WORD);
        self.words.store(memory, bit / WORD, word, after);
    }

    pub(crate) fn enqueue(
        &self,
        memory: &mut dyn Memory,
        queue: &mut SlidingQueue,
        bits: usize,
        threads: Threads,
    ) {
        threads.each(memory, bits, |memory, bit| {
            if bit % (8 * WORD) == 0 {
                memory.compute(8 * WORD as u32);
                memory.load(self.words.address(bit / WORD), Token::NONE);
            }
            if self.words[bit / WORD] >> (bit % WORD) & 1 == 1 {
                queue.push(memory, bit as u32);
            }
        });
    }
}
