//! Defines what the agent inside of a program and the engine outside say to each other.
//!
//! A unix stream socket carries one [`Hello`] from the agent, with the descriptor of a sealed memory file, and after it
//! single bytes in either direction that mean "look". All else is in the file ([`Shared`]): what the engine wants, a queue
//! of pages to arm, what the agent has counted, and a ring of records. Whoever goes is noticed by the socket's end.
//!
//! Nothing that the other side writes is trusted: positions are reduced to the ring's size, and counts are bounded.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::sys::plain::plain;

/// The environment variable that names the engine's socket.
pub const SOCKET_VARIABLE: &str = "ISOTHERM_SOCKET";
/// The environment variable that lets an agent say in one line what it does.
pub const VERBOSE_VARIABLE: &str = "ISOTHERM_VERBOSE";
/// What both sides must agree on.
pub(super) const VERSION: u32 = 1;
const MAGIC: u32 = 0x4953_4f54;

/// Records that the ring holds.
pub(super) const RING: usize = 1 << 14;
/// Pages that the queue of pages to arm holds.
pub(super) const QUEUE: usize = 1 << 13;
/// No bound on the faults a second.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// The first message of an agent: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    /// The agent's [`VERSION`].
    pub(super) version: u32,
}

impl Hello {
    pub(super) const BYTES: usize = 16;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.version.to_ne_bytes());
        bytes
    }

    /// `None` if an agent did not write this.
    pub(super) fn decode(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, ..] = bytes;
        (u32::from_ne_bytes([a, b, c, d]) == MAGIC)
            .then(|| Self { version: u32::from_ne_bytes([e, f, g, h]) })
    }
}

/// What became of the agent, in [`Shared::state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// It waits to be wanted.
    Waiting = 0,
    /// It samples, or would.
    Ready = 1,
    /// userfaultfd is not permitted for kernel-mode faults.
    NotPermitted = 2,
    /// The kernel lacks something (before Linux 6.8), or `/proc` is not there.
    Unsupported = 3,
    /// There is no memory for its own use.
    NoMemory = 4,
    /// The program has locked all of its memory.
    Locked = 5,
}

impl State {
    pub(super) fn of(number: u64) -> Self {
        [Self::Waiting, Self::Ready, Self::NotPermitted, Self::Unsupported, Self::NoMemory, Self::Locked]
            .into_iter()
            .find(|state| *state as u64 == number)
            .unwrap_or(Self::Unsupported)
    }

    /// What is wrong and what mends it; `None` if all is well.
    pub(super) fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Waiting | Self::Ready => None,
            Self::NotPermitted => Some(
                "hint faults need userfaultfd for faults in system calls: grant CAP_SYS_PTRACE, or access to \
                 /dev/userfaultfd, or `sysctl vm.unprivileged_userfaultfd=1`",
            ),
            Self::Unsupported => {
                Some("hint faults need userfaultfd with UFFDIO_MOVE (Linux 6.8 or newer) and a mounted /proc")
            }
            Self::NoMemory => Some("hint faults need 80 MiB of address space: raise `ulimit -v`"),
            Self::Locked => Some("hint faults ended: the program has locked all of its memory (mlockall)"),
        }
    }
}

/// The memory file. Zero is a valid start; every number may change at any time.
#[repr(C, align(4096))]
pub(super) struct Shared {
    /// Engine: whether the process is wanted.
    pub(super) wanted: AtomicU64,
    /// Engine: faults a second by sampling at most; 0 is off.
    pub(super) rate: AtomicU64,
    /// Engine: the program's time that may be lost, in millionths.
    pub(super) program_budget: AtomicU64,
    /// Engine: the agent's processor time, in millionths of one core.
    pub(super) agent_budget: AtomicU64,
    /// Engine: pages of a window.
    pub(super) window: AtomicU64,
    /// Engine: the seed.
    pub(super) seed: AtomicU64,
    /// Engine: how long a page armed for a policy stays so, in nanoseconds.
    pub(super) armed_bound: AtomicU64,
    /// Agent: [`State`].
    pub(super) state: AtomicU64,
    /// Agent: its processor time in nanoseconds.
    pub(super) agent_cpu: AtomicU64,
    /// Agent: what program threads lost, an estimate, in nanoseconds.
    pub(super) program_time: AtomicU64,
    /// Agent: records lost because the ring was full.
    pub(super) lost: AtomicU64,
    /// Agent: [`Counter`]s.
    pub(super) counters: [AtomicU64; Counter::COUNT],
    /// Agent: its own memory, start and end of each piece, which nobody should track.
    pub(super) hidden: [AtomicU64; 4],
    pub(super) ring_head: Line,
    pub(super) ring_tail: Line,
    pub(super) queue_head: Line,
    pub(super) queue_tail: Line,
    queue: [AtomicU64; QUEUE],
    ring: [[AtomicU64; 4]; RING],
}

plain!(Atomics for Shared {
    wanted,
    rate,
    program_budget,
    agent_budget,
    window,
    seed,
    armed_bound,
    state,
    agent_cpu,
    program_time,
    lost,
    counters,
    hidden,
    ring_head,
    ring_tail,
    queue_head,
    queue_tail,
    queue,
    ring,
});

/// A number on a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Line(pub(super) AtomicU64);

plain!(Atomics for Line { 0 });

/// What an agent counts beside its costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Counter {
    /// Pages armed.
    Armed,
    /// Accesses to armed pages.
    Faults,
    /// Pages skipped because the kernel holds them (`EBUSY`).
    Busy,
    /// Windows whose mapping the program changed while they were armed.
    Disturbed,
    /// Pages copied back because they could not be moved.
    Copied,
    /// The window time in force, in nanoseconds.
    WindowTime,
    /// The cost of a fault in force, in nanoseconds.
    FaultCost,
    /// Requests to arm a page that were given up.
    Refused,
}

impl Counter {
    pub(super) const COUNT: usize = 8;
}

/// An access as the agent saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) time: u64,
    /// The address, as exactly as the kernel tells.
    pub(super) address: u64,
    /// How long the page had been armed, in nanoseconds.
    pub(super) since: u64,
    /// The thread.
    pub(super) thread: u32,
    /// Whether it was a store.
    pub(super) store: bool,
    /// Whether a policy had asked for this page.
    pub(super) requested: bool,
}

impl Record {
    fn encode(self) -> [u64; 4] {
        let flags = u64::from(self.store) | u64::from(self.requested) << 1;
        [self.time, self.address, self.since, u64::from(self.thread) | flags << 32]
    }

    fn decode([time, address, since, last]: [u64; 4]) -> Self {
        let flags = last >> 32;
        Self { time, address, since, thread: last as u32, store: flags & 1 != 0, requested: flags & 2 != 0 }
    }
}

impl Shared {
    /// Agent: appends a record, or counts it as lost.
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

    /// Engine: takes the next record.
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

    /// Engine: queues a page to be armed; false if the queue is full.
    pub(super) fn ask(&self, address: u64) -> bool {
        let head = self.queue_head.0.load(Relaxed);
        if head.wrapping_sub(self.queue_tail.0.load(Acquire)) >= QUEUE as u64 {
            return false;
        }
        self.queue[head as usize % QUEUE].store(address, Relaxed);
        self.queue_head.0.store(head.wrapping_add(1), Release);
        true
    }

    /// Agent: the next page to be armed, which stays in the queue.
    pub(super) fn asked(&self) -> Option<u64> {
        let (tail, head) = (self.queue_tail.0.load(Relaxed), self.queue_head.0.load(Acquire));
        (tail != head).then(|| self.queue[tail as usize % QUEUE].load(Relaxed))
    }

    /// Agent: takes the page that [`Self::asked`] told out of the queue.
    pub(super) fn answered(&self) {
        self.queue_tail.0.fetch_add(1, Release);
    }

    pub(super) fn add(&self, counter: Counter, number: u64) {
        self.counters[counter as usize].fetch_add(number, Relaxed);
    }

    pub(super) fn set(&self, counter: Counter, number: u64) {
        self.counters[counter as usize].store(number, Relaxed);
    }
}
