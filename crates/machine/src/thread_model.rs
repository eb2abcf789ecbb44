//! The core model: the cost of a miss for a thread that executes out of order.
//!
//! Problem: a miss of 100 ns does not cost 100 ns. Misses whose addresses do not depend on each other overlap
//! as long as they fit the reorder window and the miss registers; a dependent miss waits for its parent.
//!
//! Approach: an interval model in the form of timestamps. For each miss, in program order:
//!
//! ```text
//! dispatch = previous dispatch + instructions x time per instruction,
//!            not before the instruction `reorder_window` back has retired
//! address  = dispatch, not before its parent's data; where its page is in no TLB, + the walk, not before a
//!            page walker is free
//! issue    = address, not before a free miss register
//! complete = issue + latency of its tier; for a prefetched line, its request + latency, not before issue
//! retire   = previous retire + instructions x time per instruction; a load not before `complete`,
//!            a store not before the store `store_buffer` back has completed
//! stall    = time that `retire` waited for memory
//! ```
//!
//! Stalls are exact parts of the thread's time: instructions x time + sum of stalls = the last retire. A
//! cluster of overlapping misses stalls for its longest chain less what the window hides, and the stall falls
//! on the misses that retirement waited for. Times are integer picoseconds, so that no result depends on an
//! order of summation.

use crate::limits::{MAX_REGISTERS, MAX_TIERS, WINDOW};
use crate::lookup::Translation;
use crate::profile::Profile;
use crate::registers::{AmpleRegisters, Registers};
use crate::streamer::Triggers;
use crate::walkers::Walkers;

/// The numbers of a [`Profile`]'s cores in the form that the model uses.
#[derive(Debug, Clone, Copy)]
pub struct CoreTiming {
    instruction_ps: u64,
    reorder_window: u64,
    miss_registers: usize,
    store_buffer: usize,
    /// 0 without a prefetcher.
    l2_registers: usize,
    /// Registers of the second-level cache beyond the miss registers.
    spare_registers: usize,
    /// Whether the second-level cache completes pairs of lines.
    pairs: bool,
    walkers: usize,
}

impl CoreTiming {
    /// Reads the numbers of a profile's cores.
    pub fn new(machine: &Profile) -> Self {
        let profile = &machine.core;
        let miss_registers = (profile.miss_registers as usize).clamp(1, MAX_REGISTERS);
        let l2_registers = profile.l2_registers.unwrap_or(0) as usize;
        Self {
            instruction_ps: profile.instruction_ps,
            reorder_window: u64::from(profile.reorder_window),
            miss_registers,
            store_buffer: (profile.store_buffer as usize).clamp(1, WINDOW),
            l2_registers,
            spare_registers: l2_registers.saturating_sub(miss_registers).min(MAX_REGISTERS),
            pairs: profile.pair_prefetcher == Some(1),
            walkers: (machine.tlb.walkers as usize).max(1),
        }
    }

    /// Returns whether the core has a prefetcher.
    pub fn prefetches(self) -> bool {
        self.l2_registers > 0
    }
}

/// A remembered miss; times in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Miss {
    position: u64,
    issue: u64,
    complete: u64,
    retire: u64,
}

/// A thread's execution up to its next miss.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Number of instructions; the last one misses.
    pub instructions: u32,
    /// Distance in the thread's misses to the last one that has left the reorder window, by
    /// [`crate::ReorderWindows`]; 0 for none.
    pub left: u8,
    /// Distance in the thread's misses to the one that its address depends on; 0 for none.
    pub dependence: u8,
    /// Accesses that prefetched its line.
    pub triggers: Triggers,
    /// Whether nobody requests the line that completes its pair.
    pub lone: bool,
    /// Lines that it prefetched for streams and nobody requests.
    pub useless: u8,
    /// Whether the last instruction is a store rather than a load.
    pub store: bool,
}

/// Effect of one access on its thread, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Time for which retirement stalled.
    pub stall: u64,
    /// Time with a miss of this thread in flight at its tier, beyond that of earlier misses.
    pub busy: u64,
    /// As `busy`, among loads alone; 0 for a store.
    pub load_busy: u64,
    /// Whether a prefetch had requested its line before.
    pub prefetched: bool,
    /// Lines that it brought and nobody requests: of streams, and its pair's other one.
    pub unasked: u64,
}

/// One thread's pipeline.
#[derive(Debug, Clone)]
pub struct ThreadModel {
    misses: [Miss; WINDOW],
    stores: [u64; WINDOW],
    registers: Registers,
    /// Registers of the second-level cache, shared by misses and prefetches; unused without a prefetcher.
    l2_registers: AmpleRegisters,
    /// Those beyond the miss registers: a miss goes before a line that may not be requested.
    spare_registers: Registers,
    walkers: Walkers,
    busy_until: [u64; MAX_TIERS],
    load_busy_until: [u64; MAX_TIERS],
    count: usize,
    /// Entry of the store buffer that the next store takes.
    next_store: usize,
    position: u64,
    dispatch: u64,
    retire: u64,
}

impl ThreadModel {
    /// Creates a thread at rest.
    pub fn new(timing: CoreTiming) -> Self {
        Self {
            misses: [Miss::default(); WINDOW],
            stores: [0; WINDOW],
            registers: Registers::new(timing.miss_registers),
            l2_registers: AmpleRegisters::new(timing.l2_registers),
            spare_registers: Registers::new(timing.spare_registers),
            walkers: Walkers::new(timing.walkers),
            busy_until: [0; MAX_TIERS],
            load_busy_until: [0; MAX_TIERS],
            count: 0,
            next_store: 0,
            position: 0,
            dispatch: 0,
            retire: 0,
        }
    }

    /// Returns the thread's clock: when its last instruction retired, in picoseconds.
    pub fn clock(&self) -> u64 {
        self.retire
    }

    /// Stops the thread for `duration` picoseconds, to serve an interrupt or wait. Misses in flight go on.
    pub fn pause(&mut self, duration: u64) {
        self.retire += duration;
        self.dispatch += duration;
    }

    /// Executes a request's instructions, the last of which accesses memory of `tier` with `latency`, once
    /// its page is translated. It has few callers, and what they pass and take would go through memory.
    #[inline(always)]
    pub fn access(
        &mut self,
        timing: &CoreTiming,
        request: Request,
        translation: Translation,
        tier: usize,
        latency: u64,
    ) -> Timing {
        let elapsed = u64::from(request.instructions) * timing.instruction_ps;
        self.position += u64::from(request.instructions);
        let dispatch = self.dispatch(timing, elapsed, request.left);
        let mut address = dispatch;
        if let Some(parent) = self.back(request.dependence) {
            address = address.max(parent.complete);
        }
        let waits = u64::from(translation.latency);
        let translated = if translation.walks { self.walkers.walk(address, waits) } else { address + waits };
        let mut issue = self.registers.free_from(translated);
        let (start, prefetched) = self.fetch(timing, request.triggers, &mut issue, latency);
        let complete = issue.max(start + latency);
        if complete > issue {
            self.registers.take(complete);
        }
        let ready = self.retire + elapsed;
        let needed = if request.store { self.store_completes(timing, complete) } else { complete };
        self.retire = ready.max(needed);
        self.misses[self.count % WINDOW] =
            Miss { position: self.position, issue, complete, retire: self.retire };
        self.count += 1;
        let pair = request.lone && !prefetched && self.complete_pair(timing, issue, latency);
        let streamed = if timing.prefetches() { request.useless } else { 0 };
        let unasked = u64::from(streamed) + u64::from(pair);
        let (mut busy, mut load_busy) = (0, 0);
        if !prefetched {
            busy = cover(&mut self.busy_until[tier], issue, complete);
            if !request.store {
                load_busy = cover(&mut self.load_busy_until[tier], issue, complete);
            }
        }
        Timing { stall: self.retire - ready, busy, load_busy, prefetched, unasked }
    }

    /// Returns the miss at a distance; `None` for 0 and for a miss that is no longer remembered.
    #[inline]
    fn back(&self, distance: u8) -> Option<&Miss> {
        let distance = usize::from(distance);
        (distance != 0 && distance <= self.count.min(WINDOW))
            .then(|| &self.misses[(self.count - distance) % WINDOW])
    }

    /// Returns when the line is requested of memory, and whether a prefetch does it. Otherwise the access
    /// does, at its `issue`, which waits for a register of the second-level cache.
    #[inline(always)]
    fn fetch(&mut self, timing: &CoreTiming, by: Triggers, issue: &mut u64, latency: u64) -> (u64, bool) {
        if timing.l2_registers == 0 {
            return (*issue, false);
        }
        let trigger = if by.stream == 0 && timing.pairs { by.pair } else { by.stream };
        let prefetch = match self.back(trigger).map(|miss| miss.issue) {
            Some(sent) => self.l2_registers.free_from(sent),
            None if trigger == 0 => u64::MAX,
            // A trigger that is no longer remembered was long ago.
            None => self.l2_registers.earliest(),
        };
        let prefetched = prefetch < *issue;
        if !prefetched {
            *issue = self.l2_registers.free_from(*issue);
        }
        let start = prefetch.min(*issue);
        self.l2_registers.take(start + latency);
        (start, prefetched)
    }

    /// Brings the other line of a miss's pair, which nobody requests, if a spare register is free for it.
    #[inline]
    fn complete_pair(&mut self, timing: &CoreTiming, issue: u64, latency: u64) -> bool {
        if !timing.pairs || timing.spare_registers == 0 {
            return false;
        }
        // Each of these lines came with a miss, so no more are in flight than misses.
        if timing.spare_registers >= timing.miss_registers {
            return true;
        }
        let sent = self.spare_registers.free_from(issue) == issue;
        if sent {
            self.spare_registers.take(issue + latency);
        }
        sent
    }

    /// Executes `instructions` that do not miss; `left` is the distance to the last miss that has left the
    /// reorder window by then.
    pub fn run(&mut self, timing: &CoreTiming, instructions: u64, left: u8) {
        let elapsed = instructions * timing.instruction_ps;
        self.position += instructions;
        self.dispatch(timing, elapsed, left);
        self.retire += elapsed;
    }

    /// Returns when the access is dispatched: in order, once its instructions' room in the reorder window and
    /// the load queue is free, by the miss at distance `left`.
    #[inline]
    fn dispatch(&mut self, timing: &CoreTiming, elapsed: u64, left: u8) -> u64 {
        let oldest = self.position.saturating_sub(timing.reorder_window);
        let room = self
            .back(left)
            .map_or(0, |miss| miss.retire + oldest.saturating_sub(miss.position) * timing.instruction_ps);
        self.dispatch = (self.dispatch + elapsed).max(room);
        self.dispatch
    }

    /// Puts a store into the store buffer and returns when the store whose entry it takes completes.
    #[inline]
    fn store_completes(&mut self, timing: &CoreTiming, complete: u64) -> u64 {
        let entry = self.next_store;
        self.next_store = if entry + 1 < timing.store_buffer { entry + 1 } else { 0 };
        std::mem::replace(&mut self.stores[entry % WINDOW], complete)
    }
}

/// Returns the part of `issue..complete` beyond `until`, and advances `until`.
#[inline]
fn cover(until: &mut u64, issue: u64, complete: u64) -> u64 {
    let added = complete.saturating_sub(issue.max(*until));
    *until = (*until).max(complete);
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reorder::ReorderWindows;

    const TIMING: CoreTiming = CoreTiming {
        instruction_ps: 100,
        reorder_window: 200,
        miss_registers: 10,
        store_buffer: 50,
        l2_registers: 0,
        spare_registers: 0,
        pairs: false,
        walkers: 2,
    };
    const HIT: Translation = Translation { latency: 0, walks: false, from_memory: false };
    const LATENCY: u64 = 100_000;

    fn request(instructions: u32) -> Request {
        Request {
            instructions,
            left: 0,
            dependence: 0,
            triggers: Triggers::default(),
            lone: false,
            useless: 0,
            store: false,
        }
    }

    /// A thread and its reorder window.
    struct Thread {
        model: ThreadModel,
        windows: ReorderWindows,
    }

    impl Thread {
        fn new(timing: CoreTiming) -> Self {
            let windows = ReorderWindows::of_size(timing.reorder_window as u32, 1);
            Self { model: ThreadModel::new(timing), windows }
        }

        fn access(&mut self, timing: &CoreTiming, request: Request, tier: usize, latency: u64) -> Timing {
            let left = self.windows.miss(0, request.instructions);
            self.model.access(timing, Request { left, ..request }, HIT, tier, latency)
        }

        fn clock(&self) -> u64 {
            self.model.clock()
        }
    }

    fn by_stream(stream: u8) -> Triggers {
        Triggers { stream, pair: 0 }
    }

    fn run(count: usize, instructions: u32, dependence: u8, store: bool) -> (u64, u64) {
        let mut thread = Thread::new(TIMING);
        let request = Request { dependence, store, ..request(instructions) };
        let stall = (0..count).map(|_| thread.access(&TIMING, request, 0, LATENCY).stall).sum();
        (thread.clock(), stall)
    }

    #[test]
    fn a_dependent_chain_takes_latency_times_misses() {
        let (time, _) = run(1_000, 5, 1, false);
        assert_eq!(time, 1_000 * LATENCY + 5 * 100);
    }

    #[test]
    fn independent_misses_overlap_up_to_the_miss_registers() {
        let (time, _) = run(10_000, 1, 0, false);
        let ideal = 10_000 / 10 * LATENCY;
        assert!(time.abs_diff(ideal) < ideal / 50, "{time} against {ideal}");
    }

    #[test]
    fn independent_misses_overlap_only_within_the_reorder_window() {
        // 100 instructions per miss: two misses fit the window of 200.
        let (time, _) = run(10_000, 100, 0, false);
        let ideal = 10_000 / 2 * LATENCY;
        assert!(time.abs_diff(ideal) < ideal / 10, "{time} against {ideal}");
    }

    #[test]
    fn four_interleaved_chains_overlap_four_times() {
        let (time, _) = run(4_000, 1, 4, false);
        let ideal = 1_000 * LATENCY;
        assert!(time.abs_diff(ideal) < ideal / 50, "{time} against {ideal}");
    }

    /// A core whose second-level cache has 16 registers.
    const PREFETCHING: CoreTiming = CoreTiming { l2_registers: 16, spare_registers: 6, ..TIMING };

    /// Runs `count` equal loads; returns the time and how many found their line prefetched.
    fn stream(timing: CoreTiming, count: usize, request: Request) -> (u64, usize) {
        let mut thread = Thread::new(timing);
        let found = (0..count).filter(|_| thread.access(&timing, request, 0, LATENCY).prefetched).count();
        (thread.clock(), found)
    }

    #[test]
    fn a_prefetched_chain_waits_for_registers_and_not_for_each_link() {
        // Each load needs the one before; its line was requested 20 loads earlier: 16 are always in flight.
        let request = Request { dependence: 1, triggers: by_stream(20), ..request(5) };
        let (time, found) = stream(PREFETCHING, 10_000, request);
        let ideal = 10_000 / 16 * LATENCY;
        assert!(time.abs_diff(ideal) < ideal / 50, "{time} against {ideal}");
        // Except one in 16, whose register is free only when the load itself is due.
        assert!(found.abs_diff(10_000 / 16 * 15) < 50, "{found}");
        assert_eq!(stream(TIMING, 10_000, request), (10_000 * LATENCY + 5 * 100, 0), "no prefetcher");
    }

    #[test]
    fn a_pair_s_second_line_is_prefetched_where_the_machine_completes_pairs() {
        let pairs = CoreTiming { pairs: true, ..PREFETCHING };
        let half = |timing| {
            let mut thread = Thread::new(timing);
            for index in 0..10_000 {
                let triggers = Triggers { stream: 0, pair: (index % 2) as u8 };
                let request = Request { dependence: 1, triggers, ..request(5) };
                thread.access(&timing, request, 0, LATENCY);
            }
            thread.clock() / LATENCY
        };
        assert_eq!((half(PREFETCHING), half(pairs)), (10_000, 5_000));
    }

    #[test]
    fn a_lone_line_brings_its_pair_only_while_a_spare_register_is_free() {
        let pairs = CoreTiming { pairs: true, ..PREFETCHING };
        let share = |dependence| {
            let mut thread = Thread::new(pairs);
            let request = Request { dependence, lone: true, ..request(1) };
            let wasted = (0..10_000).filter(|_| thread.access(&pairs, request, 0, LATENCY).unasked > 0);
            wasted.count() as f64 / 1e4
        };
        // Ten misses at once leave six of the 16 registers; a chain needs one at a time.
        assert!(share(1) > 0.999, "{}", share(1));
        assert!((share(0) - 0.6).abs() < 0.05, "{}", share(0));
    }

    #[test]
    fn a_line_that_came_in_time_costs_nothing() {
        // 20 loads of 100 instructions take twice the latency.
        let (time, found) = stream(PREFETCHING, 10_000, Request { triggers: by_stream(20), ..request(100) });
        let instructions = 10_000 * 100 * 100;
        assert!(time < instructions + 25 * LATENCY, "{time} against {instructions}");
        assert!(found > 9_900, "{found}");
    }

    #[test]
    fn a_line_asked_for_before_its_prefetch_was_sent_is_a_miss() {
        let mut thread = Thread::new(PREFETCHING);
        thread.access(&PREFETCHING, request(1), 0, LATENCY);
        // Its trigger waits for the previous miss; the access itself does not, and comes first.
        let waits = Request { dependence: 1, ..request(1) };
        thread.access(&PREFETCHING, waits, 0, LATENCY);
        let timing =
            thread.access(&PREFETCHING, Request { triggers: by_stream(1), ..request(1) }, 0, LATENCY);
        assert!(!timing.prefetched);
    }

    #[test]
    fn stalls_and_instructions_add_up_to_the_time() {
        for (instructions, dependence, store) in [(7, 0, false), (300, 1, false), (2, 0, true), (3, 2, false)]
        {
            let (time, stall) = run(5_000, instructions, dependence, store);
            assert_eq!(time, 5_000 * u64::from(instructions) * 100 + stall);
        }
    }

    #[test]
    fn sparse_stores_hide_in_the_store_buffer() {
        let (_, stall) = run(5_000, 2_000, 0, true);
        assert_eq!(stall, 0);
    }

    #[test]
    fn a_far_miss_costs_its_latency_less_what_the_window_hides() {
        let mut thread = Thread::new(TIMING);
        let stall = thread.access(&TIMING, request(1_000), 0, LATENCY).stall;
        assert_eq!(stall, LATENCY);
        // 150 instructions later, a miss of another tier, four times as slow, is already in flight.
        let stall = thread.access(&TIMING, request(150), 1, 4 * LATENCY).stall;
        assert!(stall < 4 * LATENCY && stall > 2 * LATENCY, "{stall}");
    }
}
