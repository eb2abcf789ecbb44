//! The protocol between the agent inside of a program and the engine outside.
//!
//! A unix stream socket carries one [`Hello`] from the agent, with the descriptor of a sealed memory file
//! ([`Shared`]), and then single bytes in either direction that mean "look". Its end tells that the other
//! side has gone. Neither side trusts the other's numbers: positions and counts are bounded.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

pub(super) use crate::source::MAX_RACERS as RACERS;
use crate::sys::plain::plain;

/// Environment variable that names the engine's socket.
pub const SOCKET_VARIABLE: &str = "ISOTHERM_SOCKET";
/// Environment variable that makes an agent say in one line what it does.
pub const VERBOSE_VARIABLE: &str = "ISOTHERM_VERBOSE";
pub(super) const VERSION: u32 = 5;
const MAGIC: u32 = 0x4953_4f54;

pub(super) const RING: usize = 1 << 14;
/// Pages of the queue to arm.
pub(super) const QUEUE: usize = 1 << 13;
/// Most ranges of settled memory.
pub(super) const SETTLED: usize = 1 << 12;
/// No limit on the faults per second.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// The first message of an agent: 16 bytes.
pub(super) type Hello = [u8; 16];

pub(super) fn hello() -> Hello {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    bytes
}

/// Returns the agent's version of the protocol; `None` if no agent wrote this.
pub(super) fn version_of(hello: Hello) -> Option<u32> {
    let [a, b, c, d, e, f, g, h, ..] = hello;
    (u32::from_ne_bytes([a, b, c, d]) == MAGIC).then(|| u32::from_ne_bytes([e, f, g, h]))
}

/// The agent's state, in [`Shared::state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    Waiting = 0,
    /// It samples, or would.
    Ready = 1,
    /// userfaultfd is not permitted for kernel-mode faults and events of forks.
    NotPermitted = 2,
    /// The kernel is older than Linux 6.8, or `/proc` is missing.
    Unsupported = 3,
    /// The agent gets no memory of its own.
    NoMemory = 4,
    /// The program has locked all of its memory.
    Locked = 5,
    /// The agent has ended as it should, with everything back.
    Ended = 6,
    /// The program has more threads than the agent can tell apart.
    Crowded = 7,
    /// The program did what excludes hint faults.
    GivenUp = 8,
}

impl State {
    pub(super) fn of(number: u64) -> Self {
        [
            Self::Waiting,
            Self::Ready,
            Self::NotPermitted,
            Self::NoMemory,
            Self::Locked,
            Self::Ended,
            Self::Crowded,
            Self::GivenUp,
        ]
        .into_iter()
        .find(|state| *state as u64 == number)
        .unwrap_or(Self::Unsupported)
    }

    /// Returns the problem and its remedy; `None` if there is no problem.
    pub(super) fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Waiting | Self::Ready | Self::Ended => None,
            Self::NotPermitted => Some(
                "hint faults need CAP_SYS_PTRACE, and userfaultfd where system calls are filtered: grant the \
                 program both, or take another source",
            ),
            Self::Unsupported => {
                Some("hint faults need userfaultfd with UFFDIO_MOVE (Linux 6.8 or newer) and a mounted /proc")
            }
            Self::NoMemory => Some("hint faults need 80 MiB of address space: raise `ulimit -v`"),
            Self::Crowded => Some("hint faults ended: the program has more than 16,000 threads at a time"),
            Self::GivenUp => Some(
                "hint faults ended: the program's first thread has left it, or it lists robust mutexes itself",
            ),
            Self::Locked => Some("hint faults ended: the program has locked all of its memory (mlockall)"),
        }
    }
}

/// The memory file's contents. Zero is a valid start; every number may change at any time.
#[repr(C, align(4096))]
pub(super) struct Shared {
    /// Engine: whether the process is wanted.
    pub(super) wanted: AtomicU64,
    /// Engine: most faults per second by sampling; 0 is off.
    pub(super) rate: AtomicU64,
    /// Engine: the program's time that may be lost, in millionths.
    pub(super) program_budget: AtomicU64,
    /// Engine: the agent's processor time, in millionths of one core.
    pub(super) agent_budget: AtomicU64,
    /// Engine: pages of a window.
    pub(super) window: AtomicU64,
    pub(super) seed: AtomicU64,
    /// Engine: nanoseconds that a page armed for a policy stays armed.
    pub(super) armed_bound: AtomicU64,
    pub(super) state: AtomicU64,
    /// Agent: monotonic nanoseconds when it last waited; it does so ten times a second.
    pub(super) beat: AtomicU64,
    /// Agent: its processor time in nanoseconds.
    pub(super) agent_cpu: AtomicU64,
    /// Agent: estimated nanoseconds that the program's threads lost.
    pub(super) program_time: AtomicU64,
    /// Agent: records lost because the ring was full.
    pub(super) lost: AtomicU64,
    pub(super) counters: [AtomicU64; Counter::COUNT],
    /// Agent: its own memory, which nobody should track: start and end of each piece.
    pub(super) hidden: [AtomicU64; 4],
    pub(super) ring_head: Line,
    pub(super) ring_tail: Line,
    pub(super) queue_head: Line,
    pub(super) queue_tail: Line,
    /// Engine: the number of its list of racers, twice, or one more while it is being written.
    race: AtomicU64,
    racers: [AtomicU64; RACERS],
    /// Engine: how often it has named settled memory, as of `race`.
    settled_turn: AtomicU64,
    /// A page's address, and in the lower twelve bits the number of pages.
    settled: [AtomicU64; SETTLED],
    queue: [AtomicU64; QUEUE],
    ring: [[AtomicU64; 4]; RING],
}

plain!(Atomics for Shared {
    wanted, rate, program_budget, agent_budget, window, seed, armed_bound, state, beat, agent_cpu,
    program_time, lost, counters, hidden, ring_head, ring_tail, queue_head, queue_tail, race, racers,
    settled_turn, settled, queue, ring,
});

/// A number on a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Line(pub(super) AtomicU64);

plain!(Atomics for Line { 0 });

/// An agent's counts beside its costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Counter {
    Armed,
    Faults,
    Busy,
    Disturbed,
    Copied,
    /// Window time in force, in nanoseconds.
    WindowTime,
    /// Cost of a fault in force, in nanoseconds.
    FaultCost,
    /// Requests to arm a page that were refused.
    Refused,
    /// Present pages of the last pass that may be armed, and all others but the agent's own.
    MayBeArmed,
    LeftOut,
}

impl Counter {
    pub(super) const COUNT: usize = 10;
}

/// An access as the agent saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) time: u64,
    /// Address, as exact as the kernel tells.
    pub(super) address: u64,
    /// Nanoseconds that the page had been armed: of the clock if a policy had asked for it, else of the
    /// program's processor time; 0 of a huge page, whose window tells.
    pub(super) since: u64,
    pub(super) thread: u32,
    pub(super) store: bool,
    /// Whether a policy had asked for this page.
    pub(super) requested: bool,
    /// Whether it is settled, and so was in one of some passes only.
    pub(super) settled: bool,
}

/// A window of sampling that has closed, with the pages that nobody touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) start: u64,
    /// The untouched pages from `start` on, a bit each; of a huge page all bits, or none if it was touched.
    pub(super) untouched: u64,
    /// The program's processor time while it was armed, in nanoseconds; until the touch of a huge page.
    pub(super) exposed: u64,
    pub(super) huge: bool,
}

/// Which of the engine's racers was touched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Race {
    /// Number of the engine's list.
    pub(super) list: u32,
    /// Places in it that were armed, a bit each.
    pub(super) armed: u128,
    pub(super) first: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Fault(Fault),
    Closed(Closed),
    Race(Race),
}

const STORE: u64 = 1;
const REQUESTED: u64 = 2;
const CLOSED: u64 = 4;
const HUGE: u64 = 8;
const RACE: u64 = 16;
const IS_SETTLED: u64 = 32;

impl Record {
    fn encode(self) -> [u64; 4] {
        let flag = |set: bool, flag: u64| if set { flag << 32 } else { 0 };
        match self {
            Self::Fault(Fault { time, address, since, thread, store, requested, settled }) => {
                let flags = flag(store, STORE) | flag(requested, REQUESTED) | flag(settled, IS_SETTLED);
                [time, address, since, u64::from(thread) | flags]
            }
            Self::Closed(Closed { start, untouched, exposed, huge }) => {
                [untouched, start, exposed, flag(true, CLOSED) | flag(huge, HUGE)]
            }
            Self::Race(Race { list, armed, first }) => {
                [armed as u64, (armed >> 64) as u64, u64::from(list), u64::from(first) | flag(true, RACE)]
            }
        }
    }

    fn decode([first, second, third, last]: [u64; 4]) -> Self {
        let has = |flag: u64| last >> 32 & flag != 0;
        if has(CLOSED) {
            return Self::Closed(Closed { start: second, untouched: first, exposed: third, huge: has(HUGE) });
        }
        if has(RACE) {
            let armed = u128::from(second) << 64 | u128::from(first);
            return Self::Race(Race { list: third as u32, armed, first: last as u8 });
        }
        Self::Fault(Fault {
            time: first,
            address: second,
            since: third,
            thread: last as u32,
            store: has(STORE),
            requested: has(REQUESTED),
            settled: has(IS_SETTLED),
        })
    }
}

/// Writes a list, 0 behind its end; its number is odd meanwhile.
fn publish(number: &AtomicU64, cells: &[AtomicU64], list: u32, words: &[u64]) {
    number.store(u64::from(list) << 1 | 1, Release);
    for (at, cell) in cells.iter().enumerate() {
        cell.store(words.get(at).copied().unwrap_or(0), Relaxed);
    }
    number.store(u64::from(list) << 1, Release);
}

/// Copies a list and returns its number; `None` if it changes.
fn copy(number: &AtomicU64, cells: &[AtomicU64], words: &mut [u64]) -> Option<u32> {
    let before = number.load(Acquire);
    words.iter_mut().zip(cells).for_each(|(word, cell)| *word = cell.load(Acquire));
    let whole = before & 1 == 0 && number.load(Acquire) == before;
    whole.then_some((before >> 1) as u32)
}

impl Shared {
    /// Appends a record, or counts it as lost. Called by the agent.
    pub(super) fn push(&self, record: Record) {
        let head = self.ring_head.0.load(Relaxed);
        if head.wrapping_sub(self.ring_tail.0.load(Acquire)) >= RING as u64 {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        for (cell, word) in self.ring[head as usize % RING].iter().zip(record.encode()) {
            cell.store(word, Relaxed);
        }
        self.ring_head.0.store(head.wrapping_add(1), Release);
    }

    /// Takes the next record. Called by the engine.
    pub(super) fn pop(&self) -> Option<Record> {
        let (tail, head) = (self.ring_tail.0.load(Relaxed), self.ring_head.0.load(Acquire));
        if tail == head {
            return None;
        }
        let cells = &self.ring[tail as usize % RING];
        let words = std::array::from_fn(|at| cells[at].load(Relaxed));
        self.ring_tail.0.store(tail.wrapping_add(1), Release);
        Some(Record::decode(words))
    }

    /// Queues a page to be armed; returns false if the queue is full. Called by the engine.
    pub(super) fn ask(&self, address: u64) -> bool {
        let head = self.queue_head.0.load(Relaxed);
        if head.wrapping_sub(self.queue_tail.0.load(Acquire)) >= QUEUE as u64 {
            return false;
        }
        self.queue[head as usize % QUEUE].store(address, Relaxed);
        self.queue_head.0.store(head.wrapping_add(1), Release);
        true
    }

    /// Returns the next page to be armed, which stays in the queue. Called by the agent.
    pub(super) fn asked(&self) -> Option<u64> {
        let (tail, head) = (self.queue_tail.0.load(Relaxed), self.queue_head.0.load(Acquire));
        (tail != head).then(|| self.queue[tail as usize % QUEUE].load(Relaxed))
    }

    /// Removes the page of [`Self::asked`] from the queue. Called by the agent.
    pub(super) fn answered(&self) {
        self.queue_tail.0.fetch_add(1, Release);
    }

    /// Names the pages that are to race from now on. Called by the engine.
    pub(super) fn set_racers(&self, list: u32, pages: &[u64]) {
        publish(&self.race, &self.racers, list, pages);
    }

    /// Copies the racers, 0 behind the last, and returns their list's number; `None` while they change.
    /// Called by the agent.
    pub(super) fn racers(&self, pages: &mut [u64; RACERS]) -> Option<u32> {
        copy(&self.race, &self.racers, pages)
    }

    /// Names settled memory, in the order of addresses. Called by the engine.
    pub(super) fn set_settled(&self, turn: u32, ranges: &[u64]) {
        publish(&self.settled_turn, &self.settled, turn, ranges);
    }

    /// Copies the settled memory, 0 behind the last range; `None` while it changes. Called by the agent.
    pub(super) fn settled(&self, ranges: &mut [u64; SETTLED]) -> Option<u32> {
        copy(&self.settled_turn, &self.settled, ranges)
    }

    pub(super) fn add(&self, counter: Counter, number: u64) {
        self.counters[counter as usize].fetch_add(number, Relaxed);
    }

    pub(super) fn set(&self, counter: Counter, number: u64) {
        self.counters[counter as usize].store(number, Relaxed);
    }
}
