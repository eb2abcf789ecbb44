//! The ordered intersection of two lists of neighbours, line by line.
//!
//! The walk advances on the list with the lower value, so its next read depends on an unpredictable
//! comparison. Only lines are reported, in the order of the values before them, the first list's first if
//! those are equal: a line takes one count over another line's values instead of 16 steps.

use super::csr::{Graph, STEP_INSTRUCTIONS};
use crate::{Memory, Token};

/// Neighbours to a line.
const LINE: usize = 16;
/// Bits of a word.
const WORD: usize = 64;

pub(super) struct Marks(Vec<u64>);

impl Marks {
    pub(super) fn new(vertices: usize) -> Self {
        Self(vec![0; vertices.div_ceil(WORD)])
    }

    pub(super) fn add(&mut self, list: &[u32]) {
        list.iter().for_each(|&vertex| self.0[vertex as usize / WORD] |= 1 << (vertex as usize % WORD));
    }

    pub(super) fn remove(&mut self, list: &[u32]) {
        list.iter().for_each(|&vertex| self.0[vertex as usize / WORD] = 0);
    }

    fn count(&self, list: &[u32]) -> u64 {
        list.iter().map(|&vertex| self.0[vertex as usize / WORD] >> (vertex as usize % WORD) & 1).sum()
    }
}

/// A walk along a list that has read the line of the elements `from..next`.
struct Lines<'a> {
    list: &'a [u32],
    address: u64,
    from: usize,
    next: usize,
    index: Token,
}

impl<'a> Lines<'a> {
    /// Reads a vertex' pointer and the first line of its list.
    #[inline]
    fn open(memory: &mut dyn Memory, graph: &'a Graph<u32>, vertex: u32, after: Token) -> Self {
        let (address, index) = graph.open(memory, vertex, after);
        memory.compute(STEP_INSTRUCTIONS);
        memory.load(address, index);
        Self { list: graph.list(vertex), address, from: 0, next: LINE - (address / 4) as usize % LINE, index }
    }

    /// Returns the value before the next line; the walk comes there once it has passed that value.
    #[inline]
    fn last(&self) -> u32 {
        self.list[self.next - 1]
    }

    #[inline]
    fn line(&self) -> &[u32] {
        &self.list[self.from..self.next.min(self.list.len())]
    }

    /// Reads the next line, `steps` further on.
    #[inline]
    fn advance(&mut self, memory: &mut dyn Memory, steps: usize) {
        memory.compute(steps as u32 * STEP_INSTRUCTIONS);
        memory.load(self.address + 4 * self.next as u64, self.index);
        (self.from, self.next) = (self.next, self.next + LINE);
    }
}

#[inline]
fn count(line: &[u32], holds: impl Fn(u32) -> bool) -> usize {
    match <&[u32; LINE]>::try_from(line) {
        Ok(line) => line.iter().map(|&value| u32::from(holds(value))).sum::<u32>() as usize,
        Err(_) => line.iter().map(|&value| u32::from(holds(value))).sum::<u32>() as usize,
    }
}

/// Counts the common neighbours, below both, of `high` and `low`, which came with the value `after` and
/// stands at `place` in the list of `high`; all of that list is marked.
#[inline]
pub(super) fn intersect(
    memory: &mut dyn Memory,
    graph: &Graph<u32>,
    (high, low, place): (u32, u32, usize),
    marks: &Marks,
    after: Token,
) -> u64 {
    let mut others = Lines::open(memory, graph, low, after);
    let mut own = Lines::open(memory, graph, high, Token::NONE);
    // The walk ends after `low` in the own list, and in the other at the first value not below `low`.
    let own_steps = own.list.len().min(place + 2);
    let mut steps = 2;
    loop {
        let other_goes_on = others.next < others.list.len() && others.last() < low;
        if own.next < own_steps && !(other_goes_on && others.last() < own.last()) {
            let value = own.last();
            let now = own.next + 2 + others.from + count(others.line(), |other| other < value);
            own.advance(memory, now - steps);
            steps = now;
        } else if other_goes_on {
            let value = others.last();
            let now = others.next + 2 + own.from + count(own.line(), |third| third <= value);
            others.advance(memory, now - steps);
            steps = now;
        } else {
            break;
        }
    }
    let below = others.from + count(others.line(), |other| other < low);
    memory.compute((own_steps + below + 1 - steps) as u32 * STEP_INSTRUCTIONS);
    marks.count(&others.list[..below])
}
