//! A memory under load: one thread chases pointers while others load and store at a set pace, as in the
//! benchmark by which curves are measured.

#![allow(dead_code, unreachable_pub)] // each binary uses its part

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use isotherm_core::{Bytes, Counters};
use isotherm_machine::{BLOCK, Cores, LINE_BYTES, Lookup, Profile, ReorderWindows, Request, Triggers};

/// Threads beside the chase: with 32 misses each in flight they saturate every memory here.
pub const GENERATORS: u16 = 100;

/// Bandwidth and latency over some blocks.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Bytes read and written, in GB/s.
    pub bandwidth: f64,
    /// Time of one link of the chase, in nanoseconds.
    pub latency: f64,
}

/// The machine's cores and memory, driven as the simulator drives them.
pub struct Bench {
    cores: Cores,
    windows: ReorderWindows,
    /// Threads by their clock, the earliest first.
    ready: BinaryHeap<Reverse<(u64, u16)>>,
    stores: Vec<f64>,
    written: f64,
    count: usize,
    links: u64,
}

const INSTRUCTION_NS: f64 = 0.1;
const CHASE: Request = Request {
    instructions: 1,
    left: 0,
    dependence: 1,
    triggers: NOT_PREFETCHED,
    lone: false,
    useless: 0,
    store: false,
};
const NOT_PREFETCHED: Triggers = Triggers { stream: 0, pair: 0 };

impl Bench {
    /// Creates a machine of many wide cores and one tier, with `settings` of its profile.
    pub fn new(settings: &[(&str, &str)]) -> Self {
        let mut profile = Profile::builtin("pact").expect("it comes with Isotherm");
        profile.tiers.truncate(1);
        let cores = [
            ("core.cores", "101"),
            ("core.frequency", "10GHz"),
            ("core.instructions_per_cycle", "1"),
            ("core.reorder_window", "65536"),
            ("core.miss_registers", "32"),
            ("core.store_buffer", "128"),
            ("core.l2_registers", "0"),
        ];
        for (path, value) in cores.iter().chain(settings) {
            profile.set(path, value).expect("a valid number");
        }
        let mut cores = Cores::new(&profile, usize::from(GENERATORS) + 1);
        cores.begin_block();
        let ready = (0..=GENERATORS).map(|thread| Reverse((0, thread))).collect();
        let stores = (0..GENERATORS).map(|thread| f64::from(thread) / f64::from(GENERATORS)).collect();
        let windows = ReorderWindows::new(&profile, usize::from(GENERATORS) + 1);
        Self { cores, windows, ready, stores, written: 0.0, count: 0, links: 0 }
    }

    /// Returns a machine with one tier of a built-in curve.
    pub fn with_curve(name: &str) -> Self {
        Self::new(&[("tier.0.curve", name)])
    }

    /// Measures `blocks` blocks in which each generator has a miss every `gap` instructions of 100 ps, and
    /// `reads` is the share of reads in the bytes.
    pub fn run(&mut self, reads: f64, gap: u32, blocks: usize) -> Measured {
        let before = self.state();
        (0..blocks * BLOCK).for_each(|_| self.step(reads, gap));
        let after = self.state();
        let time = (after.0 - before.0) as f64;
        Measured {
            bandwidth: (after.1 - before.1) as f64 / time * 1e3,
            latency: (after.2 - before.2) as f64 / (after.3 - before.3) as f64 / 1e3,
        }
    }

    /// Returns the present latency of the tier, in nanoseconds.
    pub fn latency(&self) -> f64 {
        self.cores.tiers[0].latency as f64 / 1e3
    }

    fn state(&self) -> (u64, u64, u64, u64) {
        let mut counters = Counters::default();
        self.cores.counters(&mut counters);
        let bytes = counters.tiers[0].bytes_read.0 + counters.tiers[0].bytes_written.0;
        (self.cores.now(), bytes, self.cores.clock(GENERATORS), self.links)
    }

    fn access(&mut self, thread: u16, request: Request) {
        let left = self.windows.miss(thread, request.instructions);
        self.cores.access(thread, Request { left, ..request }, Lookup::default(), 0);
    }

    /// Executes the earliest thread up to its next miss.
    fn step(&mut self, reads: f64, gap: u32) {
        let Reverse((_, thread)) = self.ready.pop().expect("a thread");
        self.cores.enter(thread);
        if thread == GENERATORS {
            self.access(thread, CHASE);
            self.links += 1;
        } else {
            // A store reads its line and writes it back.
            let store = &mut self.stores[usize::from(thread)];
            *store += ((1.0 - reads) / reads).min(1.0);
            let stores = *store >= 1.0;
            *store -= f64::from(u8::from(stores));
            let request = Request {
                instructions: gap,
                left: 0,
                dependence: 0,
                triggers: NOT_PREFETCHED,
                lone: false,
                useless: 0,
                store: stores,
            };
            self.access(thread, request);
            // Lines beyond it are those of pages that are copied to this tier.
            self.written += ((1.0 - reads) / reads - 1.0).max(0.0);
            if self.written >= 1.0 {
                self.cores.tiers[0].copy(Bytes(LINE_BYTES), true);
                self.written -= 1.0;
            }
        }
        self.ready.push(Reverse((self.cores.clock(thread), thread)));
        self.count += 1;
        if self.count.is_multiple_of(BLOCK) {
            self.cores.end_block();
            self.cores.begin_block();
        }
    }
}

/// Parts of a curve's bandwidth to ask for, from an idle memory to one that cannot serve it all.
const LOADS: &[f64] = &[0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.95, 1.2];

/// Runs a chase beside generators that ask for growing parts of the curve's `end`, in GB/s. Each point
/// settles in `blocks` blocks and is measured in as many.
pub fn sweep(name: &str, reads: f64, end: f64, blocks: usize) -> Vec<Measured> {
    let mut bench = Bench::with_curve(name);
    let point = |load: &f64| {
        let gap = gap(reads, load * end);
        bench.run(reads, gap, blocks);
        bench.run(reads, gap, blocks)
    };
    LOADS.iter().map(point).collect()
}

/// Returns the instructions between two misses of a generator with which all of them ask for `bandwidth`
/// GB/s.
pub fn gap(reads: f64, bandwidth: f64) -> u32 {
    let bytes = f64::from(GENERATORS) * LINE_BYTES as f64 / reads;
    (bytes / bandwidth / INSTRUCTION_NS).round().max(1.0) as u32
}
