//! PageRank, pulling in place (Gauss-Seidel; GAPBS `pr`): each vertex adds up its neighbours' contributions,
//! and its own new one is seen at once. Ends when the scores' changes add up to less than the tolerance.

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::csr::{AHEAD, Graph};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap, paper_graph, scale, trials};
use crate::{Array, Memory, Token, test};

const DAMPING: f32 = 0.85;
const CHUNK: usize = 16_384;

parameters! {
    struct Settings {
        scale: u32 = scale("21"),
        degree: u64 = degree("4"),
        trials: u64 = trials("1", "ours: a run of seconds (HybridTier's artifact: 16)"),
        /// Iterations at most.
        iterations: u64 = count(1, 1 << 32, "1000")
            .source("HybridTier's and Memtis' artifacts, GAPBS' benchmark: -i1000"),
        /// Iterations end when the scores' changes add up to less.
        tolerance: f64 = number(0.0, 1.0, "0.0001")
            .source("HybridTier's and Memtis' artifacts, GAPBS' benchmark: -t1e-4"),
        threads: usize = THREADS,
    }
}

pub(crate) struct PageRank {
    scores: Array<f32>,
    contributions: Array<f32>,
    iterations: u64,
    tolerance: f64,
    threads: Threads,
}

impl PageRank {
    fn reset(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) {
        let score = 1.0 / graph.vertices() as f32;
        memory.thread(0);
        for vertex in 0..graph.vertices() {
            self.scores.store_next(memory, vertex, score);
        }
        self.threads.each(memory, graph.vertices(), |memory, vertex| {
            let degree = graph.next_degree(memory, vertex);
            self.contributions.store_next(memory, vertex, score / degree as f32);
        });
    }

    /// Runs one iteration; returns the sum of changes.
    fn iterate(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) -> f64 {
        let base = (1.0 - DAMPING) / graph.vertices() as f32;
        let mut error = 0.0;
        for (thread, range) in self.threads.dynamic(graph.vertices(), CHUNK) {
            memory.thread(thread);
            for vertex in range {
                if vertex % 1024 == 0 && memory.finished() {
                    return 0.0;
                }
                if vertex.is_multiple_of(AHEAD) {
                    graph.read_lists_ahead(memory, vertex, |other| self.contributions.read_ahead(other));
                }
                let mut incoming = 0.0;
                let mut walk = graph.next_neighbours(memory, vertex as u32, 0);
                while let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
                    graph.read_on(memory, &walk, |other| self.contributions.read_ahead(other));
                    incoming += self.contributions.load(memory, neighbour as usize, token).0;
                }
                let old = self.scores.load_next(memory, vertex).0;
                let new = base + DAMPING * incoming;
                error += f64::from((new - old).abs());
                self.scores.store_next(memory, vertex, new);
                // The lists of neighbours may have evicted the line.
                let contribution = new / graph.degree(vertex as u32) as f32;
                self.contributions.store(memory, vertex, contribution, Token::NONE);
            }
        }
        error
    }
}

impl Kernel for PageRank {
    type Neighbour = u32;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "14")]),
        paper_graph(&[("scale", "31"), ("degree", "4"), ("trials", "16")]),
        gap(&[("scale", "27"), ("degree", "16"), ("trials", "16")]),
        Preset {
            name: "jenga",
            source: "Jenga 3.2: a random graph of 2^30 vertices, average degree 2",
            help: "The size of Jenga's graph; its default run is GAPBS' of 20 iterations.",
            values: &[("scale", "30"), ("degree", "2"), ("trials", "16"), ("iterations", "20")],
        },
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(102_900_000_000), Bytes(103_100_000_000)], cache: crate::XEON_4314 };
    const TITLE: &'static str = "PageRank";

    fn bytes(size: Size) -> f64 {
        size.vertices * 8.0
    }

    fn new(memory: &mut dyn Memory, graph: &Graph<u32>, parameters: &Parameters, threads: Threads) -> Self {
        let Settings { iterations, tolerance, .. } = Settings::read(parameters);
        Self {
            scores: Array::new(memory, graph.vertices(), 0.0, "pr scores"),
            contributions: Array::new(memory, graph.vertices(), 0.0, "pr contributions"),
            iterations,
            tolerance,
            threads,
        }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, _: &mut Sources) {
        self.reset(memory, graph);
        for _ in 0..self.iterations {
            if self.iterate(memory, graph) < self.tolerance {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::each_graph;
    use super::*;

    #[test]
    fn scores_are_the_fixed_point() {
        each_graph::<PageRank>(&[("tolerance", "0.000001")], |pr, graph, memory, sources| {
            pr.trial(memory, graph, sources);
            let vertices = graph.vertices();
            let mut scores = vec![1.0 / vertices as f64; vertices];
            for _ in 0..200 {
                let share = |&vertex: &u32| scores[vertex as usize] / graph.list(vertex).len() as f64;
                scores = (0..vertices as u32)
                    .map(|vertex| {
                        0.15 / vertices as f64 + 0.85 * graph.list(vertex).iter().map(share).sum::<f64>()
                    })
                    .collect();
            }
            for (found, expected) in pr.scores.iter().zip(&scores) {
                assert!((f64::from(*found) / expected - 1.0).abs() < 1e-3, "{found} instead of {expected}");
            }
        });
    }
}
