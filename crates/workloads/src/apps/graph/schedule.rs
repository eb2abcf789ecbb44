//! The schedules of parallel loops: the thread of each part, and the order of the parts.

use std::ops::Range;

use crate::{Array, Memory, Token};

/// Iterations that a thread does before the next one's turn where the original divides a loop evenly.
const TURN: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads(pub(crate) usize);

impl Threads {
    /// OpenMP's static schedule: a contiguous part for each thread; all of them advance together.
    pub(crate) fn even(self, iterations: usize) -> impl Iterator<Item = (u16, Range<usize>)> {
        let part = iterations.div_ceil(self.0).max(1);
        (0..part.div_ceil(TURN)).flat_map(move |turn| {
            (0..self.0).filter_map(move |thread| {
                let end = (part * (thread + 1)).min(iterations);
                let start = part * thread + turn * TURN;
                (start < end)
                    .then_some((thread as u16, start..end.min(start + TURN).min(part * thread + part)))
            })
        })
    }

    pub(crate) fn each(
        self,
        memory: &mut dyn Memory,
        iterations: usize,
        mut work: impl FnMut(&mut dyn Memory, usize),
    ) {
        for (thread, range) in self.even(iterations) {
            memory.thread(thread);
            range.for_each(|iteration| work(memory, iteration));
        }
    }

    pub(crate) fn write<T: Copy>(self, memory: &mut dyn Memory, array: &Array<T>) {
        for (thread, range) in self.even(array.len()) {
            memory.thread(thread);
            array.store_run(memory, range, Token::NONE);
        }
    }

    /// OpenMP's dynamic schedule: the next `chunk` iterations for the next thread.
    pub(crate) fn dynamic(
        self,
        iterations: usize,
        chunk: usize,
    ) -> impl Iterator<Item = (u16, Range<usize>)> {
        (0..iterations.div_ceil(chunk))
            .map(move |turn| ((turn % self.0) as u16, turn * chunk..(turn * chunk + chunk).min(iterations)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_iteration_is_done_once_and_an_even_part_by_one_thread() {
        for (threads, iterations) in [(1, 5), (3, 10_000), (16, 4096), (16, 7), (4, 0)] {
            for dynamic in [false, true] {
                let mut seen = vec![0; iterations];
                let mut mark = |(thread, range): (u16, Range<usize>)| {
                    assert!(usize::from(thread) < threads);
                    range.for_each(|at| seen[at] += 1);
                };
                match dynamic {
                    true => Threads(threads).dynamic(iterations, 64).for_each(&mut mark),
                    false => Threads(threads).even(iterations).for_each(&mut mark),
                }
                assert!(seen.iter().all(|&count| count == 1), "{threads} threads, {iterations} iterations");
            }
        }
        assert!(
            Threads(2)
                .even(8)
                .all(|(thread, range)| range == (4 * usize::from(thread)..4 * usize::from(thread) + 4))
        );
    }
}
