//! masim: reads of equal frequency in patterns of very different cost.
//!
//! DAMON's masim (a simulator of memory access patterns) reads regions of memory in phases, each region sequentially or
//! at random. PACT (2.2) extended it to show that frequency is not criticality: two threads read memory of the same size
//! equally often, one traversing an array, the other chasing pointers in random order; each makes 1.5 billion loads. That is
//! the default here (`mixed`). Every thread has memory of its own, `footprint / threads`, divided into `regions`. With
//! `hot_share` set, one region in each phase takes that share of the thread's reads and the next phase heats the next
//! region: masim's phases with a hot region. Each region keeps its own position (and chain), so that revisiting a region
//! goes on where it was left.
//!
//! Kept: a chase is one cycle through all lines of its region, each address depending on the value read before; reads only,
//! after one pass of stores that fills the memory. Left out: masim's phases are timed, these are counted in reads. With
//! `processes` each thread is a process with an address space of its own, as in PACT's colocated pair (5.9).

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Parameters, Preset, Spec};

use crate::permutation::Permutation;
use crate::random::{Probability, Random, mix};
use crate::registry::{ObjectSize, PAPER_PRESET, TEST_PRESET, Workload};
use crate::{Memory, Program, Token, WorkloadError};

/// Bytes that one read stands for: a line, the unit of the papers' miss counts.
const LINE: u64 = 64;
/// Reads a thread makes before the next one's turn.
const TURN: u64 = 16;
/// Instructions of a read beside the load: index, bound, branch.
const READ_INSTRUCTIONS: u32 = 3;

const SPECS: &[Spec] = &[
    Spec {
        name: "pattern",
        kind: Kind::Choice(&["mixed", "sequential", "random", "chase"]),
        default: "mixed",
        unit: "",
        source: "PACT 2.2",
        help: "What threads do; mixed: even threads read sequentially, odd ones chase pointers.",
        scaled: false,
    },
    Spec {
        name: "footprint",
        kind: Kind::Size(Bytes(1 << 20), Bytes(1 << 42)),
        default: "256M",
        unit: "bytes",
        source: "ours: 65,536 pages, a run of seconds (PACT: 6 GB a process)",
        help: "Memory of all threads together.",
        scaled: false,
    },
    Spec {
        name: "operations",
        kind: Kind::Count(1, 1 << 40),
        default: "32M",
        unit: "reads",
        source: "PACT 2.2: 1.5 billion, 15 passes over 6 GB; here as many passes over 128 MiB",
        help: "Reads of each thread.",
        scaled: false,
    },
    Spec {
        name: "threads",
        kind: Kind::Count(1, 256),
        default: "2",
        unit: "",
        source: "PACT 2.2",
        help: "Threads; they take turns every 16 reads.",
        scaled: false,
    },
    Spec {
        name: "processes",
        kind: Kind::Flag,
        default: "false",
        unit: "",
        source: "PACT 2.2: threads of one process; 5.9: two processes",
        help: "Whether each thread is a process of its own.",
        scaled: false,
    },
    Spec {
        name: "regions",
        kind: Kind::Count(1, 4096),
        default: "1",
        unit: "",
        source: "PACT 2.2: uniform",
        help: "Regions of each thread's memory.",
        scaled: false,
    },
    Spec {
        name: "hot_share",
        kind: Kind::Number(0.0, 1.0),
        default: "0",
        unit: "",
        source: "PACT 2.2: uniform; masim's own examples heat one region a phase",
        help: "Share of reads that go to the phase's hot region; the others are uniform over all regions.",
        scaled: false,
    },
    Spec {
        name: "phases",
        kind: Kind::Count(1, 4096),
        default: "1",
        unit: "",
        source: "PACT 2.2: stationary",
        help: "Phases of equal length; each heats the next region.",
        scaled: false,
    },
];

/// The order in which a region's lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Sequential,
    Random,
    Chase,
}

/// One region of a thread's memory.
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
    pattern: &'static str,
    lines: u64,
    reads: u64,
    threads: u16,
    processes: bool,
    regions: u64,
    hot_share: Probability,
    phases: u64,
    seed: u64,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: TEST_PRESET,
        source: "ours",
        help: "Small enough for tests.",
        values: &[("footprint", "4M"), ("operations", "200k")],
    },
    Preset {
        name: PAPER_PRESET,
        source: "PACT 2.2: two threads of 6 GB",
        help: "The footprint of the paper.",
        values: &[("footprint", "12G")],
    },
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
];

pub(crate) static WORKLOAD: Workload = Workload {
    name: "masim",
    title: "sequential, random and pointer-chasing reads of equal frequency",
    source: "DAMON's masim, as extended in PACT 2.2",
    object_size: ObjectSize::Large,
    objects: "one line",
    hot_set_changes: false,
    hot_set: "none by default; moves with each phase if set",
    accesses: 68_194_304,
    specs: SPECS,
    presets: PRESETS,
    reference_footprint: None,
    reference_cache: None,
    builder: build,
};

fn build(parameters: &Parameters, seed: u64) -> Result<Box<dyn Program>, WorkloadError> {
    let (threads, regions) = (parameters.count("threads"), parameters.count("regions"));
    let lines = parameters.size("footprint").0 / LINE / threads / regions;
    if lines == 0 {
        let problem =
            "footprint holds no line for each region; expected a larger one or fewer threads and regions";
        return Err(WorkloadError::Inconsistent { workload: "masim", problem: problem.into() });
    }
    Ok(Box::new(Masim {
        pattern: parameters.choice("pattern"),
        lines,
        reads: parameters.count("operations"),
        threads: threads as u16,
        processes: parameters.flag("processes"),
        regions,
        hot_share: Probability::new(parameters.number("hot_share")),
        phases: parameters.count("phases"),
        seed,
    }))
}

impl Masim {
    fn pattern(&self, thread: u16) -> Pattern {
        match self.pattern {
            "sequential" => Pattern::Sequential,
            "random" => Pattern::Random,
            "chase" => Pattern::Chase,
            _ if thread.is_multiple_of(2) => Pattern::Sequential,
            _ => Pattern::Chase,
        }
    }

    /// The accesses that follow are this thread's.
    fn enter(&self, thread: u16, memory: &mut dyn Memory) {
        if self.processes {
            memory.process(thread);
        }
        memory.thread(thread);
    }

    /// Allocates a thread's regions and fills them.
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
        (0..self.regions).map(prepare).collect()
    }

    /// The region that a read goes to.
    #[inline]
    fn choose(&self, read: u64, random: &mut Random) -> usize {
        if self.regions == 1 {
            return 0;
        }
        let phase = (u128::from(read) * u128::from(self.phases) / u128::from(self.reads)) as u64;
        let hot = random.chance(self.hot_share);
        (if hot { phase % self.regions } else { random.below(self.regions) }) as usize
    }
}

impl Program for Masim {
    fn footprint(&self) -> Bytes {
        Bytes(self.lines * LINE * self.regions * u64::from(self.threads))
    }

    fn processes(&self) -> usize {
        if self.processes { usize::from(self.threads) } else { 1 }
    }

    fn run(self: Box<Self>, memory: &mut dyn Memory) {
        let mut regions: Vec<_> = (0..self.threads).map(|thread| self.prepare(thread, memory)).collect();
        let mut random = Random::new(self.seed);
        let mut done = 0;
        while done < self.reads && !memory.finished() {
            let turn = done..(done + TURN).min(self.reads);
            for (thread, regions) in (0..self.threads).zip(&mut regions) {
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
