//! Shortest paths from one source by delta-stepping (Meyer, Sanders 2003) with bucket fusion (Zhang and
//! others, CGO 2020; GAPBS `sssp`): each thread collects improved vertices in bins of width `delta`; the
//! lowest bins of all threads become the shared frontier. A thread goes on at once with its own bin of the
//! current distance while it is small. A vertex that has left a bin stays listed there and is skipped.
//!
//! The frontier has room for every directed edge; a run touches only its beginning.

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::bins::{Bin, Heap};
use super::csr::{AHEAD, Graph};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::neighbour::Weighted;
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap_as_paper, scale, trials};
use crate::{Array, Memory, Token, test};

/// The distance of vertices that are not reached.
const UNREACHED: i32 = i32::MAX / 2;
const CHUNK: usize = 64;
/// Largest bin, exclusive, with which a thread goes on by itself.
const FUSION: usize = 1000;

parameters! {
    struct Settings {
        scale: u32 = scale("18"),
        degree: u64 = degree("16"),
        trials: u64 = trials("4", "ours: a run of seconds (GAPBS' benchmark: 64)"),
        /// Width of a bin.
        delta: u32 = count(1, 1 << 20, "2").unit("of distance")
            .source("GAPBS' benchmark: -d2 for kron and urand"),
        threads: usize = THREADS,
    }
}

pub(crate) struct ShortestPaths {
    distances: Array<i32>,
    frontier: Array<u32>,
    /// Bins of each thread by distance / delta.
    bins: Vec<Vec<Bin>>,
    heap: Heap,
    delta: i32,
    threads: Threads,
}

impl ShortestPaths {
    fn relax(
        &mut self,
        memory: &mut dyn Memory,
        graph: &Graph<Weighted>,
        thread: usize,
        vertex: u32,
        after: Token,
    ) {
        let own = self.distances[vertex as usize];
        let mut walk = graph.neighbours(memory, vertex, 0, after);
        while let Some((Weighted { vertex, weight }, _, token)) = graph.next(memory, &mut walk) {
            graph.read_on(memory, &walk, |other| self.distances.read_ahead(other));
            let distance = own + weight;
            if distance < self.distances.load(memory, vertex as usize, token).0 {
                self.distances.store(memory, vertex as usize, distance, token);
                let bin = (distance / self.delta) as usize;
                let bins = &mut self.bins[thread];
                if bin >= bins.len() {
                    bins.resize_with(bin + 1, Bin::default);
                }
                bins[bin].push(memory, &mut self.heap, vertex);
            }
        }
    }

    fn relax_frontier(
        &mut self,
        memory: &mut dyn Memory,
        graph: &Graph<Weighted>,
        length: usize,
        bin: usize,
    ) {
        let mut line = Token::NONE;
        for (thread, range) in self.threads.dynamic(length, CHUNK) {
            memory.thread(thread);
            if memory.finished() {
                return;
            }
            for place in range.clone() {
                if (place - range.start).is_multiple_of(AHEAD) {
                    let block = &self.frontier[place..range.end.min(place + AHEAD)];
                    graph.read_ahead(memory, block, |other| self.distances.read_ahead(other));
                }
                if place == range.start || self.frontier.starts_line(place) {
                    line = memory.load(self.frontier.address(place), Token::NONE);
                }
                let vertex = self.frontier[place];
                if self.distances.load(memory, vertex as usize, line).0 >= self.delta * bin as i32 {
                    self.relax(memory, graph, usize::from(thread), vertex, line);
                }
            }
        }
    }

    /// Lets each thread go on with its own bin of the current distance while that is small.
    fn fuse(&mut self, memory: &mut dyn Memory, graph: &Graph<Weighted>, bin: usize) {
        for thread in 0..self.threads.0 {
            memory.thread(thread as u16);
            while let Some(own) = self.bins[thread].get_mut(bin) {
                if own.is_empty() || own.len() >= FUSION || memory.finished() {
                    break;
                }
                let vertices = own.take(memory);
                for (place, &vertex) in vertices.iter().enumerate() {
                    if place.is_multiple_of(AHEAD) {
                        let block = &vertices[place..vertices.len().min(place + AHEAD)];
                        graph.read_ahead(memory, block, |other| self.distances.read_ahead(other));
                    }
                    let (_, token) = self.distances.load(memory, vertex as usize, Token::NONE);
                    self.relax(memory, graph, thread, vertex, token);
                }
            }
        }
    }

    /// Copies all threads' lowest bins into the frontier; returns its length and the bin, `None` at the end.
    fn gather(&mut self, memory: &mut dyn Memory, current: usize) -> Option<(usize, usize)> {
        let lowest = |bins: &Vec<Bin>| (current..bins.len()).find(|&bin| !bins[bin].is_empty());
        let next = self.bins.iter().filter_map(lowest).min()?;
        let mut length = 0;
        for thread in 0..self.threads.0 {
            memory.thread(thread as u16);
            if let Some(bin) = self.bins[thread].get_mut(next).filter(|bin| !bin.is_empty()) {
                let vertices = bin.take(memory);
                let part = length..length + vertices.len();
                self.frontier[part.clone()].copy_from_slice(&vertices);
                self.frontier.store_run(memory, part.clone(), Token::NONE);
                length = part.end;
            }
        }
        Some((length, next))
    }

    fn search(&mut self, memory: &mut dyn Memory, graph: &Graph<Weighted>, source: u32) {
        memory.thread(0);
        self.distances.fill(UNREACHED);
        self.distances.store_run(memory, 0..self.distances.len(), Token::NONE);
        self.distances.store(memory, source as usize, 0, Token::NONE);
        self.frontier.store(memory, 0, source, Token::NONE);
        let mut next = Some((1, 0));
        while let Some((length, bin)) = next.filter(|_| !memory.finished()) {
            self.relax_frontier(memory, graph, length, bin);
            self.fuse(memory, graph, bin);
            next = self.gather(memory, bin);
        }
        // The vectors are a search's own.
        self.bins.iter_mut().flatten().for_each(|bin| bin.release(&mut self.heap));
        self.bins.iter_mut().for_each(Vec::clear);
    }
}

impl Kernel for ShortestPaths {
    type Neighbour = Weighted;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "13"), ("trials", "1")]),
        gap_as_paper(&[("scale", "27"), ("degree", "16"), ("trials", "64")]),
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(38_100_000_000), Bytes(38_600_000_000)], cache: super::XEON_4114 };
    const TITLE: &'static str = "shortest paths (delta-stepping)";

    fn bytes(size: Size) -> f64 {
        // Distances; of frontier and bins a run touches about five times as much.
        size.vertices * (4.0 + 20.0)
    }

    fn new(
        memory: &mut dyn Memory,
        graph: &Graph<Weighted>,
        parameters: &Parameters,
        threads: Threads,
    ) -> Self {
        Self {
            distances: Array::new(memory, graph.vertices(), 0, "sssp distances"),
            frontier: Array::new(memory, graph.directed_edges().max(1), 0, "sssp frontier"),
            bins: std::iter::repeat_with(Vec::new).take(threads.0).collect(),
            heap: Heap::default(),
            delta: Settings::read(parameters).delta as i32,
            threads,
        }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<Weighted>, sources: &mut Sources) {
        let source = sources.pick(graph);
        self.search(memory, graph, source);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::super::testing::{NONE, each_graph};
    use super::*;

    #[test]
    fn distances_are_dijkstras() {
        for settings in [NONE, &[("delta", "40")], &[("delta", "10000")]] {
            each_graph::<ShortestPaths>(settings, |sssp, graph, memory, sources| {
                for _ in 0..2 {
                    let source = sources.pick(graph);
                    sssp.search(memory, graph, source);
                    let mut expected = vec![UNREACHED; graph.vertices()];
                    let mut heap = BinaryHeap::from([(Reverse(0), source)]);
                    while let Some((Reverse(distance), vertex)) = heap.pop() {
                        if distance < expected[vertex as usize] {
                            expected[vertex as usize] = distance;
                            let further = |next: &Weighted| (Reverse(distance + next.weight), next.vertex);
                            heap.extend(graph.list(vertex).iter().map(further));
                        }
                    }
                    assert_eq!(sssp.distances[..], expected);
                }
            });
        }
    }
}
