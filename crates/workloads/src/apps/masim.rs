//! masim: reads of equal frequency in patterns of very different cost, after DAMON's and PACT's (2.2).
//!
//! Every thread has its own memory, `footprint / threads`, divided into `regions`. A region keeps its
//! position (and chain) from visit to visit. With `processes` each thread is a process with its own address
//! space, as in PACT's colocated pair (5.9).

use isotherm_core::parameters::Preset;
use isotherm_core::{Bytes, choices, parameters};

use crate::{
    Built, LINE, Memory, ObjectSize, Permutation, Probability, Program, Random, Token, Workload, mix, paper,
    test,
};

/// Reads a thread makes before the next one's turn.
const TURN: u64 = 16;
/// Instructions of a read beside the load: index, bound, branch.
const READ_INSTRUCTIONS: u32 = 3;

choices! {
    enum Patterns {
        Mixed = "mixed",
        Sequential = "sequential",
        Random = "random",
        Chase = "chase",
    }
}

parameters! {
    struct Settings {
        /// Accesses of the threads; mixed: even threads read sequentially, odd ones chase pointers.
        pattern: Patterns = choice("mixed").source("PACT 2.2"),
        /// Memory of all threads together.
        footprint: Bytes = size(1 << 20, 1 << 42, "256M")
            .source("ours: 65,536 pages, a run of seconds (PACT: 6 GB a process)"),
        /// Reads of each thread.
        operations: u64 = count(1, 1 << 40, "32M").unit("reads")
            .source("PACT 2.2: 1.5 billion, 15 passes over 6 GB; here as many passes over 128 MiB"),
        /// Threads; they take turns every 16 reads.
        threads: u16 = count(1, 256, "2").source("PACT 2.2"),
        /// Whether each thread is a process of its own.
        processes: bool = flag("false").source("PACT 2.2: threads of one process; 5.9: two processes"),
        /// Regions of each thread's memory.
        regions: u64 = count(1, 4096, "1").source("PACT 2.2: uniform"),
        /// Share of reads that go to the phase's hot region; the others are uniform over all regions.
        hot_share: f64 = number(0.0, 1.0, "0")
            .source("PACT 2.2: uniform; masim's own examples heat one region a phase"),
        /// Phases of equal length; each heats the next region.
        phases: u64 = count(1, 4096, "1").source("PACT 2.2: stationary"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Sequential,
    Random,
    Chase,
}

struct Region {
    start: u64,
    lines: u64,
    position: u64,
    order: Permutation,
    last: Token,
}

impl Region {
    fn read(&mut self, pattern: Pattern, random: &mut Random, memory: &mut dyn Memory) {
        let line = match pattern {
            Pattern::Sequential => self.position,
            Pattern::Random => random.below(self.lines),
            Pattern::Chase => self.order.at(self.position),
        };
        self.position = if self.position + 1 == self.lines { 0 } else { self.position + 1 };
        let after = if pattern == Pattern::Chase { self.last } else { Token::NONE };
        memory.compute(READ_INSTRUCTIONS);
        self.last = memory.load(self.start + line * LINE, after);
    }
}

struct Masim {
    settings: Settings,
    lines: u64,
    hot_share: Probability,
    seed: u64,
}

pub(crate) static WORKLOAD: Workload = Workload {
    name: "masim",
    title: "sequential, random and pointer-chasing reads of equal frequency",
    source: "DAMON's masim, as extended in PACT 2.2",
    object_size: ObjectSize::Large,
    objects: "one line",
    hot_set_changes: false,
    hot_set: "none by default; moves with each phase if set",
    accesses: 68_194_304,
    specs: Settings::SPECS,
    presets: &[
        test(&[("footprint", "4M"), ("operations", "200k")]),
        paper("PACT 2.2: two threads of 6 GB", "The footprint of the paper.", &[("footprint", "12G")]),
        Preset {
            name: "sequential",
            source: "PACT 2.2: the traversing thread",
            help: "One thread that reads an array in order.",
            values: &[("pattern", "sequential"), ("threads", "1"), ("footprint", "128M")],
        },
        Preset {
            name: "random",
            source: "PACT 2.2: the chasing thread (\"pointer-chasing random accesses\")",
            help: "One thread that chases pointers in random order.",
            values: &[("pattern", "chase"), ("threads", "1"), ("footprint", "128M")],
        },
        Preset {
            name: "colocated",
            source: "PACT 5.9: two processes of 6 GB",
            help: "A traversing and a chasing process.",
            values: &[("processes", "true")],
        },
    ],
    reference_footprint: None,
    reference_cache: None,
    peak: 0.0,
    builder: |parameters, seed| build(Settings::read(parameters), seed),
};

fn build(settings: Settings, seed: u64) -> Built {
    let lines = settings.footprint.0 / LINE / u64::from(settings.threads) / settings.regions;
    if lines == 0 {
        return Err(
            "footprint holds no line for each region; expected a larger one or fewer threads and regions"
                .into(),
        );
    }
    let hot_share = Probability::new(settings.hot_share);
    Ok(Box::new(Masim { settings, lines, hot_share, seed }))
}

impl Masim {
    fn pattern(&self, thread: u16) -> Pattern {
        match self.settings.pattern {
            Patterns::Sequential => Pattern::Sequential,
            Patterns::Random => Pattern::Random,
            Patterns::Chase => Pattern::Chase,
            Patterns::Mixed if thread.is_multiple_of(2) => Pattern::Sequential,
            Patterns::Mixed => Pattern::Chase,
        }
    }

    fn enter(&self, thread: u16, memory: &mut dyn Memory) {
        if self.settings.processes {
            memory.process(thread);
        }
        memory.thread(thread);
    }

    fn prepare(&self, thread: u16, memory: &mut dyn Memory) -> Vec<Region> {
        self.enter(thread, memory);
        let context = match self.pattern(thread) {
            Pattern::Sequential => "masim sequential",
            Pattern::Random => "masim random",
            Pattern::Chase => "masim chase",
        };
        let prepare = |index: u64| {
            let start = memory.allocate(self.lines * LINE, context);
            memory.store_range(start, self.lines * LINE, Token::NONE);
            let order = Permutation::new(self.lines, mix(self.seed ^ mix(u64::from(thread) << 32 | index)));
            Region { start, lines: self.lines, position: 0, order, last: Token::NONE }
        };
        (0..self.settings.regions).map(prepare).collect()
    }

    #[inline]
    fn choose(&self, read: u64, random: &mut Random) -> usize {
        let Settings { regions, phases, operations: reads, .. } = self.settings;
        if regions == 1 {
            return 0;
        }
        let phase = (u128::from(read) * u128::from(phases) / u128::from(reads)) as u64;
        let hot = random.chance(self.hot_share);
        (if hot { phase % regions } else { random.below(regions) }) as usize
    }
}

impl Program for Masim {
    fn footprint(&self) -> Bytes {
        Bytes(self.lines * LINE * self.settings.regions * u64::from(self.settings.threads))
    }

    fn processes(&self) -> usize {
        if self.settings.processes { usize::from(self.settings.threads) } else { 1 }
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let Settings { threads, operations: reads, .. } = self.settings;
        let mut regions: Vec<_> = (0..threads).map(|thread| self.prepare(thread, memory)).collect();
        let mut random = Random::new(self.seed);
        let mut done = 0;
        while done < reads && !memory.finished() {
            let turn = done..(done + TURN).min(reads);
            for (thread, regions) in (0..threads).zip(&mut regions) {
                self.enter(thread, memory);
                let pattern = self.pattern(thread);
                for read in turn.clone() {
                    regions[self.choose(read, &mut random)].read(pattern, &mut random, memory);
                }
            }
            done = turn.end;
        }
    }
}
