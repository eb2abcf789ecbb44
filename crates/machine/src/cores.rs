//! Charges misses to threads, and delays all threads by what bandwidth and cores cannot serve.
//!
//! Each thread has its own clock. Misses arrive in the order in which they happened, so a thread whose clock
//! falls more than a few blocks behind is moved up: it was idle. Bandwidth and cores are [`Server`]s that
//! delay every thread when they are late.

use isotherm_core::Counters;

use crate::profile::Profile;
use crate::streamer::Triggers;
use crate::thread_model::{CoreTiming, Request, ThreadModel, Timing};
use crate::tiers::{Server, Tier};
use crate::translation::{Footprint, Translator, Walks};

/// Tier of the page tables: Linux allocates them on the node of the thread that faults, the fast one.
const TABLES: usize = 0;
/// Blocks by which threads' clocks may drift apart.
const SLACK_BLOCKS: u64 = 16;

struct Thread {
    model: ThreadModel,
    /// Number of the last block in which it ran, from 1; 0 before the first.
    block: u64,
    /// Its clock at the start of that block, in picoseconds.
    began: u64,
}

/// Summary of an ended block.
pub struct BlockEnd {
    /// The block's length in picoseconds.
    pub elapsed: u64,
    /// Number of threads that ran in it.
    pub active: usize,
    /// Time that they took, summed over them, in picoseconds.
    pub worked: u64,
}

/// Cores, their threads and the tiers that they access.
pub struct Cores {
    /// The tiers, fastest first.
    pub tiers: Vec<Tier>,
    timing: CoreTiming,
    cores: u64,
    translator: Translator,
    threads: Vec<Thread>,
    active: Vec<u16>,
    cpu: Server,
    /// Lock of the page tables and LRU lists, taken by faults, arming and moves.
    lock: Server,
    block: u64,
    now: u64,
    slack: u64,
}

impl Cores {
    /// Creates idle cores for `threads` threads that use the memory of `footprint`.
    pub fn new(profile: &Profile, threads: usize, footprint: Footprint) -> Self {
        let timing = CoreTiming::new(profile);
        let thread = |_| Thread { model: ThreadModel::new(timing), block: 0, began: 0 };
        Self {
            tiers: profile.tiers.iter().map(Tier::new).collect(),
            timing,
            cores: u64::from(profile.core.cores.max(1)),
            translator: Translator::new(profile, threads, footprint),
            threads: (0..threads).map(thread).collect(),
            active: Vec::new(),
            cpu: Server::default(),
            lock: Server::default(),
            block: 0,
            now: 0,
            slack: 0,
        }
    }

    /// Returns the modelled time at the end of the last block, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns a moving average of the blocks' length, in picoseconds.
    pub fn block_time(&self) -> u64 {
        self.slack / SLACK_BLOCKS
    }

    /// Copies the tiers' counters into `counters`.
    pub fn counters(&self, counters: &mut Counters) {
        counters.tiers.clear();
        counters.tiers.extend(self.tiers.iter().map(Tier::snapshot));
    }

    /// Begins a block of misses.
    pub fn begin_block(&mut self) {
        self.block += 1;
    }

    /// Marks a thread as running in this block; call it before the thread's first miss there.
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

    /// Has the processor fetch what an access to the page will need.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.translator.prefetch(page);
    }

    /// Executes a thread up to its next miss, in a page that `tier` serves.
    #[inline]
    pub fn access(&mut self, thread: u16, request: Request, page: u32, tier: usize) -> Timing {
        let tables = &mut self.tiers[TABLES];
        let streams = request.triggers != Triggers::default();
        let translation = self.translator.translate(thread, page, streams, tables.latency);
        tables.read_unasked(translation.from_memory.into());
        let model = &mut self.threads[usize::from(thread)].model;
        let state = &mut self.tiers[tier];
        let timing = model.access(&self.timing, request, translation, tier, state.latency);
        state.count(request.store, timing);
        timing
    }

    /// Returns the page walks so far.
    pub fn walks(&self) -> Walks {
        self.translator.counts()
    }

    /// Drops a page's translation in every TLB.
    pub fn flush(&mut self, page: u32) {
        self.translator.flush(page);
    }

    /// Drops all translations in every TLB.
    pub fn flush_all(&mut self) {
        self.translator.flush_all();
    }

    /// Returns whether the cores have a prefetcher.
    pub fn prefetches(&self) -> bool {
        self.timing.prefetches()
    }

    /// Executes `instructions` of a thread without a miss.
    pub fn run(&mut self, thread: u16, instructions: u64) {
        self.threads[usize::from(thread)].model.run(&self.timing, instructions);
    }

    /// Ends the block: updates clocks, bandwidth and cores.
    pub fn end_block(&mut self) -> BlockEnd {
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
        worked += self.wait_for_servers() * active as u64;
        self.active.clear();
        BlockEnd { elapsed, active, worked }
    }

    /// Delays the active threads until bandwidth, cores and lock have caught up; returns for how long.
    fn wait_for_servers(&mut self) -> u64 {
        let shared = self.cpu.late(self.now).max(self.lock.late(self.now));
        let late = self.tiers.iter().map(|tier| tier.late(self.now)).fold(shared, u64::max);
        if late > 0 {
            for &thread in &self.active {
                self.threads[usize::from(thread)].model.pause(late);
            }
            self.now += late;
        }
        late
    }

    /// Returns a thread's clock in picoseconds.
    pub fn clock(&self, thread: u16) -> u64 {
        self.threads[usize::from(thread)].model.clock()
    }

    /// Stops a thread for `duration` picoseconds.
    pub fn pause(&mut self, thread: u16, duration: u64) {
        self.threads[usize::from(thread)].model.pause(duration);
    }

    /// Holds the lock of the page tables and LRU lists for `duration` picoseconds, delaying its waiters.
    pub fn hold_lock(&mut self, duration: u64) {
        self.lock.serve(duration, self.now.saturating_sub(self.slack));
    }

    /// Occupies one core for `duration` picoseconds with work other than program instructions.
    pub fn occupy(&mut self, duration: u64) {
        let since = self.now.saturating_sub(self.slack);
        self.cpu.serve(duration / self.cores, since);
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether a thread ran in one of the last `SLACK_BLOCKS` blocks.
    pub fn runs(&self, thread: usize) -> bool {
        let thread = &self.threads[thread];
        thread.block + SLACK_BLOCKS >= self.block && thread.block > 0
    }
}
