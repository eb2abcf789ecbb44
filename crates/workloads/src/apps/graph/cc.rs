//! Connected components by Afforest (Sutton, Ben-Nun, Barak, IPDPS 2018; GAPBS `cc`): the first two
//! neighbours of each vertex are linked, a sample gives the largest component, and only vertices outside it
//! are linked to their other neighbours. Compression makes each vertex point to its root.

use std::collections::HashMap;

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::csr::{AHEAD, Graph};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap, paper_graph, scale, trials};
use crate::{Array, Memory, Random, Token, test};

/// Neighbours of each vertex that are linked before sampling.
const ROUNDS: usize = 2;
const SAMPLES: usize = 1024;
const CHUNK: usize = 16_384;
/// Vertices between two checks for the end of the run.
const PATIENCE: usize = 1024;

parameters! {
    struct Settings {
        scale: u32 = scale("21"),
        degree: u64 = degree("4"),
        trials: u64 = trials("8", "ours: seconds, little of them loading (HybridTier's artifact: 256)"),
        threads: usize = THREADS,
    }
}

pub(crate) struct Components {
    components: Array<u32>,
    threads: Threads,
}

impl Components {
    /// Joins the trees of two vertices: the higher root points to the lower.
    fn link(&mut self, memory: &mut dyn Memory, from: u32, to: u32, after: Token) {
        let (mut one, mut one_token) = self.components.load(memory, from as usize, Token::NONE);
        let (mut other, mut other_token) = self.components.load(memory, to as usize, after);
        while one != other {
            let (high, low, token) = match one > other {
                true => (one, other, one_token),
                false => (other, one, other_token),
            };
            let (above, above_token) = self.components.load(memory, high as usize, token);
            if above == low {
                return;
            }
            if above == high {
                self.components.store(memory, high as usize, low, token);
                return;
            }
            (one, one_token) = self.components.load(memory, above as usize, above_token);
            (other, other_token) = self.components.load(memory, low as usize, token);
        }
    }

    fn compress(&mut self, memory: &mut dyn Memory) {
        for (thread, range) in self.threads.dynamic(self.components.len(), CHUNK) {
            memory.thread(thread);
            for vertex in range {
                if vertex % PATIENCE == 0 && memory.finished() {
                    return;
                }
                if vertex.is_multiple_of(AHEAD) && memory.reads_ahead() {
                    let parents = &self.components[vertex..];
                    parents.iter().take(AHEAD).for_each(|&parent| self.components.prefetch(parent as usize));
                }
                let (mut parent, mut token) = self.components.load_next(memory, vertex);
                loop {
                    let (root, root_token) = self.components.load(memory, parent as usize, token);
                    if root == parent {
                        break;
                    }
                    self.components.store(memory, vertex, root, Token::NONE);
                    (parent, token) = (root, root_token);
                }
            }
        }
    }

    /// Returns the component that most of a sample of vertices is in.
    fn sample(&self, memory: &mut dyn Memory, random: &mut Random) -> u32 {
        memory.thread(0);
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for _ in 0..SAMPLES {
            let vertex = random.below(self.components.len() as u64) as usize;
            *counts.entry(self.components.load(memory, vertex, Token::NONE).0).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|&(component, count)| (count, component));
        most.map_or(0, |(component, _)| component)
    }

    fn link_one(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, round: usize) {
        for (thread, range) in self.threads.dynamic(graph.vertices(), CHUNK) {
            memory.thread(thread);
            for vertex in range {
                if vertex % PATIENCE == 0 && memory.finished() {
                    return;
                }
                if vertex.is_multiple_of(AHEAD) {
                    graph.read_one_ahead(memory, vertex, round, |other| self.components.prefetch(other));
                    let parent = |other: usize| self.components[other] as usize;
                    graph.read_one_ahead(memory, vertex, round, |other| {
                        self.components.prefetch(parent(other));
                    });
                }
                let mut walk = graph.next_neighbours(memory, vertex as u32, round);
                if let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
                    self.link(memory, vertex as u32, neighbour, token);
                }
            }
        }
    }

    /// Links vertices outside a component to their neighbours after those of the first rounds.
    fn link_rest(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, largest: u32) {
        for (thread, range) in self.threads.dynamic(graph.vertices(), CHUNK) {
            memory.thread(thread);
            for vertex in range {
                if vertex % PATIENCE == 0 && memory.finished() {
                    return;
                }
                if self.components.load_next(memory, vertex).0 == largest {
                    continue;
                }
                let mut walk = graph.neighbours(memory, vertex as u32, ROUNDS, Token::NONE);
                while let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
                    self.link(memory, vertex as u32, neighbour, token);
                }
            }
        }
    }
}

impl Kernel for Components {
    type Neighbour = u32;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "15"), ("trials", "1")]),
        paper_graph(&[("scale", "31"), ("degree", "4"), ("trials", "256")]),
        gap(&[("scale", "27"), ("degree", "16"), ("trials", "16")]),
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(94_300_000_000), Bytes(94_500_000_000)], cache: crate::XEON_4314 };
    const TITLE: &'static str = "connected components (Afforest)";

    fn bytes(size: Size) -> f64 {
        size.vertices * 4.0
    }

    fn new(memory: &mut dyn Memory, graph: &Graph<u32>, _: &Parameters, threads: Threads) -> Self {
        Self { components: Array::new(memory, graph.vertices(), 0, "cc components"), threads }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, sources: &mut Sources) {
        self.threads.each(memory, graph.vertices(), |memory, vertex| {
            self.components.store_next(memory, vertex, vertex as u32);
        });
        for round in 0..ROUNDS {
            self.link_one(memory, graph, round);
            self.compress(memory);
        }
        let largest = self.sample(memory, &mut sources.0);
        self.link_rest(memory, graph, largest);
        self.compress(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{NONE, each_graph};
    use super::*;

    #[test]
    fn two_vertices_have_the_same_component_where_a_search_reaches_one_from_the_other() {
        each_graph::<Components>(NONE, |cc, graph, memory, sources| {
            cc.trial(memory, graph, sources);
            let mut expected = vec![u32::MAX; graph.vertices()];
            for first in 0..graph.vertices() as u32 {
                let mut stack = vec![first];
                while let Some(vertex) = stack.pop() {
                    if expected[vertex as usize] == u32::MAX {
                        expected[vertex as usize] = first;
                        stack.extend(graph.list(vertex));
                    }
                }
            }
            // The lowest vertex of a component is its root.
            assert_eq!(cc.components[..], expected);
        });
    }
}
