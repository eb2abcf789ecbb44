//! Defines the cores and tiers at work: what each miss costs its thread, and how bandwidth and cores delay all of them.
//!
//! Threads have clocks of their own. Misses come in the order in which they happened, so clocks that drift further apart
//! than a few blocks are pulled together: a thread that was absent waited. Bandwidth and cores are [`Server`]s that delay
//! every thread when they are late.

use isotherm_core::Counters;

use crate::Profile;
use crate::thread_model::{CoreTiming, Request, ThreadModel, Timing};
use crate::tiers::{Server, Tier};

/// Blocks by which threads' clocks may drift apart.
const SLACK_BLOCKS: u64 = 16;

/// One thread.
struct Thread {
    model: ThreadModel,
    /// The last block in which it ran, counted from 1.
    block: u64,
    /// Its clock when that block began.
    began: u64,
}

/// A block that has ended.
pub struct Ended {
    /// How long it took, in picoseconds.
    pub elapsed: u64,
    /// Threads that ran in it.
    pub active: usize,
}

/// Cores, their threads, and the tiers that they access.
pub struct Cores {
    pub tiers: Vec<Tier>,
    timing: CoreTiming,
    cores: u64,
    threads: Vec<Thread>,
    /// Threads that ran in the block under way.
    active: Vec<u16>,
    cpu: Server,
    /// The lock that faults, arming and moves take.
    lock: Server,
    block: u64,
    now: u64,
    slack: u64,
}

impl Cores {
    /// Cores at rest, for so many threads.
    pub fn new(profile: &Profile, threads: usize) -> Self {
        let timing = CoreTiming::new(&profile.core);
        let thread = || Thread { model: ThreadModel::new(timing), block: 0, began: 0 };
        Self {
            tiers: profile.tiers.iter().map(Tier::new).collect(),
            timing,
            cores: u64::from(profile.core.cores.max(1)),
            threads: (0..threads).map(|_| thread()).collect(),
            active: Vec::new(),
            cpu: Server::default(),
            lock: Server::default(),
            block: 0,
            now: 0,
            slack: 0,
        }
    }

    /// The modelled time in picoseconds, as of the end of the last block.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// About how long a block takes, in picoseconds.
    pub fn block_time(&self) -> u64 {
        self.slack / SLACK_BLOCKS
    }

    /// What the tiers have counted so far.
    pub fn counters(&self, counters: &mut Counters) {
        counters.tiers.clear();
        counters.tiers.extend(self.tiers.iter().map(Tier::snapshot));
    }

    /// A block of misses begins.
    pub fn begin_block(&mut self) {
        self.block += 1;
    }

    /// A thread does something in this block; before its first miss there.
    #[inline]
    pub fn enter(&mut self, index: u16) {
        let thread = &mut self.threads[usize::from(index)];
        if thread.block != self.block {
            thread.block = self.block;
            let behind = self.now.saturating_sub(self.slack + thread.model.clock());
            thread.model.pause(behind);
            thread.began = thread.model.clock();
            self.active.push(index);
        }
    }

    /// A thread executes up to its next miss, which is served by `tier`.
    #[inline]
    pub fn access(&mut self, thread: u16, request: Request, tier: usize) -> Timing {
        let model = &mut self.threads[usize::from(thread)].model;
        let state = &mut self.tiers[tier];
        let timing = model.access(self.timing, request, tier, state.latency);
        state.count(request.store, timing);
        timing
    }

    /// Whether the cores have a prefetcher.
    pub fn prefetches(&self) -> bool {
        self.timing.prefetches()
    }

    /// A thread executes `instructions` without a miss.
    pub fn run(&mut self, thread: u16, instructions: u64) {
        self.threads[usize::from(thread)].model.run(self.timing, instructions);
    }

    /// Ends the block: brings clocks, bandwidth and cores up to date.
    pub fn end_block(&mut self) -> Ended {
        let began = self.now;
        let mut worked = 0;
        for &thread in &self.active {
            let thread = &self.threads[usize::from(thread)];
            worked += thread.model.clock() - thread.began;
            self.now = self.now.max(thread.model.clock());
        }
        let active = self.active.len();
        let elapsed = worked / (active as u64).min(self.cores).max(1);
        self.slack = (self.slack * 7 + elapsed * SLACK_BLOCKS) / 8;
        let since = began.saturating_sub(self.slack);
        self.tiers.iter_mut().for_each(|tier| tier.settle(since, elapsed));
        self.cpu.serve(worked / self.cores, since);
        self.wait_for_servers();
        self.active.clear();
        Ended { elapsed, active }
    }

    /// Delays the active threads until bandwidth and cores have kept up.
    fn wait_for_servers(&mut self) {
        let shared = self.cpu.late(self.now).max(self.lock.late(self.now));
        let late = self.tiers.iter().map(|tier| tier.late(self.now)).fold(shared, u64::max);
        if late > 0 {
            for &thread in &self.active {
                self.threads[usize::from(thread)].model.pause(late);
            }
            self.now += late;
        }
    }

    /// A thread's clock in picoseconds.
    pub fn clock(&self, thread: u16) -> u64 {
        self.threads[usize::from(thread)].model.clock()
    }

    /// A thread stands still for `duration` picoseconds.
    pub fn pause(&mut self, thread: u16, duration: u64) {
        self.threads[usize::from(thread)].model.pause(duration);
    }

    /// Takes the lock of the page tables and LRU lists for `duration` picoseconds; who waits for it is delayed at the
    /// block's end.
    pub fn hold_lock(&mut self, duration: u64) {
        self.lock.serve(duration, self.now.saturating_sub(self.slack));
    }

    /// Takes `duration` picoseconds of one core for what is not program instructions.
    pub fn occupy(&mut self, duration: u64) {
        let since = self.now.saturating_sub(self.slack);
        self.cpu.serve(duration / self.cores, since);
    }

    /// Threads in all.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Whether a thread has run in the last blocks.
    pub fn runs(&self, thread: usize) -> bool {
        let thread = &self.threads[thread];
        thread.block + SLACK_BLOCKS >= self.block && thread.block > 0
    }
}
