//! Breadth-first search, direction-optimising (Beamer, Asanovic, Patterson, SC 2012; GAPBS `bfs`).
//!
//! Top-down steps walk the neighbours of a queue; bottom-up steps let every vertex without a parent look for
//! one in a bitmap. An unvisited vertex holds its negative degree.

use isotherm_core::parameters::{Parameters, Preset, Spec};
use isotherm_core::{Bytes, parameters};

use super::csr::{AHEAD, Graph};
use super::frontier::{Bitmap, SlidingQueue};
use super::kernel::{Kernel, Reference, Size, Sources};
use super::schedule::Threads;
use super::settings::{THREADS, degree, gap, paper_graph, scale, trials};
use crate::{Array, Memory, Token, test};

/// Top-down to bottom-up: when the frontier's edges are more than this part of the unexplored ones.
const ALPHA: i64 = 15;
/// Bottom-up to top-down: when the frontier is smaller than this part of the vertices.
const BETA: usize = 18;
const CHUNK: usize = 1024;

parameters! {
    struct Settings {
        scale: u32 = scale("21"),
        degree: u64 = degree("4"),
        trials: u64 = trials("16", "ours: seconds, little of them loading (HybridTier's artifact: 256)"),
        threads: usize = THREADS,
    }
}

pub(crate) struct Bfs {
    parents: Array<i32>,
    queue: SlidingQueue,
    front: Bitmap,
    next: Bitmap,
    threads: Threads,
}

impl Bfs {
    fn reset(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) {
        self.threads.each(memory, graph.vertices(), |memory, vertex| {
            let degree = graph.next_degree(memory, vertex);
            self.parents.store_next(memory, vertex, -(degree.max(1) as i32));
        });
    }

    /// Returns the edges that leave the next frontier.
    fn top_down(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) -> i64 {
        let (mut scouted, mut line) = (0, Token::NONE);
        let window = self.queue.window();
        for (thread, range) in self.threads.even(window.len()) {
            memory.thread(thread);
            if memory.finished() {
                return 0;
            }
            let part = self.queue.part(&range);
            for place in part.clone() {
                graph.read_ahead(memory, self.queue.block(place, &part), |other| {
                    self.parents.read_ahead(other);
                });
                let vertex = self.queue.get(memory, place, part.start, &mut line);
                let mut walk = graph.neighbours(memory, vertex, 0, line);
                while let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
                    graph.read_on(memory, &walk, |other| self.parents.read_ahead(other));
                    let (parent, _) = self.parents.load(memory, neighbour as usize, token);
                    if parent < 0 {
                        self.parents.store(memory, neighbour as usize, vertex as i32, token);
                        self.queue.push(memory, neighbour);
                        scouted -= i64::from(parent);
                    }
                }
            }
        }
        scouted
    }

    /// Returns the size of the next frontier.
    fn bottom_up(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) -> usize {
        self.next.reset(memory);
        let mut awake = 0;
        for (thread, range) in self.threads.dynamic(graph.vertices(), CHUNK) {
            memory.thread(thread);
            if memory.finished() {
                return 0;
            }
            for vertex in range {
                if vertex.is_multiple_of(AHEAD) {
                    let unvisited = |vertex: usize| self.parents[vertex] < 0;
                    graph.read_first_ahead(memory, vertex, unvisited, |other| self.front.read_ahead(other));
                }
                if self.parents.load_next(memory, vertex).0 >= 0 {
                    continue;
                }
                let mut walk = graph.neighbours(memory, vertex as u32, 0, Token::NONE);
                while let Some((neighbour, _, token)) = graph.next(memory, &mut walk) {
                    if self.front.has(memory, neighbour as usize, token).0 {
                        self.parents.store(memory, vertex, neighbour as i32, Token::NONE);
                        self.next.set(memory, vertex, Token::NONE);
                        awake += 1;
                        break;
                    }
                }
            }
        }
        awake
    }

    /// Runs bottom-up steps from the queue's frontier until it is small, and returns it to the queue.
    fn sweep(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>) {
        let (window, mut line) = (self.queue.window(), Token::NONE);
        for (thread, range) in self.threads.even(window.len()) {
            memory.thread(thread);
            let first = window.start + range.start;
            for place in first..window.start + range.end {
                let vertex = self.queue.get(memory, place, first, &mut line);
                self.front.set(memory, vertex as usize, line);
            }
        }
        self.queue.slide();
        let mut awake = window.len();
        loop {
            let before = std::mem::replace(&mut awake, self.bottom_up(memory, graph));
            std::mem::swap(&mut self.front, &mut self.next);
            if memory.finished() || (awake < before && awake <= graph.vertices() / BETA) {
                break;
            }
        }
        self.front.enqueue(memory, &mut self.queue, graph.vertices(), self.threads);
        self.queue.slide();
    }

    fn search(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, source: u32) {
        self.reset(memory, graph);
        memory.thread(0);
        self.parents.store(memory, source as usize, source as i32, Token::NONE);
        self.queue.reset();
        self.queue.push(memory, source);
        self.queue.slide();
        self.next.reset(memory);
        self.front.reset(memory);
        let mut unexplored = graph.directed_edges() as i64;
        let mut scouted = i64::from(graph.degree(source));
        while !self.queue.window().is_empty() && !memory.finished() {
            if scouted > unexplored / ALPHA {
                self.sweep(memory, graph);
                scouted = 1;
            } else {
                unexplored -= scouted;
                scouted = self.top_down(memory, graph);
                self.queue.slide();
            }
        }
        self.threads.each(memory, graph.vertices(), |memory, vertex| {
            if self.parents.load_next(memory, vertex).0 < -1 {
                self.parents.store(memory, vertex, -1, Token::NONE);
            }
        });
    }
}

impl Kernel for Bfs {
    type Neighbour = u32;
    const SPECS: &'static [Spec] = Settings::SPECS;
    const PRESETS: &'static [Preset] = &[
        test(&[("scale", "15"), ("trials", "2")]),
        paper_graph(&[("scale", "31"), ("degree", "4"), ("trials", "256")]),
        gap(&[("scale", "27"), ("degree", "16"), ("trials", "64")]),
    ];
    const REFERENCE: Reference =
        Reference { footprints: [Bytes(103_400_000_000), Bytes(103_600_000_000)], cache: crate::XEON_4314 };
    const TITLE: &'static str = "direction-optimising breadth-first search";

    fn bytes(size: Size) -> f64 {
        // Parents, queue, two bitmaps.
        size.vertices * (4.0 + 4.0 + 0.25)
    }

    fn new(memory: &mut dyn Memory, graph: &Graph<u32>, _: &Parameters, threads: Threads) -> Self {
        let vertices = graph.vertices();
        Self {
            parents: Array::new(memory, vertices, 0, "bfs parents"),
            queue: SlidingQueue::new(memory, vertices),
            front: Bitmap::new(memory, vertices, "bfs frontier bitmap"),
            next: Bitmap::new(memory, vertices, "bfs frontier bitmap"),
            threads,
        }
    }

    fn trial(&mut self, memory: &mut dyn Memory, graph: &Graph<u32>, sources: &mut Sources) {
        let source = sources.pick(graph);
        self.search(memory, graph, source);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::testing::{NONE, each_graph};
    use super::*;

    /// Distances from `source`, or -1.
    pub(super) fn distances(graph: &Graph<u32>, source: u32) -> Vec<i32> {
        let mut found = vec![-1; graph.vertices()];
        found[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            for &neighbour in graph.list(vertex) {
                if found[neighbour as usize] < 0 {
                    found[neighbour as usize] = found[vertex as usize] + 1;
                    queue.push_back(neighbour);
                }
            }
        }
        found
    }

    #[test]
    fn parents_are_neighbours_one_step_nearer_to_the_source() {
        each_graph::<Bfs>(NONE, |bfs, graph, memory, sources| {
            for _ in 0..3 {
                let source = sources.pick(graph);
                bfs.search(memory, graph, source);
                let distances = distances(graph, source);
                for (vertex, &parent) in (0u32..).zip(bfs.parents.iter()) {
                    let distance = distances[vertex as usize];
                    match distance {
                        -1 => assert_eq!(parent, -1),
                        0 => assert_eq!(parent, source as i32),
                        _ => {
                            assert_eq!(distances[parent as usize], distance - 1);
                            assert!(graph.list(vertex).contains(&(parent as u32)));
                        }
                    }
                }
            }
        });
    }
}
