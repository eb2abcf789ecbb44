//! The graph in compressed sparse rows, as in GAPBS: a pointer for each vertex and its neighbours in order.

use super::neighbour::Neighbour;
use super::schedule::Threads;
use super::stored::Stored;
use crate::{Array, Memory, Token};

/// Instructions of a step along a list: load (most share a line), comparison, branch, increment.
pub(super) const STEP_INSTRUCTIONS: u32 = 4;
/// Vertices whose lists are read ahead at once.
pub(crate) const AHEAD: usize = 64;
/// Neighbours of one list that are read ahead at once.
const AHEAD_IN_LIST: usize = 64;
/// Neighbours to a line.
const AHEAD_STEP: usize = 16;

#[derive(Debug)]
pub(crate) struct Graph<N> {
    index: Array<u64>,
    neighbours: Array<N>,
}

impl<N: Neighbour> Graph<N> {
    /// Reads the graph as from a file: neighbours front to back, then all threads write the pointers.
    pub(crate) fn load(memory: &mut dyn Memory, stored: &mut Stored<N>, threads: Threads) -> Self {
        if !memory.reads_ahead() {
            let mut graph = Self::untouched(memory, stored.offsets.len() - 1, stored.neighbours.len());
            memory.thread(0);
            graph.write_list(memory, 0, &stored.neighbours, Token::NONE);
            graph.copy_index(memory, &stored.offsets, threads);
            return graph;
        }
        // Unless values are observed, the file's arrays become the program's, and copying is only reported.
        let neighbours = Array::of(memory, std::mem::take(&mut stored.neighbours), "graph neighbours");
        let index = Array::of(memory, std::mem::take(&mut stored.offsets), "graph index");
        memory.thread(0);
        neighbours.store_run(memory, 0..neighbours.len(), Token::NONE);
        threads.write(memory, &index);
        Self { index, neighbours }
    }

    pub(crate) fn untouched(memory: &mut dyn Memory, vertices: usize, directed: usize) -> Self {
        let neighbours = Array::new(memory, directed, N::default(), "graph neighbours");
        let index = Array::new(memory, vertices + 1, 0, "graph index");
        Self { index, neighbours }
    }

    pub(crate) fn copy_index(&mut self, memory: &mut dyn Memory, offsets: &[u64], threads: Threads) {
        self.index.copy_from_slice(offsets);
        threads.write(memory, &self.index);
    }

    /// Writes neighbours from the place `start` on, which came with the value `after`.
    pub(crate) fn write_list(&mut self, memory: &mut dyn Memory, start: usize, list: &[N], after: Token) {
        let range = start..start + list.len();
        self.neighbours[range.clone()].copy_from_slice(list);
        self.neighbours.store_run(memory, range, after);
    }

    pub(crate) fn vertices(&self) -> usize {
        self.index.len() - 1
    }

    /// Returns the number of edges, counted in both directions.
    pub(crate) fn directed_edges(&self) -> usize {
        self.neighbours.len()
    }

    pub(crate) fn degree(&self, vertex: u32) -> u32 {
        let index = &self.index[vertex as usize..];
        (index[1] - index[0]) as u32
    }

    #[inline]
    pub(crate) fn next_degree(&self, memory: &mut dyn Memory, vertex: usize) -> u32 {
        if self.index.starts_line(vertex) {
            memory.load(self.index.address(vertex), Token::NONE);
        }
        self.degree(vertex as u32)
    }

    /// Returns the neighbours of a vertex whose number came with the value `after`, from the `skip`-th on.
    #[inline]
    pub(crate) fn neighbours(&self, memory: &mut dyn Memory, vertex: u32, skip: usize, after: Token) -> Walk {
        let vertex = vertex as usize;
        let (start, token) = self.index.load(memory, vertex, after);
        let end = match self.index.starts_line(vertex + 1) {
            true => self.index.load(memory, vertex + 1, after).0,
            false => self.index[vertex + 1],
        };
        let edge = (start as usize + skip).min(end as usize);
        Walk { start: start as usize, edge, end: end as usize, index: token, line: token, fresh: true }
    }

    /// Returns a vertex' list and the name of the pointer to it; the vertex came with the value `after`.
    #[inline]
    pub(super) fn open(&self, memory: &mut dyn Memory, vertex: u32, after: Token) -> (u64, Token) {
        let walk = self.neighbours(memory, vertex, 0, after);
        (self.neighbours.address(walk.start), walk.index)
    }

    /// Returns the neighbours of a vertex in a walk over all vertices, from the `skip`-th on.
    #[inline]
    pub(crate) fn next_neighbours(&self, memory: &mut dyn Memory, vertex: u32, skip: usize) -> Walk {
        let (start, index) = self.index.load_next(memory, vertex as usize);
        let start = start as usize;
        let end = start + self.degree(vertex) as usize;
        Walk { start, edge: (start + skip).min(end), end, index, line: index, fresh: true }
    }

    /// Reads the lists of some vertices ahead, stage by stage, and calls `touch` for each neighbour.
    #[inline]
    pub(crate) fn read_ahead(&self, memory: &dyn Memory, vertices: &[u32], touch: impl Fn(usize)) {
        if !memory.reads_ahead() {
            return;
        }
        let start = |vertex: u32| self.index[vertex as usize] as usize;
        vertices.iter().for_each(|&vertex| self.index.read_ahead(vertex as usize));
        for &vertex in vertices.iter().filter(|&&vertex| self.degree(vertex) > 0) {
            self.neighbours.read_ahead(start(vertex));
        }
        for &vertex in vertices {
            let list = self.list(vertex).iter().take(AHEAD_IN_LIST);
            list.for_each(|neighbour| touch(neighbour.vertex() as usize));
        }
    }

    /// Reads the adjacent lists of the vertices from `first` on ahead of their use, likewise.
    #[inline]
    pub(crate) fn read_lists_ahead(&self, memory: &dyn Memory, first: usize, touch: impl Fn(usize)) {
        if !memory.reads_ahead() {
            return;
        }
        for vertex in first..self.vertices().min(first + AHEAD) {
            let list = self.list(vertex as u32).iter().take(AHEAD_IN_LIST);
            list.for_each(|neighbour| touch(neighbour.vertex() as usize));
        }
    }

    /// Reads one neighbour of each of these vertices ahead, the one after `skip` others.
    #[inline]
    pub(crate) fn read_one_ahead(
        &self,
        memory: &dyn Memory,
        first: usize,
        skip: usize,
        touch: impl Fn(usize),
    ) {
        if !memory.reads_ahead() {
            return;
        }
        for vertex in first..self.vertices().min(first + AHEAD) {
            if let Some(neighbour) = self.list(vertex as u32).get(skip) {
                touch(neighbour.vertex() as usize);
            }
        }
    }

    /// Prefetches the lists of the `wanted` vertices after the next [`AHEAD`] from `first` on, and reads the
    /// first neighbour of each of the next, whose lists were prefetched before.
    #[inline]
    pub(crate) fn read_first_ahead(
        &self,
        memory: &dyn Memory,
        first: usize,
        wanted: impl Fn(usize) -> bool,
        touch: impl Fn(usize),
    ) {
        if !memory.reads_ahead() {
            return;
        }
        let index = &self.index;
        let (middle, end) = (first + AHEAD, first + 2 * AHEAD);
        for vertex in (middle..end.min(self.vertices())).filter(|&vertex| wanted(vertex)) {
            self.neighbours.prefetch(index[vertex] as usize);
        }
        for vertex in (first..middle.min(self.vertices())).filter(|&vertex| wanted(vertex)) {
            if index[vertex] < index[vertex + 1] {
                touch(self.neighbours[index[vertex] as usize].vertex() as usize);
            }
        }
    }

    /// Reads the starts of some vertices' lists ahead: equally many reads for each, no branch on a value.
    #[inline]
    pub(crate) fn read_starts_ahead(&self, memory: &dyn Memory, vertices: &[N]) {
        if !memory.reads_ahead() {
            return;
        }
        let index = &self.index;
        let mut bounds = [(0, 0); AHEAD];
        for (bounds, vertex) in bounds.iter_mut().zip(vertices) {
            let vertex = vertex.vertex() as usize;
            *bounds = (index[vertex] as usize, index[vertex + 1] as usize);
        }
        for &(start, end) in &bounds[..vertices.len().min(AHEAD)] {
            for place in (0..AHEAD_IN_LIST).step_by(AHEAD_STEP) {
                self.neighbours.read_ahead((start + place).min(end.saturating_sub(1)));
            }
        }
    }

    /// Reads the next part of a long list ahead, when the walk reaches its start.
    #[inline]
    pub(crate) fn read_on(&self, memory: &dyn Memory, walk: &Walk, touch: impl Fn(usize)) {
        let passed = walk.edge - walk.start;
        if passed >= AHEAD_IN_LIST && passed.is_multiple_of(AHEAD_IN_LIST) && memory.reads_ahead() {
            let end = walk.end.min(walk.edge + AHEAD_IN_LIST);
            let list = &self.neighbours[walk.edge..end];
            list.iter().for_each(|neighbour| touch(neighbour.vertex() as usize));
        }
    }

    #[inline]
    pub(crate) fn list(&self, vertex: u32) -> &[N] {
        let start = self.index[vertex as usize] as usize;
        &self.neighbours[start..start + self.degree(vertex) as usize]
    }

    /// Returns the next neighbour, with the number of the edge and the name of the value.
    #[inline]
    pub(crate) fn next(&self, memory: &mut dyn Memory, walk: &mut Walk) -> Option<(N, usize, Token)> {
        let mut passed = 0;
        let found = self.step(memory, walk, &mut passed);
        if passed > 0 {
            memory.compute(passed);
        }
        found
    }

    /// Like [`Self::next`], but leaves instructions after the last load to the caller, in `passed`.
    #[inline]
    pub(crate) fn step(
        &self,
        memory: &mut dyn Memory,
        walk: &mut Walk,
        passed: &mut u32,
    ) -> Option<(N, usize, Token)> {
        if walk.edge == walk.end {
            return None;
        }
        let edge = walk.edge;
        *passed += STEP_INSTRUCTIONS;
        if walk.fresh || self.neighbours.starts_line(edge) {
            memory.compute(std::mem::take(passed));
            walk.line = memory.load(self.neighbours.address(edge), walk.index);
            walk.fresh = false;
        }
        walk.edge += 1;
        Some((self.neighbours[edge], edge, walk.line))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    start: usize,
    edge: usize,
    end: usize,
    index: Token,
    line: Token,
    fresh: bool,
}
