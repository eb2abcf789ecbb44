//! Triangle counting by ordered intersection (GAPBS `tc`): a triangle is counted for u > v > w, by a walk
//! along the sorted lists of u and v. A dense graph with skewed degrees (by a sample of a thousand vertices)
//! is first renumbered by decreasing degree, which shortens the lists below a vertex.

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::csr::Graph;
use super::generator::Shape;
use super::intersect::{Marks, intersect};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap_as_paper, scale, trials};
use crate::{Array, Memory, Token, test};

const CHUNK: usize = 64;
/// Renumber: at least this average degree, and the mean degree of the sample this much above its median.
const DENSE: usize = 10;
const SKEWED: f64 = 1.3;
const SAMPLES: usize = 1000;
const SUM_CHUNK: usize = 1 << 20;
/// Degree and vertex pairs that a core's cache holds while they are sorted: 256 KiB.
const SORTED_IN_CACHE: usize = 16_384;

parameters! {
    struct Settings {
        scale: u32 = scale("18"),
        degree: u64 = degree("16"),
        trials: u64 = trials("3", "GAPBS' benchmark"),
        threads: usize = THREADS,
    }
}

pub(crate) struct Triangles {
    renumbered: Option<Renumbering>,
    threads: Threads,
    /// Of the last trial.
    found: u64,
}

struct Renumbering {
    pairs: Array<(u64, u64)>,
    degrees: Array<u32>,
    numbers: Array<u32>,
    offsets: Array<u64>,
    graph: Graph<u32>,
}

impl Triangles {
    fn count(threads: Threads, memory: &mut dyn Memory, graph: &Graph<u32>) -> u64 {
        let mut total = 0;
        let by_lines = memory.reads_ahead();
        let mut marks = Marks::new(graph.vertices());
        for (thread, range) in threads.dynamic(graph.vertices(), CHUNK) {
            memory.thread(thread);
            for vertex in range {
                if memory.finished() {
                    return total;
                }
                let mut walk = graph.next_neighbours(memory, vertex as u32, 0);
                let list = graph.list(vertex as u32);
                let lower = list.partition_point(|&other| other <= vertex as u32);
                marks.add(list);
                for place in 0.. {
                    let Some((neighbour, _, token)) = graph.next(memory, &mut walk) else { break };
                    if place % 16 == 0 && place < lower {
                        graph.read_starts_ahead(memory, &list[place..lower.min(place + 16)]);
                    }
                    if neighbour > vertex as u32 {
                        break;
                    }
                    let pair = (vertex as u32, neighbour, place);
                    total += match by_lines {
                        true => intersect(memory, graph, pair, &marks, token),
                        false => step_by_step(memory, graph, pair, token),
                    };
                }
                marks.remove(list);
            }
        }
        total
    }

    fn worth_renumbering(graph: &Graph<u32>, sources: &mut Sources) -> bool {
        if graph.directed_edges() / 2 / graph.vertices() < DENSE {
            return false;
        }
        let samples = SAMPLES.min(graph.vertices());
        let mut degrees: Vec<u32> = (0..samples).map(|_| graph.degree(sources.pick(graph))).collect();
        degrees.sort_unstable();
        let mean = degrees.iter().map(|&degree| f64::from(degree)).sum::<f64>() / samples as f64;
        mean / SKEWED > f64::from(degrees[samples / 2])
    }
}

/// Counts and reads what [`intersect`] does, as the original does it: for runs whose values are observed.
fn step_by_step(
    memory: &mut dyn Memory,
    graph: &Graph<u32>,
    (high, low, _): (u32, u32, usize),
    after: Token,
) -> u64 {
    let (mut total, mut passed) = (0, 0);
    let mut others = graph.neighbours(memory, low, 0, after);
    let mut other = graph.step(memory, &mut others, &mut passed);
    memory.compute(std::mem::take(&mut passed));
    let mut own = graph.neighbours(memory, high, 0, Token::NONE);
    while let Some((third, ..)) = graph.step(memory, &mut own, &mut passed).filter(|found| found.0 <= low) {
        // The original needs no check for the end: the list of `low` contains `high`, above every third.
        while other.is_some_and(|found| found.0 < third) {
            other = graph.step(memory, &mut others, &mut passed);
        }
        total += u64::from(other.is_some_and(|found| found.0 == third));
    }
    memory.compute(passed);
    total
}

impl Renumbering {
    fn new(memory: &mut dyn Memory, graph: &Graph<u32>) -> Self {
        let vertices = graph.vertices();
        let pairs = Array::new(memory, vertices, (0, 0), "tc degrees and vertices");
        let degrees = Array::new(memory, vertices, 0, "tc degrees");
        let numbers = Array::new(memory, vertices, 0, "tc new numbers");
        let offsets = Array::new(memory, vertices + 1, 0, "tc offsets");
        let graph = Graph::untouched(memory, vertices, graph.directed_edges());
        Self { pairs, degrees, numbers, offsets, graph }
    }

    fn sort(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, threads: Threads) {
        let vertices = graph.vertices();
        threads.each(memory, vertices, |memory, vertex| {
            let degree = graph.next_degree(memory, vertex);
            self.pairs.store_next(memory, vertex, (u64::from(degree), vertex as u64));
        });
        self.pairs.sort_unstable_by(|a, b| b.cmp(a));
        // Quicksort: each level reads and writes everything, until the parts fit a core's cache.
        for _ in 0..=vertices.div_ceil(SORTED_IN_CACHE).ilog2() {
            for (thread, range) in threads.even(vertices) {
                memory.thread(thread);
                self.pairs.load_run(memory, range.clone(), Token::NONE);
                self.pairs.store_run(memory, range, Token::NONE);
            }
        }
    }

    fn make(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, threads: Threads) {
        self.sort(memory, graph, threads);
        threads.each(memory, graph.vertices(), |memory, number| {
            let ((degree, vertex), token) = self.pairs.load_next(memory, number);
            self.degrees.store_next(memory, number, degree as u32);
            self.numbers.store(memory, vertex as usize, number as u32, token);
        });
        let mut sum = 0;
        for (thread, range) in threads.dynamic(graph.vertices() + 1, SUM_CHUNK) {
            memory.thread(thread);
            for number in range {
                self.offsets.store_next(memory, number, sum);
                if number < graph.vertices() {
                    sum += u64::from(self.degrees.load_next(memory, number).0);
                }
            }
        }
        self.graph.copy_index(memory, &self.offsets, threads);
        threads.each(memory, graph.vertices(), |memory, vertex| self.copy_list(memory, graph, vertex));
    }

    fn copy_list(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, vertex: usize) {
        let (number, token) = self.numbers.load_next(memory, vertex);
        let mut list = Vec::with_capacity(graph.degree(vertex as u32) as usize);
        let mut walk = graph.next_neighbours(memory, vertex as u32, 0);
        while let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
            list.push(self.numbers.load(memory, neighbour as usize, token).0);
        }
        list.sort_unstable();
        let (start, token) = self.offsets.load(memory, number as usize, token);
        self.offsets.store(memory, number as usize, start + list.len() as u64, token);
        self.graph.write_list(memory, start as usize, &list, token);
    }
}

impl Kernel for Triangles {
    type Neighbour = u32;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "12"), ("trials", "1")]),
        gap_as_paper(&[("scale", "27"), ("degree", "16"), ("trials", "3")]),
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(40_200_000_000), Bytes(18_250_000_000)], cache: super::XEON_4114 };
    const TITLE: &'static str = "triangle counting";

    fn bytes(size: Size) -> f64 {
        if size.shape == Shape::Uniform || size.directed_edges / 2.0 / size.vertices < DENSE as f64 {
            return 0.0;
        }
        // Pairs, degrees, numbers and offsets, and the graph once more.
        size.vertices * (16.0 + 4.0 + 4.0 + 8.0 + 8.0) + size.directed_edges * 4.0
    }

    fn new(_: &mut dyn Memory, _: &Graph<u32>, _: &Parameters, threads: Threads) -> Self {
        Self { renumbered: None, threads, found: 0 }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, sources: &mut Sources) {
        if !Self::worth_renumbering(graph, sources) {
            self.found = Self::count(self.threads, memory, graph);
            return;
        }
        let renumbering = self.renumbered.get_or_insert_with(|| Renumbering::new(memory, graph));
        renumbering.make(memory, graph, self.threads);
        self.found = Self::count(self.threads, memory, &renumbering.graph);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{NONE, each_graph};
    use super::*;

    #[test]
    fn triangles_are_counted_once_with_and_without_renumbering() {
        let mut renumbered = 0;
        each_graph::<Triangles>(NONE, |tc, graph, memory, sources| {
            for _ in 0..2 {
                tc.trial(memory, graph, sources);
                let mut expected = 0;
                for one in 0..graph.vertices() as u32 {
                    for &two in graph.list(one).iter().filter(|&&two| two > one) {
                        let third =
                            |three: &&u32| **three > two && graph.list(one).binary_search(three).is_ok();
                        expected += graph.list(two).iter().filter(third).count() as u64;
                    }
                }
                assert_eq!(tc.found, expected);
            }
            renumbered += usize::from(tc.renumbered.is_some());
        });
        assert_eq!(renumbered, 1, "the dense Kronecker graph only");
    }
}
