//! Betweenness centrality by Brandes' algorithm from a few sources (GAPBS `bc`): a breadth-first search
//! counts shortest paths and marks edges to successors; dependencies add up from the last level on.

use std::ops::Range;

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::csr::Graph;
use super::frontier::{Bitmap, SlidingQueue};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap, paper_graph, scale, trials};
use crate::{Array, Memory, Token, test};

/// Vertices of a frontier that a thread takes at once.
const CHUNK: usize = 64;

parameters! {
    struct Settings {
        scale: u32 = scale("20"),
        degree: u64 = degree("4"),
        trials: u64 = trials("1", "ours: a run of seconds (FreqTier's and HybridTier's artifact: 8)"),
        /// Sources of a trial.
        iterations: u64 = count(1, 1 << 20, "4").unit("sources")
            .source("HybridTier's artifact, GAPBS' benchmark: -i4"),
        threads: usize = THREADS,
    }
}

pub(crate) struct Betweenness {
    scores: Array<f32>,
    paths: Array<f64>,
    successors: Bitmap,
    queue: SlidingQueue,
    depths: Array<i32>,
    dependencies: Array<f32>,
    iterations: u64,
    threads: Threads,
}

impl Betweenness {
    /// Searches from `source`; returns the places of each level in the queue.
    fn search(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, source: u32) -> Vec<Range<usize>> {
        memory.thread(0);
        fill(&mut self.depths, memory, -1);
        self.depths.store(memory, source as usize, 0, Token::NONE);
        self.paths.store(memory, source as usize, 1.0, Token::NONE);
        self.queue.reset();
        self.queue.push(memory, source);
        self.queue.slide();
        let mut levels = Vec::new();
        while !self.queue.window().is_empty() && !memory.finished() {
            levels.push(self.queue.window());
            self.expand(memory, graph, levels.len() as i32);
            self.queue.slide();
        }
        levels
    }

    #[inline]
    fn read_search(&self, neighbour: usize) {
        self.depths.read_ahead(neighbour);
        self.paths.read_ahead(neighbour);
    }

    #[inline]
    fn read_sums(&self, neighbour: usize) {
        self.paths.read_ahead(neighbour);
        self.dependencies.read_ahead(neighbour);
    }

    fn expand(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, depth: i32) {
        let (window, mut line) = (self.queue.window(), Token::NONE);
        for (thread, range) in self.threads.dynamic(window.len(), CHUNK) {
            memory.thread(thread);
            if memory.finished() {
                return;
            }
            let part = self.queue.part(&range);
            for place in part.clone() {
                graph.read_ahead(memory, self.queue.block(place, &part), |other| self.read_search(other));
                let vertex = self.queue.get(memory, place, part.start, &mut line);
                let mut walk = graph.neighbours(memory, vertex, 0, line);
                while let Some((neighbour, edge, token)) = graph.next(memory, &mut walk) {
                    graph.read_on(memory, &walk, |other| self.read_search(other));
                    let mut found = self.depths.load(memory, neighbour as usize, token).0;
                    if found == -1 {
                        self.depths.store(memory, neighbour as usize, depth, token);
                        self.queue.push(memory, neighbour);
                        found = depth;
                    }
                    if found == depth {
                        self.successors.set(memory, edge, Token::NONE);
                        let more = self.paths.load(memory, vertex as usize, line).0;
                        let paths = self.paths.load(memory, neighbour as usize, token).0;
                        self.paths.store(memory, neighbour as usize, paths + more, token);
                    }
                }
            }
        }
    }

    fn accumulate(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, level: Range<usize>) {
        let mut line = Token::NONE;
        for (thread, range) in self.threads.dynamic(level.len(), CHUNK) {
            memory.thread(thread);
            if memory.finished() {
                return;
            }
            let part = level.start + range.start..level.start + range.end;
            for place in part.clone() {
                graph.read_ahead(memory, self.queue.block(place, &part), |other| self.read_sums(other));
                let vertex = self.queue.get(memory, place, part.start, &mut line);
                let mut dependency = 0.0;
                let mut walk = graph.neighbours(memory, vertex, 0, line);
                while let Some((neighbour, edge, token)) = graph.next(memory, &mut walk) {
                    graph.read_on(memory, &walk, |other| self.read_sums(other));
                    if self.successors.has(memory, edge, Token::NONE).0 {
                        let own = self.paths.load(memory, vertex as usize, line).0;
                        let other = self.paths.load(memory, neighbour as usize, token).0;
                        let further = self.dependencies.load(memory, neighbour as usize, token).0;
                        dependency += (own / other * f64::from(1.0 + further)) as f32;
                    }
                }
                self.dependencies.store(memory, vertex as usize, dependency, line);
                let score = self.scores.load(memory, vertex as usize, line).0;
                self.scores.store(memory, vertex as usize, score + dependency, line);
            }
        }
    }

    fn normalise(&mut self, memory: &mut dyn Memory) {
        let mut largest = 0f32;
        let vertices = self.scores.len();
        self.threads.each(memory, vertices, |memory, vertex| {
            largest = largest.max(self.scores.load_next(memory, vertex).0);
        });
        self.threads.each(memory, vertices, |memory, vertex| {
            let score = self.scores.load_next(memory, vertex).0 / largest;
            self.scores.store_next(memory, vertex, score);
        });
    }
}

fn fill<T: Copy>(array: &mut Array<T>, memory: &mut dyn Memory, value: T) {
    array.fill(value);
    array.store_run(memory, 0..array.len(), Token::NONE);
}

impl Kernel for Betweenness {
    type Neighbour = u32;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "14"), ("iterations", "1")]),
        paper_graph(&[("scale", "31"), ("degree", "4"), ("trials", "8")]),
        gap(&[("scale", "27"), ("degree", "16"), ("trials", "16")]),
        Preset {
            name: "jenga",
            source: "Jenga 3.2: a Kronecker graph of 2^29 vertices, average degree 6",
            help: "The size of Jenga's graph; its runs are GAPBS' default of 16 trials of one source.",
            values: &[("scale", "29"), ("degree", "6"), ("trials", "16"), ("iterations", "1")],
        },
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(139_400_000_000), Bytes(139_600_000_000)], cache: crate::XEON_4314 };
    const TITLE: &'static str = "betweenness centrality (Brandes)";

    fn bytes(size: Size) -> f64 {
        // Scores, paths, queue, depths, dependencies; a bit an edge.
        size.vertices * (4.0 + 8.0 + 4.0 + 4.0 + 4.0) + size.directed_edges / 8.0
    }

    fn new(memory: &mut dyn Memory, graph: &Graph<u32>, parameters: &Parameters, threads: Threads) -> Self {
        let vertices = graph.vertices();
        Self {
            scores: Array::new(memory, vertices, 0.0, "bc scores"),
            paths: Array::new(memory, vertices, 0.0, "bc path counts"),
            successors: Bitmap::new(memory, graph.directed_edges(), "bc successors"),
            queue: SlidingQueue::new(memory, vertices),
            depths: Array::new(memory, vertices, 0, "bc depths"),
            dependencies: Array::new(memory, vertices, 0.0, "bc dependencies"),
            iterations: Settings::read(parameters).iterations,
            threads,
        }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, sources: &mut Sources) {
        memory.thread(0);
        fill(&mut self.scores, memory, 0.0);
        for _ in 0..self.iterations {
            let source = sources.pick(graph);
            memory.thread(0);
            fill(&mut self.paths, memory, 0.0);
            self.successors.reset(memory);
            let levels = self.search(memory, graph, source);
            memory.thread(0);
            fill(&mut self.dependencies, memory, 0.0);
            levels.into_iter().rev().for_each(|level| self.accumulate(memory, graph, level));
            if memory.finished() {
                return;
            }
        }
        self.normalise(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::each_graph;
    use super::*;

    /// Dependencies of all vertices on one source, from distances and path counts alone.
    fn dependencies(graph: &Graph<u32>, source: u32) -> Vec<f64> {
        let vertices = graph.vertices();
        let (mut depths, mut paths) = (vec![usize::MAX; vertices], vec![0.0; vertices]);
        (depths[source as usize], paths[source as usize]) = (0, 1.0);
        let mut order = vec![source];
        let mut next = 0;
        while next < order.len() {
            let vertex = order[next];
            next += 1;
            for &neighbour in graph.list(vertex) {
                let depth = depths[vertex as usize] + 1;
                if depths[neighbour as usize] == usize::MAX {
                    depths[neighbour as usize] = depth;
                    order.push(neighbour);
                }
                if depths[neighbour as usize] == depth {
                    paths[neighbour as usize] += paths[vertex as usize];
                }
            }
        }
        let mut found = vec![0.0; vertices];
        for &vertex in order.iter().rev() {
            let v = vertex as usize;
            let successors =
                graph.list(vertex).iter().filter(|&&next| depths[next as usize] == depths[v] + 1);
            found[v] =
                successors.map(|&next| paths[v] / paths[next as usize] * (1.0 + found[next as usize])).sum();
        }
        found
    }

    #[test]
    fn scores_are_the_sums_of_dependencies_over_the_largest() {
        each_graph::<Betweenness>(&[("iterations", "3")], |bc, graph, memory, sources| {
            let mut same = Sources(sources.0.clone());
            bc.trial(memory, graph, sources);
            let mut expected = vec![0.0; graph.vertices()];
            for _ in 0..3 {
                let source = same.pick(graph);
                expected.iter_mut().zip(dependencies(graph, source)).for_each(|(sum, more)| *sum += more);
            }
            let largest = expected.iter().copied().fold(0.0, f64::max);
            for (score, expected) in bc.scores.iter().zip(&expected) {
                assert!(
                    (f64::from(*score) - expected / largest).abs() < 1e-4,
                    "{score} instead of {expected} / {largest}"
                );
            }
        });
    }
}
