//! The memory that turns a workload's accesses into a trace: it keeps those that miss the last-level cache.

use std::ops::ControlFlow;

use isotherm_core::cache::{Cache, Geometry, LINE_SHIFT};
use isotherm_trace::dataflow::Dataflow;
use isotherm_trace::{Row, Rows};

use super::address_space::{AddressSpace, Allocation};
use crate::{Memory, Token};

/// Rows handed to the sink at once.
const CHUNK: usize = 1 << 16;

/// When a recording ends; the workload may end before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// After this many rows.
    pub misses: u64,
    /// After this many loads and stores.
    pub accesses: u64,
}

impl Limits {
    /// Until the workload ends.
    pub const NONE: Self = Self { misses: u64::MAX, accesses: u64::MAX };
}

/// Filters accesses through one cache that all threads share, and hands the misses on, in order, in chunks.
///
/// Each load, store and computed instruction counts as one instruction of its thread. Write-backs are not
/// recorded. The sink may take the rows' vectors or read them; the rest is cleared. It ends the recording
/// with [`ControlFlow::Break`], for example when a disk is full.
#[derive(Debug)]
pub struct MissRecorder<S> {
    cache: Cache,
    space: AddressSpace,
    threads: Vec<Dataflow>,
    thread: usize,
    process: u32,
    rows: Rows,
    limits: Limits,
    misses: u64,
    accesses: u64,
    stopped: bool,
    factor: f64,
    sink: S,
}

impl<S: FnMut(&mut Rows) -> ControlFlow<()>> MissRecorder<S> {
    /// Creates a recorder with a cache of this shape.
    pub fn new(cache: Geometry, limits: Limits, sink: S) -> Self {
        Self {
            cache: Cache::new(cache),
            space: AddressSpace::default(),
            threads: vec![Dataflow::new(0, 1.0)],
            thread: 0,
            process: 0,
            rows: Rows::default(),
            limits,
            misses: 0,
            accesses: 0,
            stopped: limits.misses == 0 || limits.accesses == 0,
            factor: 1.0,
            sink,
        }
    }

    /// Counts `factor` instructions for each reported one; before the run.
    #[must_use]
    pub fn with_factor(self, factor: f64) -> Self {
        Self { threads: vec![Dataflow::new(0, factor)], factor, ..self }
    }

    /// Rows so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Loads and stores so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns every allocation, in address order: says which structure an address belongs to.
    pub fn allocations(&self) -> &[Allocation] {
        self.space.allocations()
    }

    /// Hands the last rows to the sink and returns the address space.
    pub fn finish(mut self) -> AddressSpace {
        if !self.rows.is_empty() {
            self.hand_on();
        }
        self.space
    }

    fn hand_on(&mut self) {
        self.stopped |= (self.sink)(&mut self.rows).is_break();
        self.rows.clear();
    }

    #[inline]
    fn access(&mut self, address: u64, store: bool, after: Token) -> Token {
        if self.stopped {
            return Token::NONE;
        }
        let line = address >> LINE_SHIFT;
        self.accesses += 1;
        self.stopped = self.accesses == self.limits.accesses;
        let dataflow = &mut self.threads[self.thread];
        dataflow.execute(1);
        if self.cache.touch(line) {
            return dataflow.hit(line, after);
        }
        let (instructions, dependence, token) = dataflow.record(line, after);
        let (process, thread) = (self.process, self.thread as u32);
        self.rows.push(Row { process, thread, instructions, line, store, dependence });
        self.misses += 1;
        self.stopped |= self.misses == self.limits.misses;
        if self.rows.len() == CHUNK {
            self.hand_on();
        }
        token
    }
}

impl<S: FnMut(&mut Rows) -> ControlFlow<()>> Memory for MissRecorder<S> {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.space.allocate(bytes, context)
    }

    #[inline]
    fn thread(&mut self, thread: u16) {
        self.thread = usize::from(thread);
        while self.threads.len() <= self.thread {
            self.threads.push(Dataflow::new(self.threads.len() as u16, self.factor));
        }
    }

    #[inline]
    fn process(&mut self, process: u16) {
        self.process = u32::from(process);
    }

    #[inline]
    fn compute(&mut self, instructions: u32) {
        self.threads[self.thread].execute(u64::from(instructions));
    }

    #[inline]
    fn load(&mut self, address: u64, after: Token) -> Token {
        self.access(address, false, after)
    }

    #[inline]
    fn store(&mut self, address: u64, after: Token) {
        self.access(address, true, after);
    }

    fn finished(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::Bytes;
    use proptest::prelude::*;

    const LINE: u64 = 64;

    /// Runs `program` on a cache of `size` and returns its rows.
    fn rows_of(size: Bytes, limits: Limits, program: impl FnOnce(&mut dyn Memory)) -> Rows {
        let mut rows = Rows::default();
        let mut recorder =
            MissRecorder::new(Geometry::new(size, 16).expect("a valid size"), limits, |chunk| {
                chunk.iter().for_each(|row| rows.push(row));
                ControlFlow::Continue(())
            });
        program(&mut recorder);
        recorder.finish();
        rows
    }

    fn dependences(program: impl FnOnce(&mut dyn Memory)) -> Vec<u8> {
        rows_of(Bytes(64 << 10), Limits::NONE, program).dependence
    }

    #[test]
    fn a_pointer_chase_depends_on_the_miss_before() {
        let found = dependences(|memory| {
            let mut token = Token::NONE;
            (0..500).for_each(|step| token = memory.load(step * 7919 * LINE, token));
        });
        assert_eq!(found[0], 0);
        assert!(found[1..].iter().all(|&distance| distance == 1));
    }

    #[test]
    fn four_chains_in_turn_depend_on_the_fourth_miss_before() {
        let found = dependences(|memory| {
            let mut tokens = [Token::NONE; 4];
            for step in 0..500u64 {
                let chain = step as usize % 4;
                tokens[chain] = memory.load(step * 7919 * LINE, tokens[chain]);
            }
        });
        assert!(found[4..].iter().all(|&distance| distance == 4));
    }

    #[test]
    fn a_stream_depends_on_nothing() {
        let found = dependences(|memory| {
            memory.load_range(0, 1 << 20, Token::NONE);
        });
        assert_eq!(found.len(), 1 << 14);
        assert!(found.iter().all(|&distance| distance == 0));
    }

    /// `values[index[i]]` with 16 indices a line: the line misses, and 16 values depend on it at distances 1
    /// to 16.
    #[test]
    fn a_gather_depends_on_the_miss_of_its_index_line() {
        let found = dependences(|memory| {
            for i in 0..160u64 {
                let index = memory.load(i * 4, Token::NONE);
                memory.load((1 << 30) + i * 7919 * LINE, index);
            }
        });
        let expected: Vec<u8> = (0..10).flat_map(|_| 0..=16).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_value_older_than_the_reorder_window_is_waited_for_by_nobody() {
        let chase = |pause: u32| {
            dependences(move |memory| {
                let first = memory.load(0, Token::NONE);
                memory.compute(pause);
                memory.load(1 << 20, first);
            })
        };
        assert_eq!(chase(500), [0, 1]);
        assert_eq!(chase(600), [0, 0]);
    }

    #[test]
    fn a_hit_passes_its_dependence_on_and_another_threads_token_means_nothing() {
        let found = dependences(|memory| {
            memory.load(128, Token::NONE);
            memory.compute(1000);
            let pointer = memory.load(1 << 20, Token::NONE);
            let field = memory.load(128, pointer);
            memory.load(2 << 20, field);
            memory.thread(1);
            memory.load(3 << 20, field);
        });
        assert_eq!(found, [0, 0, 1, 0]);
    }

    #[test]
    fn instructions_are_counted_per_thread_with_hits_and_computation() {
        let rows = rows_of(Bytes(64 << 10), Limits::NONE, |memory| {
            memory.load(0, Token::NONE);
            memory.thread(1);
            memory.compute(10);
            memory.store(1 << 20, Token::NONE);
            memory.thread(0);
            memory.load(8, Token::NONE);
            memory.compute(5);
            memory.load(2 << 20, Token::NONE);
        });
        assert_eq!(rows.instructions, [1, 11, 7]);
        assert_eq!(rows.thread, [0, 1, 0]);
        assert_eq!(rows.store, [0, 1, 0]);
    }

    #[test]
    fn a_factor_multiplies_the_instructions_and_shortens_the_window() {
        let run = |factor| {
            let mut rows = Rows::default();
            let geometry = Geometry::new(Bytes(64 << 10), 16).expect("a valid size");
            let mut recorder = MissRecorder::new(geometry, Limits::NONE, |chunk| {
                chunk.iter().for_each(|row| rows.push(row));
                ControlFlow::Continue(())
            })
            .with_factor(factor);
            recorder.thread(1);
            let mut token = Token::NONE;
            for step in 0..4 {
                recorder.compute(99);
                token = recorder.load(step << 20, token);
            }
            recorder.finish();
            (rows.instructions, rows.dependence)
        };
        assert_eq!(run(1.0), (vec![100, 100, 100, 100], vec![0, 1, 1, 1]));
        assert_eq!(run(2.505), (vec![250, 251, 250, 251], vec![0, 1, 1, 1]), "fractions add up");
        assert_eq!(run(6.0), (vec![600, 600, 600, 600], vec![0, 0, 0, 0]));
    }

    #[test]
    fn limits_are_exact_and_end_the_workload() {
        let limits = Limits { misses: 10, accesses: u64::MAX };
        let rows = rows_of(Bytes(64 << 10), limits, |memory| {
            memory.load_range(0, 9 * LINE, Token::NONE);
            assert!(!memory.finished());
            memory.load_range(1 << 20, 9 * LINE, Token::NONE);
            assert!(memory.finished());
        });
        assert_eq!(rows.len(), 10);
        let limits = Limits { misses: u64::MAX, accesses: 5 };
        let rows =
            rows_of(Bytes(64 << 10), limits, |memory| (0..10).for_each(|_| memory.store(0, Token::NONE)));
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn a_sink_that_breaks_ends_the_recording() {
        let mut chunks = 0;
        let geometry = Geometry::new(Bytes(64 << 10), 16).expect("a valid size");
        let mut recorder = MissRecorder::new(geometry, Limits::NONE, |_| {
            chunks += 1;
            ControlFlow::Break(())
        });
        recorder.load_range(0, 64 << 20, Token::NONE);
        assert!(recorder.finished());
        assert_eq!(recorder.misses(), CHUNK as u64);
        recorder.finish();
        assert_eq!(chunks, 1);
    }

    proptest! {
        /// A row names only its own thread's misses, and exactly the cache's misses are recorded.
        #[test]
        fn rows_are_the_misses_and_name_earlier_ones(
            accesses in prop::collection::vec((0u16..3, 0u64..4096, any::<bool>(), any::<bool>(), 0u32..40), 1..2000)
        ) {
            let mut cache = Cache::new(Geometry::new(Bytes(64 << 10), 16).expect("a valid size"));
            let mut expected = Vec::new();
            let rows = rows_of(Bytes(64 << 10), Limits::NONE, |memory| {
                let mut tokens = [Token::NONE; 3];
                for &(thread, line, store, dependent, compute) in &accesses {
                    memory.thread(thread);
                    memory.compute(compute);
                    let after = if dependent { tokens[usize::from(thread)] } else { Token::NONE };
                    if store {
                        memory.store(line * LINE, after);
                    } else {
                        tokens[usize::from(thread)] = memory.load(line * LINE, after);
                    }
                    if !cache.touch(line) {
                        expected.push((u32::from(thread), line, store));
                    }
                }
            });
            let found: Vec<_> = rows.iter().map(|row| (row.thread, row.line, row.store)).collect();
            prop_assert_eq!(found, expected);
            let mut seen = [0u64; 3];
            for row in rows.iter() {
                prop_assert!(u64::from(row.dependence) <= seen[row.thread as usize]);
                seen[row.thread as usize] += 1;
            }
        }
    }
}
