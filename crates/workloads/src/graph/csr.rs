//! Defines the graph in compressed sparse rows, as GAPBS holds it: a pointer a vertex and its neighbours in order.

use super::generator::Generator;
use super::schedule::Threads;
use crate::array::Array;
use crate::{Memory, Token};

/// Instructions of a step along a list of neighbours: the neighbour's own load (most share a line with the one before),
/// comparison, branch, increment.
const STEP_INSTRUCTIONS: u32 = 4;

/// What stands in a list of neighbours.
pub(crate) trait Neighbour: Copy + Default + Ord + std::fmt::Debug + Send {
    /// The neighbour behind an edge of this weight.
    fn new(vertex: u32, weight: u8) -> Self;

    /// The neighbour.
    fn vertex(self) -> u32;
}

impl Neighbour for u32 {
    fn new(vertex: u32, _weight: u8) -> Self {
        vertex
    }

    #[inline]
    fn vertex(self) -> u32 {
        self
    }
}

/// A neighbour and the weight of the edge to it: 8 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weighted {
    pub(crate) vertex: u32,
    pub(crate) weight: i32,
}

impl Neighbour for Weighted {
    fn new(vertex: u32, weight: u8) -> Self {
        Self { vertex, weight: i32::from(weight) }
    }

    #[inline]
    fn vertex(self) -> u32 {
        self.vertex
    }
}

/// A graph outside the program's memory, as in a file: without loops and duplicates, neighbours in ascending order.
#[derive(Debug)]
pub(crate) struct Stored<N> {
    pub(crate) offsets: Vec<u64>,
    pub(crate) neighbours: Vec<N>,
}

impl<N: Neighbour> Stored<N> {
    /// Makes the graph. Of duplicates the lightest stays.
    pub(crate) fn generate(generator: &Generator) -> Self {
        let mut offsets = vec![0u64; generator.vertices() + 1];
        for (from, to, _) in generator.iter().filter(|edge| edge.0 != edge.1) {
            offsets[from as usize] += 1;
            offsets[to as usize] += 1;
        }
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        // Filled from each list's end: then an offset has come down to its list's start.
        let mut neighbours = vec![N::default(); sum as usize];
        for (from, to, weight) in generator.iter().filter(|edge| edge.0 != edge.1) {
            for (from, to) in [(from, to), (to, from)] {
                offsets[from as usize] -= 1;
                neighbours[offsets[from as usize] as usize] = N::new(to, weight);
            }
        }
        let mut stored = Self { offsets, neighbours };
        stored.squish();
        stored
    }

    /// Sorts each list and removes duplicates, in place.
    fn squish(&mut self) {
        let mut kept = 0;
        for vertex in 0..self.offsets.len() - 1 {
            let list = self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize;
            self.neighbours[list.clone()].sort_unstable();
            self.offsets[vertex] = kept as u64;
            let first = kept;
            for edge in list {
                let neighbour = self.neighbours[edge];
                if kept == first || self.neighbours[kept - 1].vertex() != neighbour.vertex() {
                    self.neighbours[kept] = neighbour;
                    kept += 1;
                }
            }
        }
        if let Some(end) = self.offsets.last_mut() {
            *end = kept as u64;
        }
        self.neighbours.truncate(kept);
    }
}

/// A graph in the program's memory.
#[derive(Debug)]
pub(crate) struct Graph<N> {
    index: Array<u64>,
    neighbours: Array<N>,
}

impl<N: Neighbour> Graph<N> {
    /// Reads the graph as from a serialised file: the kernel writes the neighbours front to back, then all threads write
    /// the pointers. (Offsets are read into a vector of their own that is freed at once; it is left out.)
    pub(crate) fn load<M: Memory + ?Sized>(memory: &mut M, stored: &Stored<N>, threads: Threads) -> Self {
        let mut graph = Self::untouched(memory, stored.offsets.len() - 1, stored.neighbours.len());
        memory.thread(0);
        graph.write_list(memory, 0, &stored.neighbours, Token::NONE);
        graph.copy_index(memory, &stored.offsets, threads);
        graph
    }

    /// Room for a graph.
    pub(crate) fn untouched<M: Memory + ?Sized>(memory: &mut M, vertices: usize, directed: usize) -> Self {
        let neighbours = Array::new(memory, directed, N::default(), "graph neighbours");
        let index = Array::new(memory, vertices + 1, 0, "graph index");
        Self { index, neighbours }
    }

    /// Writes the pointers, each thread its part.
    pub(crate) fn copy_index<M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        offsets: &[u64],
        threads: Threads,
    ) {
        for (thread, range) in threads.even(offsets.len()) {
            memory.thread(thread);
            self.index.values_mut()[range.clone()].copy_from_slice(&offsets[range.clone()]);
            self.index.store_run(memory, range, Token::NONE);
        }
    }

    /// Writes neighbours from the place `start` on, which came with the value `after`.
    pub(crate) fn write_list<M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        start: usize,
        list: &[N],
        after: Token,
    ) {
        let range = start..start + list.len();
        self.neighbours.values_mut()[range.clone()].copy_from_slice(list);
        self.neighbours.store_run(memory, range, after);
    }

    /// Vertices.
    pub(crate) fn vertices(&self) -> usize {
        self.index.len() - 1
    }

    /// Edges, each counted in both directions.
    pub(crate) fn directed_edges(&self) -> usize {
        self.neighbours.len()
    }

    /// A vertex' degree, unreported.
    pub(crate) fn degree(&self, vertex: u32) -> u32 {
        let index = &self.index.values()[vertex as usize..];
        (index[1] - index[0]) as u32
    }

    /// A vertex' degree in a walk over all vertices.
    #[inline]
    pub(crate) fn next_degree<M: Memory + ?Sized>(&self, memory: &mut M, vertex: usize) -> u32 {
        if self.index.starts_line(vertex) {
            memory.load(self.index.address(vertex), Token::NONE);
        }
        self.degree(vertex as u32)
    }

    /// The neighbours of a vertex whose number came with the value `after`, from the `skip`-th on.
    #[inline]
    pub(crate) fn neighbours<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        vertex: u32,
        skip: usize,
        after: Token,
    ) -> Walk {
        let vertex = vertex as usize;
        let (start, token) = self.index.load(memory, vertex, after);
        let end = match self.index.starts_line(vertex + 1) {
            true => self.index.load(memory, vertex + 1, after).0,
            false => self.index.values()[vertex + 1],
        };
        let edge = (start as usize + skip).min(end as usize);
        Walk { edge, end: end as usize, index: token, line: token, fresh: true }
    }

    /// The neighbours of a vertex in a walk over all vertices, from the `skip`-th on.
    #[inline]
    pub(crate) fn next_neighbours<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        vertex: u32,
        skip: usize,
    ) -> Walk {
        let (start, index) = self.index.load_next(memory, vertex as usize);
        let end = start as usize + self.degree(vertex) as usize;
        Walk { edge: (start as usize + skip).min(end), end, index, line: index, fresh: true }
    }

    /// A vertex' neighbours, unreported.
    #[cfg(test)]
    pub(crate) fn list(&self, vertex: u32) -> &[N] {
        let start = self.index.values()[vertex as usize] as usize;
        &self.neighbours.values()[start..start + self.degree(vertex) as usize]
    }

    /// The next neighbour, with the number of the edge and the name of the value.
    #[inline]
    pub(crate) fn next<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        walk: &mut Walk,
    ) -> Option<(N, usize, Token)> {
        if walk.edge == walk.end {
            return None;
        }
        let edge = walk.edge;
        memory.compute(STEP_INSTRUCTIONS);
        if walk.fresh || self.neighbours.starts_line(edge) {
            walk.line = memory.load(self.neighbours.address(edge), walk.index);
            walk.fresh = false;
        }
        walk.edge += 1;
        Some((self.neighbours.values()[edge], edge, walk.line))
    }
}

/// A position in a list of neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    edge: usize,
    end: usize,
    index: Token,
    line: Token,
    fresh: bool,
}
