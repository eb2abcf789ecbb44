//! The core model: what a miss costs a thread that executes out of order.
//!
//! Problem: a miss of 100 ns does not cost 100 ns. Misses whose addresses do not depend on each other overlap as long as
//! they fit the reorder window and the miss registers; a dependent miss waits for its parent.
//!
//! Approach: an interval model in the form of timestamps. For each miss, in program order:
//!
//! ```text
//! dispatch = dispatch before + instructions x time per instruction,
//!            not before the instruction `reorder_window` back has retired
//! issue    = dispatch, not before its parent's data and a free miss register
//! complete = issue + latency of its tier
//! retire   = retire before + instructions x time per instruction; a load not before `complete`,
//!            a store not before the store `store_buffer` back has completed
//! stall    = what `retire` waited for memory
//! ```
//!
//! Stalls are exact parts of the thread's time: instructions x time + sum of stalls = the last retire. A cluster of
//! overlapping misses stalls for its longest chain less what the window hides, and the stall falls on the misses that
//! retirement waited for. Times are picoseconds in integers, so results do not depend on the order of summation.

use crate::CoreProfile;

/// Misses that one thread can have in its window: a load queue's size. A power of two.
const WINDOW: usize = 128;
/// Tiers that a machine can have.
pub(crate) const MAX_TIERS: usize = 4;

/// The parts of [`CoreProfile`] in the form that the model uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreTiming {
    instruction_ps: u64,
    reorder_window: u64,
    miss_registers: usize,
    store_buffer: usize,
}

impl CoreTiming {
    pub(crate) fn new(profile: &CoreProfile) -> Self {
        Self {
            instruction_ps: profile.instruction_ps,
            reorder_window: u64::from(profile.reorder_window),
            miss_registers: (profile.miss_registers as usize).clamp(1, WINDOW),
            store_buffer: (profile.store_buffer as usize).clamp(1, WINDOW),
        }
    }
}

/// A miss still remembered.
#[derive(Debug, Clone, Copy, Default)]
struct Miss {
    position: u64,
    complete: u64,
    retire: u64,
}

/// What one access did to its thread, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Retirement stood still for it.
    pub(crate) stall: u64,
    /// Time that its tier had a request of this thread in flight, beyond what earlier requests already covered.
    pub(crate) busy: u64,
    /// As `busy`, among loads alone; 0 for a store.
    pub(crate) load_busy: u64,
}

/// One thread's pipeline.
#[derive(Debug, Clone)]
pub(crate) struct ThreadModel {
    misses: [Miss; WINDOW],
    stores: [u64; WINDOW],
    registers: Vec<u64>,
    busy_until: [u64; MAX_TIERS],
    load_busy_until: [u64; MAX_TIERS],
    /// Misses and stores so far.
    count: usize,
    store_count: usize,
    /// The oldest miss that is not yet `reorder_window` instructions back.
    window_start: usize,
    position: u64,
    dispatch: u64,
    retire: u64,
    /// Position and retirement of the last miss that left the window.
    left: Miss,
}

impl ThreadModel {
    pub(crate) fn new(timing: CoreTiming) -> Self {
        Self {
            misses: [Miss::default(); WINDOW],
            stores: [0; WINDOW],
            registers: vec![0; timing.miss_registers],
            busy_until: [0; MAX_TIERS],
            load_busy_until: [0; MAX_TIERS],
            count: 0,
            store_count: 0,
            window_start: 0,
            position: 0,
            dispatch: 0,
            retire: 0,
            left: Miss::default(),
        }
    }

    /// The thread's clock: when its last instruction retired.
    pub(crate) fn clock(&self) -> u64 {
        self.retire
    }

    /// The thread stands still for `duration`: an interrupt, or waiting for others. What is in flight goes on.
    pub(crate) fn pause(&mut self, duration: u64) {
        self.retire += duration;
        self.dispatch += duration;
    }

    /// Executes `instructions`, the last of which accesses memory of `tier` with `latency`.
    #[inline]
    pub(crate) fn access(
        &mut self,
        timing: CoreTiming,
        instructions: u32,
        dependence: u8,
        store: bool,
        tier: usize,
        latency: u64,
    ) -> Timing {
        let elapsed = u64::from(instructions) * timing.instruction_ps;
        self.position += u64::from(instructions);
        let dispatch = self.dispatch(timing, elapsed);
        let slot = self.earliest_register();
        let mut issue = dispatch.max(self.registers[slot]);
        let dependence = usize::from(dependence);
        if dependence != 0 && dependence <= self.count.min(WINDOW) {
            issue = issue.max(self.misses[(self.count - dependence) % WINDOW].complete);
        }
        let complete = issue + latency;
        self.registers[slot] = complete;
        let ready = self.retire + elapsed;
        let needed = if store { self.store_completes(timing, complete) } else { complete };
        self.retire = ready.max(needed);
        self.misses[self.count % WINDOW] = Miss { position: self.position, complete, retire: self.retire };
        self.count += 1;
        let busy = cover(&mut self.busy_until[tier], issue, complete);
        let load_busy = if store { 0 } else { cover(&mut self.load_busy_until[tier], issue, complete) };
        Timing { stall: self.retire - ready, busy, load_busy }
    }

    /// Executes `instructions`, none of which misses.
    pub(crate) fn run(&mut self, timing: CoreTiming, instructions: u64) {
        let elapsed = instructions * timing.instruction_ps;
        self.position += instructions;
        self.dispatch(timing, elapsed);
        self.retire += elapsed;
    }

    /// When the front end hands the access over: in order, and within the reorder window and the load queue.
    #[inline]
    fn dispatch(&mut self, timing: CoreTiming, elapsed: u64) -> u64 {
        let oldest = self.position.saturating_sub(timing.reorder_window);
        while self.window_start < self.count
            && (self.misses[self.window_start % WINDOW].position <= oldest
                || self.count - self.window_start == WINDOW)
        {
            self.left = self.misses[self.window_start % WINDOW];
            self.window_start += 1;
        }
        let since_left = oldest.saturating_sub(self.left.position);
        let room =
            if self.left.position == 0 { 0 } else { self.left.retire + since_left * timing.instruction_ps };
        self.dispatch = (self.dispatch + elapsed).max(room);
        self.dispatch
    }

    #[inline]
    fn earliest_register(&self) -> usize {
        let (mut slot, mut earliest) = (0, self.registers[0]);
        for (index, &free) in self.registers.iter().enumerate().skip(1) {
            if free < earliest {
                (slot, earliest) = (index, free);
            }
        }
        slot
    }

    /// Puts a store into the store buffer and says when the one whose entry it takes has completed.
    #[inline]
    fn store_completes(&mut self, timing: CoreTiming, complete: u64) -> u64 {
        let entry = self.store_count % timing.store_buffer;
        self.store_count += 1;
        std::mem::replace(&mut self.stores[entry], complete)
    }
}

/// The part of `issue..complete` that nothing before had covered up to `until`, which moves on.
#[inline]
fn cover(until: &mut u64, issue: u64, complete: u64) -> u64 {
    let added = complete.saturating_sub(issue.max(*until));
    *until = (*until).max(complete);
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: CoreTiming =
        CoreTiming { instruction_ps: 100, reorder_window: 200, miss_registers: 10, store_buffer: 50 };
    const LATENCY: u64 = 100_000;

    fn run(count: usize, instructions: u32, dependence: u8, store: bool) -> (u64, u64) {
        let mut thread = ThreadModel::new(TIMING);
        let stall = (0..count)
            .map(|_| thread.access(TIMING, instructions, dependence, store, 0, LATENCY).stall)
            .sum();
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
        // 100 instructions a miss: two fit the window of 200.
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
        let mut thread = ThreadModel::new(TIMING);
        let stall = thread.access(TIMING, 1_000, 0, false, 0, LATENCY).stall;
        assert_eq!(stall, LATENCY);
        // 150 instructions later, a miss of another tier, four times as slow, is already under way.
        let stall = thread.access(TIMING, 150, 0, false, 1, 4 * LATENCY).stall;
        assert!(stall < 4 * LATENCY && stall > 2 * LATENCY, "{stall}");
    }
}
