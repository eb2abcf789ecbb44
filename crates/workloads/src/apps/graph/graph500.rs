//! `graph500`: breadth-first searches on a Kronecker graph.
//!
//! **Left out.** Validation, which Memtis' and HybridTier's runs switch off (`-V`); the threads' buffers of
//! discovered vertices (they stay in a core's cache); compaction of isolated vertices.

use isotherm_core::{Bytes, parameters};

use super::generator::{Generator, Shape};
use super::schedule::Threads;
use super::settings::{THREADS, degree, scale};
use crate::{Array, Built, Memory, ObjectSize, Program, Random, Token, Workload, mix, paper, test};

/// Instructions of a step along edges or neighbours beside its loads: indices, comparison, branch.
const STEP_INSTRUCTIONS: u32 = 4;
/// Edges or vertices of a list that a thread takes at once.
const CHUNK: usize = 1024;
/// Marks a vertex without a predecessor.
const NONE: i64 = -1;

parameters! {
    struct Settings {
        scale: u32 = scale("17").source("ours: about 100 MiB, a run of seconds (Jenga 3.2: 27)"),
        degree: u64 = degree("16"),
        /// Searches, each from another root.
        roots: u64 = count(1, 1 << 20, "16").source("ours: a run of seconds (Graph500, Jenga 3.2: 64)"),
        threads: usize = THREADS,
    }
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "graph500",
    title: "top-down breadth-first search on a Kronecker graph",
    source: "Graph500's reference code, as run in Memtis and Jenga 3.2",
    object_size: ObjectSize::Large,
    objects: "arrays of the graph's size",
    hot_set_changes: false,
    hot_set: "well-connected vertices in the predecessors",
    accesses: 98_280_105,
    specs: Settings::SPECS,
    presets: &[
        test(&[("scale", "12"), ("roots", "2")]),
        paper(
            "Jenga 3.2: 128 million vertices, degree 16, 64 keys",
            "The graph of the paper.",
            &[("scale", "27"), ("roots", "64")],
        ),
    ],
    reference_footprint: Some(Bytes(73_000_000_000)),
    // Jenga's Xeon Gold 6230: 27.5 MiB.
    reference_cache: Some(Bytes(55 << 19)),
    peak: 1.1,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

struct Graph500 {
    generator: Generator,
    roots: u64,
    threads: Threads,
}

fn build(settings: Settings, seed: u64) -> Built {
    let Settings { scale, degree, roots, threads } = settings;
    let generator = Generator { shape: Shape::Kronecker, scale, degree, seed };
    Ok(Box::new(Graph500 { generator, roots, threads: Threads(threads) }))
}

struct Run {
    edges: Array<[i64; 2]>,
    /// Start and end of each vertex' neighbours.
    lists: Array<[i64; 2]>,
    neighbours: Array<i64>,
    predecessors: Array<i64>,
    /// Vertices in the order of discovery.
    order: Array<i64>,
    threads: Threads,
}

impl Run {
    fn new(memory: &mut dyn Memory, generator: &Generator, threads: Threads) -> Self {
        let mut edges = Array::new(memory, generator.edges(), [0; 2], "graph500 edge list");
        for (values, (from, to, _)) in edges.iter_mut().zip(generator.iter()) {
            *values = [i64::from(from), i64::from(to)];
        }
        threads.write(memory, &edges);
        let mut lists = Array::new(memory, generator.vertices(), [0; 2], "graph500 list bounds");
        let ends = count_degrees(memory, &edges, &mut lists, threads);
        let neighbours = Array::new(memory, ends as usize, 0, "graph500 neighbours");
        let mut run = Self {
            edges,
            lists,
            neighbours,
            predecessors: Array::new(memory, generator.vertices(), 0, "graph500 predecessors"),
            order: Array::new(memory, generator.vertices(), 0, "graph500 vertex list"),
            threads,
        };
        run.scatter(memory);
        run.pack(memory);
        run
    }

    fn scatter(&mut self, memory: &mut dyn Memory) {
        let mut token = Token::NONE;
        for (thread, range) in self.threads.even(self.edges.len()) {
            memory.thread(thread);
            if memory.finished() {
                return;
            }
            for edge in range {
                let ([one, other], line) = self.edges.load_next(memory, edge);
                token = if self.edges.starts_line(edge) { line } else { token };
                if one == other {
                    continue;
                }
                for (from, to) in [(one, other), (other, one)] {
                    let ([start, end], found) = self.lists.load(memory, from as usize, token);
                    self.lists.store(memory, from as usize, [start, end + 1], token);
                    self.neighbours.store(memory, end as usize, to, found);
                }
            }
        }
    }

    fn pack(&mut self, memory: &mut dyn Memory) {
        for (thread, range) in self.threads.even(self.lists.len()) {
            memory.thread(thread);
            if memory.finished() {
                return;
            }
            for vertex in range {
                let ([start, end], _) = self.lists.load_next(memory, vertex);
                let list = start as usize..end as usize;
                self.neighbours.load_run(memory, list.clone(), Token::NONE);
                let values = &mut self.neighbours[list];
                values.sort_unstable();
                let kept = dedup(values);
                self.neighbours.store_run(memory, start as usize..start as usize + kept, Token::NONE);
                self.lists.store_next(memory, vertex, [start, start + kept as i64]);
            }
        }
    }

    /// Returns a vertex with a neighbour that was no root before.
    fn root(&self, random: &mut Random, used: &mut Vec<i64>) -> Option<i64> {
        for _ in 0..10 * self.lists.len() {
            let vertex = random.below(self.lists.len() as u64) as i64;
            let [start, end] = self.lists[vertex as usize];
            if start < end && !used.contains(&vertex) {
                used.push(vertex);
                return Some(vertex);
            }
        }
        None
    }

    fn search(&mut self, memory: &mut dyn Memory, root: i64) {
        self.predecessors.fill(NONE);
        self.threads.write(memory, &self.predecessors);
        memory.thread(0);
        self.order.store(memory, 0, root, Token::NONE);
        self.predecessors.store(memory, root as usize, root, Token::NONE);
        let (mut level, mut end) = (0..1, 1);
        while !level.is_empty() && !memory.finished() {
            for (thread, range) in self.threads.dynamic(level.len(), CHUNK) {
                memory.thread(thread);
                for place in level.start + range.start..level.start + range.end {
                    if memory.finished() {
                        return;
                    }
                    end = self.visit(memory, place, end);
                }
            }
            level = level.end..end;
        }
    }

    /// Discovers the neighbours of the vertex at a place of the list that ends at `end`; returns the new end.
    fn visit(&mut self, memory: &mut dyn Memory, place: usize, mut end: usize) -> usize {
        let (vertex, token) = self.order.load(memory, place, Token::NONE);
        let ([start, stop], token) = self.lists.load(memory, vertex as usize, token);
        let mut line = token;
        for edge in start as usize..stop as usize {
            memory.compute(STEP_INSTRUCTIONS);
            if edge == start as usize || self.neighbours.starts_line(edge) {
                line = memory.load(self.neighbours.address(edge), token);
            }
            let neighbour = self.neighbours[edge] as usize;
            if self.predecessors.load(memory, neighbour, line).0 == NONE {
                self.predecessors.store(memory, neighbour, vertex, line);
                self.order.store(memory, end, neighbour as i64, Token::NONE);
                end += 1;
            }
        }
        end
    }
}

/// Counts each vertex' edges, then turns counts into starts; returns the number of neighbours.
fn count_degrees(
    memory: &mut dyn Memory,
    edges: &Array<[i64; 2]>,
    lists: &mut Array<[i64; 2]>,
    threads: Threads,
) -> i64 {
    let mut token = Token::NONE;
    for (thread, range) in threads.even(edges.len()) {
        memory.thread(thread);
        if memory.finished() {
            return 0;
        }
        for edge in range {
            let ([one, other], line) = edges.load_next(memory, edge);
            token = if edges.starts_line(edge) { line } else { token };
            if one != other {
                for vertex in [one, other] {
                    let ([count, _], _) = lists.load(memory, vertex as usize, token);
                    lists.store(memory, vertex as usize, [count + 1, 0], token);
                }
            }
        }
    }
    let mut sum = 0;
    for (thread, range) in threads.dynamic(lists.len(), lists.len().div_ceil(threads.0)) {
        memory.thread(thread);
        for vertex in range {
            let ([count, _], _) = lists.load_next(memory, vertex);
            lists.store_next(memory, vertex, [sum, sum]);
            sum += count;
        }
    }
    sum
}

/// Moves the different ones of sorted values to the front; returns their number.
fn dedup(values: &mut [i64]) -> usize {
    let mut kept = 0;
    for at in 0..values.len() {
        if kept == 0 || values[kept - 1] != values[at] {
            values[kept] = values[at];
            kept += 1;
        }
    }
    kept
}

impl Program for Graph500 {
    fn footprint(&self) -> Bytes {
        let (vertices, edges) = (self.generator.vertices() as u64, self.generator.edges() as u64);
        Bytes(vertices * (16 + 8 + 8) + edges * (16 + 2 * 8))
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut run = Run::new(memory, &self.generator, self.threads);
        let (mut random, mut used) = (Random::new(mix(self.generator.seed ^ 0x500)), Vec::new());
        for _ in 0..self.roots {
            let Some(root) = run.root(&mut random, &mut used).filter(|_| !memory.finished()) else { return };
            run.search(memory, root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn predecessors_are_one_step_nearer_to_the_root_and_lists_hold_each_edge_once() {
        let mut memory = CountingMemory::default();
        let generator = Generator { shape: Shape::Kronecker, scale: 10, degree: 4, seed: 3 };
        let mut run = Run::new(&mut memory, &generator, Threads(5));
        let mut expected = vec![std::collections::BTreeSet::new(); generator.vertices()];
        for (from, to, _) in generator.iter().filter(|edge| edge.0 != edge.1) {
            expected[from as usize].insert(i64::from(to));
            expected[to as usize].insert(i64::from(from));
        }
        let list = |run: &Run, vertex: usize| {
            let [start, end] = run.lists[vertex];
            run.neighbours[start as usize..end as usize].to_vec()
        };
        (0..expected.len())
            .for_each(|vertex| assert!(expected[vertex].iter().copied().eq(list(&run, vertex))));
        let (mut random, mut used) = (Random::new(1), Vec::new());
        for _ in 0..3 {
            let root = run.root(&mut random, &mut used).expect("edges");
            run.search(&mut memory, root);
            let (mut depths, mut queue) = (vec![-1; expected.len()], vec![root]);
            depths[root as usize] = 0;
            let mut next = 0;
            while next < queue.len() {
                let vertex = queue[next] as usize;
                next += 1;
                for &neighbour in &expected[vertex] {
                    if depths[neighbour as usize] < 0 {
                        depths[neighbour as usize] = depths[vertex] + 1;
                        queue.push(neighbour);
                    }
                }
            }
            for (vertex, &predecessor) in run.predecessors.iter().enumerate() {
                match depths[vertex] {
                    -1 => assert_eq!(predecessor, NONE),
                    0 => assert_eq!(predecessor, root),
                    depth => {
                        assert_eq!(depths[predecessor as usize], depth - 1);
                        assert!(expected[vertex].contains(&predecessor));
                    }
                }
            }
        }
        assert_eq!(used.len(), 3);
    }
}
