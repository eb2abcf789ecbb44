//! Charges misses to threads, and delays all threads by what bandwidth and cores cannot serve.
//!
//! Each thread has its own clock. Misses arrive in the order in which they happened, so a thread whose clock
//! falls more than a few blocks behind is moved up: it was idle. Bandwidth and cores are [`Server`]s that
//! delay every thread when they are late.
//!
//! [`Cause`] tells apart what tiering takes of the program's time. A block's time is divided as the
//! threads that ran in it spent theirs. A wait for a server that would be late without tiering as well is the
//! program's.

use isotherm_core::Counters;

use crate::lookup::{Lookup, LookupTimes, Translation, Walks};
use crate::profile::Profile;
use crate::thread_model::{CoreTiming, Request, ThreadModel, Timing};
use crate::tiers::{Server, Tier};

/// Tier of the page tables: Linux allocates them on the node of the thread that faults, the fast one.
const TABLES: usize = 0;
/// Blocks by which threads' clocks may drift apart.
const SLACK_BLOCKS: u64 = 16;

/// A part of tiering that takes time of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Samples and hint faults.
    Sampling,
    /// Moved pages: work in the program's threads, interrupts, bandwidth, locks.
    Moving,
    /// The tiering system's own processor time: cores that it takes, scans in the program's threads.
    Deciding,
}

/// A number for each [`Cause`].
pub type ByCause = [u64; 3];

struct Thread {
    model: ThreadModel,
    /// Its clock at the end of the last block in which it ran, or when it was last moved up.
    since: u64,
    /// Pauses since then, in picoseconds.
    delays: ByCause,
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
    lookup_times: LookupTimes,
    /// Those of the current block.
    translations: [Translation; Lookup::KINDS],
    /// Number of the look-ups of each kind.
    lookups: [u64; Lookup::KINDS],
    /// Page-table lines from memory that the tier of page tables has counted.
    table_lines: u64,
    threads: Vec<Thread>,
    active: Vec<u16>,
    cpu: Server,
    /// The cores without what tiering takes of them.
    own: Server,
    /// Lock of the page tables and LRU lists, taken by faults, arming and moves.
    lock: Server,
    /// For how long the lock was held since it was last free at a block's end.
    held: ByCause,
    taken: ByCause,
    block: u64,
    now: u64,
    slack: u64,
}

impl Cores {
    /// Creates idle cores for `threads` threads.
    pub fn new(profile: &Profile, threads: usize) -> Self {
        let timing = CoreTiming::new(profile);
        let thread = |_| Thread {
            model: ThreadModel::new(timing),
            since: 0,
            delays: ByCause::default(),
            block: 0,
            began: 0,
        };
        Self {
            tiers: profile.tiers.iter().map(Tier::new).collect(),
            timing,
            cores: u64::from(profile.core.cores.max(1)),
            lookup_times: LookupTimes::new(profile),
            translations: [Translation::default(); Lookup::KINDS],
            lookups: [0; Lookup::KINDS],
            table_lines: 0,
            threads: (0..threads).map(thread).collect(),
            active: Vec::new(),
            cpu: Server::default(),
            own: Server::default(),
            lock: Server::default(),
            held: ByCause::default(),
            taken: ByCause::default(),
            block: 0,
            now: 0,
            slack: 0,
        }
    }

    /// Returns the modelled time at the end of the last block, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns how much of [`Self::now`] tiering took, in picoseconds.
    pub fn taken(&self) -> ByCause {
        self.taken
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
        self.translations = self.lookup_times.translations(self.tiers[TABLES].latency);
    }

    /// Marks a thread as running in this block; call it before the thread's first miss there.
    #[inline]
    pub fn enter(&mut self, index: u16) {
        let thread = &mut self.threads[usize::from(index)];
        if thread.block != self.block {
            thread.block = self.block;
            let behind = self.now.saturating_sub(self.slack + thread.model.clock());
            if behind > 0 {
                thread.model.pause(behind);
                (thread.since, thread.delays) = (thread.model.clock(), ByCause::default());
            }
            thread.began = thread.model.clock();
            self.active.push(index);
        }
    }

    /// Executes a thread up to its next miss, in a page that `tier` serves. Its address comes by `lookup`.
    #[inline(always)]
    pub fn access(&mut self, thread: u16, request: Request, lookup: Lookup, tier: usize) -> Timing {
        let kind = lookup.kind();
        self.lookups[kind] += 1;
        let model = &mut self.threads[usize::from(thread)].model;
        let state = &mut self.tiers[tier];
        let timing = model.access(&self.timing, request, self.translations[kind], tier, state.latency);
        state.count(request.store, timing);
        state.read_unasked(timing.unasked);
        timing
    }

    /// Returns the page walks so far.
    pub fn walks(&self) -> Walks {
        let sum = |counted: fn(&Translation) -> bool| {
            let lookups = self.translations.iter().zip(self.lookups);
            lookups.filter(|(translation, _)| counted(translation)).map(|(_, count)| count).sum()
        };
        Walks {
            walks: sum(|translation| translation.walks),
            from_memory: sum(|translation| translation.from_memory),
        }
    }

    /// Executes `instructions` of a thread without a miss; see [`ThreadModel::run`].
    pub fn run(&mut self, thread: u16, instructions: u64, left: u8) {
        self.threads[usize::from(thread)].model.run(&self.timing, instructions, left);
    }

    /// Ends the block: updates clocks, bandwidth and cores.
    pub fn end_block(&mut self) -> BlockEnd {
        let began = self.now;
        let (mut worked, mut advanced, mut delays) = (0, 0, ByCause::default());
        for &thread in &self.active {
            let thread = &mut self.threads[usize::from(thread)];
            worked += thread.model.clock() - thread.began;
            advanced += thread.model.clock() - thread.since;
            let own = std::mem::take(&mut thread.delays);
            delays.iter_mut().zip(own).for_each(|(sum, delay)| *sum += delay);
            self.now = self.now.max(thread.model.clock());
        }
        for (taken, delay) in self.taken.iter_mut().zip(delays) {
            *taken += share(self.now - began, delay, advanced);
        }
        let active = self.active.len();
        let elapsed = worked / (active as u64).min(self.cores).max(1);
        self.slack = (self.slack * 7 + elapsed * SLACK_BLOCKS) / 8;
        let since = began.saturating_sub(self.slack);
        let table_lines = self.walks().from_memory;
        self.tiers[TABLES].read_unasked(table_lines - self.table_lines);
        self.table_lines = table_lines;
        self.tiers.iter_mut().for_each(|tier| tier.settle(since, elapsed));
        self.cpu.serve(worked / self.cores, since);
        self.own.serve(worked / self.cores, since);
        worked += self.wait_for_servers() * active as u64;
        for thread in self.active.drain(..) {
            let thread = &mut self.threads[usize::from(thread)];
            thread.since = thread.model.clock();
        }
        BlockEnd { elapsed, active, worked }
    }

    /// Delays the active threads until bandwidth, cores and lock have caught up; returns for how long.
    fn wait_for_servers(&mut self) -> u64 {
        let (cpu, lock) = (self.cpu.late(self.now), self.lock.late(self.now));
        let bus = self.tiers.iter().map(|tier| tier.late(self.now)).fold(0, u64::max);
        let late = bus.max(cpu).max(lock);
        if late > 0 {
            let own = self.tiers.iter().map(|tier| tier.late_alone(self.now));
            let rest = late.saturating_sub(own.fold(self.own.late(self.now), u64::max));
            self.charge_wait(rest, (cpu, lock, bus));
            for &thread in &self.active {
                self.threads[usize::from(thread)].model.pause(late);
            }
            self.now += late;
        }
        if lock == 0 {
            self.held = ByCause::default();
        }
        late
    }

    /// Charges a wait to what made the latest of the servers late.
    fn charge_wait(&mut self, wait: u64, (cpu, lock, bus): (u64, u64, u64)) {
        if lock >= cpu.max(bus) {
            let all = self.held.iter().sum();
            for (taken, held) in self.taken.iter_mut().zip(self.held) {
                *taken += share(wait, held, all);
            }
        } else {
            let cause = if cpu >= bus { Cause::Deciding } else { Cause::Moving };
            self.taken[cause as usize] += wait;
        }
    }

    /// Returns a thread's clock in picoseconds.
    pub fn clock(&self, thread: u16) -> u64 {
        self.threads[usize::from(thread)].model.clock()
    }

    /// Stops a thread for `duration` picoseconds.
    pub fn pause(&mut self, thread: u16, duration: u64, cause: Cause) {
        let thread = &mut self.threads[usize::from(thread)];
        thread.model.pause(duration);
        thread.delays[cause as usize] += duration;
    }

    /// Holds the lock of the page tables and LRU lists for `duration` picoseconds, delaying its waiters.
    pub fn hold_lock(&mut self, duration: u64, cause: Cause) {
        self.held[cause as usize] += duration;
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

/// Returns the part of `whole` that `part` is of `all`.
fn share(whole: u64, part: u64, all: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(all.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streamer::Triggers;

    fn cores(threads: usize) -> Cores {
        Cores::new(&Profile::builtin("pact").expect("it comes with Isotherm"), threads)
    }

    /// Runs a block of dependent misses on these threads; `disturb` comes between its halves.
    fn block(cores: &mut Cores, threads: &[u16], disturb: impl Fn(&mut Cores)) {
        cores.begin_block();
        for step in 0..200 {
            if step == 100 {
                disturb(cores);
            }
            for &thread in threads {
                let request = Request {
                    instructions: 2000,
                    left: 1,
                    dependence: 1,
                    triggers: Triggers::default(),
                    lone: false,
                    useless: 0,
                    store: false,
                };
                cores.enter(thread);
                cores.access(thread, request, Lookup::default(), 1);
            }
        }
        cores.end_block();
    }

    #[test]
    fn the_pauses_of_one_thread_are_what_its_run_takes_longer() {
        let (mut alone, mut disturbed) = (cores(1), cores(1));
        for _ in 0..50 {
            block(&mut alone, &[0], |_| {});
            block(&mut disturbed, &[0], |cores| cores.pause(0, 7_000_000, Cause::Sampling));
            disturbed.pause(0, 3_000_000, Cause::Moving);
        }
        block(&mut alone, &[0], |_| {});
        block(&mut disturbed, &[0], |_| {});
        assert_eq!(disturbed.taken(), [50 * 7_000_000, 50 * 3_000_000, 0]);
        let more = disturbed.now() - alone.now();
        // A miss in flight goes on during a pause, so a run loses at most its pauses.
        assert!(more <= 50 * 10_000_000 && more > 50 * 9_000_000, "{more}");
    }

    #[test]
    fn cores_that_tiering_takes_cost_only_where_the_program_needs_them() {
        let profile = Profile::builtin("pact").expect("it comes with Isotherm");
        let every = u16::try_from(profile.core.cores).expect("few");
        let run = |threads: u16| {
            let mut cores = cores(threads.into());
            let all: Vec<u16> = (0..threads).collect();
            for _ in 0..50 {
                let before = cores.now();
                block(&mut cores, &all, |_| {});
                cores.occupy(cores.now() - before);
            }
            (cores.taken(), cores.now())
        };
        assert_eq!(run(1).0, [0; 3]);
        let ([0, 0, taken], now) = run(every) else { panic!("only processor time was taken") };
        let share = taken as f64 / now as f64 * f64::from(every);
        assert!((0.5..1.1).contains(&share), "one core of all: {share}");
        let ([0, 0, more], _) = run(2 * every) else { panic!("only processor time was taken") };
        assert!(more > 0);
    }

    #[test]
    fn a_wait_for_the_lock_is_shared_by_those_who_held_it() {
        let mut cores = cores(1);
        block(&mut cores, &[0], |cores| {
            cores.hold_lock(300_000_000, Cause::Sampling);
            cores.hold_lock(100_000_000, Cause::Moving);
        });
        let [sampling, moving, deciding] = cores.taken();
        assert!(sampling.abs_diff(3 * moving) <= 3 && moving > 0 && deciding == 0, "{:?}", cores.taken());
    }
}
