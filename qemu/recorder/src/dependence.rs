//! Finds the earlier miss that an address depends on: dataflow through registers, cache lines and stored
//! values.
//!
//! # Problem
//! Two misses overlap in a real core unless the second one's address is computed from the first one's data.
//! Addresses alone do not show that, so the recorder follows data from each miss to the addresses made of it.
//!
//! # Approach
//! The misses of a thread are numbered. A register's *taint* is the number of the latest miss that its value
//! depends on. A loaded value takes the taint of the miss that loads it, or of the miss that is still
//! bringing its line (for a chase that reads a node's second word), or of the value stored there before (for
//! a pointer spilled to the stack); and in each case the taint of its address. A miss whose address is
//! tainted is recorded with its distance, in misses, to that taint.
//!
//! A dependence ends [`WINDOW`] instructions after its miss, about a core's reorder window: by then the data
//! has arrived. Without a miss inside the window nothing is tainted; the tracker is then *idle*, and the
//! caller skips it.

use isotherm_core::cache::LINE_SHIFT;

use crate::summary::{Summary, bits};

/// Instructions after a miss that may depend on it.
const WINDOW: u64 = 512;
/// Longest distance recorded, in misses.
const LONGEST: u32 = 255;
const LINES: usize = 256;
/// Entries of the table of stored values, each for 8 bytes of memory.
const STORES: usize = 4096;

pub(crate) struct Tracker {
    /// Number of the latest miss; numbers start at 1, and 0 is no taint.
    latest: u32,
    /// Oldest miss inside the window; `latest + 1` without one.
    oldest: u32,
    /// Last instruction position at which no miss leaves the window.
    until: u64,
    /// Registers whose taint may be inside the window.
    tainted: u32,
    registers: [u32; 32],
    /// Taint of the values that the current instruction has loaded.
    loaded: u32,
    /// Instruction positions of the latest misses, by number.
    positions: [u64; 256],
    lines: Box<[(u64, u32); LINES]>,
    /// Tag (upper bits of the address) and taint.
    stores: Box<[(u32, u32); STORES]>,
    /// Latest taint in `stores`.
    stored: u32,
    /// Latest taint of lines and of stored values in them, by the line's last bits.
    latest_of: [u32; LINES],
}

impl Default for Tracker {
    fn default() -> Self {
        Self {
            latest: 0,
            oldest: 1,
            until: 0,
            tainted: 0,
            registers: [0; 32],
            loaded: 0,
            positions: [0; 256],
            lines: Box::new([(0, 0); LINES]),
            stores: Box::new([(0, 0); STORES]),
            stored: 0,
            latest_of: [0; LINES],
        }
    }
}

impl Tracker {
    /// Returns whether no miss lies inside the window.
    #[inline]
    pub(crate) fn idle(&self) -> bool {
        self.oldest > self.latest
    }

    /// Forgets every miss, since the thread continues as another one.
    pub(crate) fn forget(&mut self) {
        self.oldest = self.latest + 1;
        self.until = u64::MAX;
    }

    /// Removes misses from the window, which ends at instruction `position`.
    #[inline(always)]
    pub(crate) fn age(&mut self, position: u64) {
        if position > self.until {
            self.remove(position);
        }
    }

    #[inline(never)]
    fn remove(&mut self, position: u64) {
        let before = self.oldest;
        self.until = u64::MAX;
        while self.oldest <= self.latest {
            let until = self.positions[(self.oldest & 255) as usize] + WINDOW;
            if until >= position && self.latest - self.oldest < LONGEST {
                self.until = until;
                break;
            }
            self.oldest += 1;
        }
        if self.oldest != before && self.tainted != 0 {
            self.cleanse_old();
        }
    }

    /// Returns those of `registers` that may be tainted.
    #[inline(always)]
    pub(crate) fn tainted(&self, registers: u32) -> u32 {
        registers & self.tainted
    }

    /// Clears the taints of registers that are overwritten.
    #[inline(always)]
    pub(crate) fn cleanse(&mut self, registers: u32) {
        self.tainted &= !registers;
    }

    /// Clears the taints that left the window, so that fewer instructions need a look.
    fn cleanse_old(&mut self) {
        for register in bits(self.tainted) {
            if self.registers[register] < self.oldest {
                self.tainted &= !(1 << register);
            }
        }
    }

    /// Returns whether no register and no loaded value is tainted, so that stepping changes nothing.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.tainted == 0 && self.loaded == 0
    }

    /// Carries taints through `instructions`, of which only the first may have loaded anything.
    #[inline]
    pub(crate) fn pass(&mut self, instructions: &[Summary]) {
        let (mut tainted, mut loaded) = (self.tainted, std::mem::take(&mut self.loaded));
        for instruction in instructions {
            let sources = instruction.sources & tainted;
            tainted &= !instruction.destinations;
            if sources != 0 || loaded != 0 {
                let value = loaded.max(self.strongest(sources));
                loaded = 0;
                tainted |= instruction.destinations;
                bits(instruction.destinations).for_each(|register| self.registers[register] = value);
            }
        }
        self.tainted = tainted;
    }

    /// Carries taints through an instruction and the values it has loaded.
    #[cfg(test)]
    pub(crate) fn step(&mut self, instruction: &Summary) {
        self.pass(std::slice::from_ref(instruction));
    }

    fn strongest(&self, registers: u32) -> u32 {
        bits(registers).fold(0, |taint, register| taint.max(self.registers[register]))
    }

    /// Returns the taint of the instruction's address, 0 if it left the window.
    #[inline]
    fn address(&self, instruction: &Summary) -> u32 {
        self.fresh(self.strongest(instruction.address & self.tainted))
    }

    fn fresh(&self, taint: u32) -> u32 {
        if taint < self.oldest { 0 } else { taint }
    }

    /// Numbers a miss at instruction `position`. Returns its distance to the miss that it depends on, or 0.
    pub(crate) fn miss(&mut self, instruction: &Summary, line: u64, position: u64) -> u8 {
        if self.latest == u32::MAX - 1 {
            *self = Self::default();
        }
        if self.idle() {
            (self.tainted, self.loaded) = (0, 0);
        }
        self.age(position);
        let after = self.address(instruction);
        self.latest += 1;
        self.positions[(self.latest & 255) as usize] = position;
        if self.oldest == self.latest {
            self.until = position + WINDOW;
        } else if self.latest - self.oldest >= LONGEST {
            self.until = 0;
        }
        self.lines[line as usize % LINES] = (line, self.latest);
        self.latest_of[line as usize % LINES] = self.latest;
        let distance = if after == 0 { 0 } else { self.latest - after };
        u8::try_from(distance).unwrap_or(0)
    }

    /// Notes a load from `address`, which hit or (`missed`) was just numbered by [`Tracker::miss`]. Returns
    /// whether the loaded values are tainted.
    #[inline]
    pub(crate) fn load(&mut self, instruction: &Summary, address: u64, missed: bool) -> bool {
        let brought = if missed { self.latest } else { self.found(address) };
        let brought = self.fresh(brought).max(self.address(instruction));
        self.loaded = self.loaded.max(brought);
        self.loaded != 0
    }

    #[inline]
    pub(crate) fn store(&mut self, instruction: &Summary, address: u64) {
        self.put(address, self.strongest(instruction.sources & self.tainted).max(self.loaded));
    }

    /// Notes a store of a value with this taint.
    #[inline]
    pub(crate) fn put(&mut self, address: u64, taint: u32) {
        // An untainted value needs no entry where no tainted one can lie.
        if taint != 0 || self.is_suspect(address) {
            let (entry, tag) = place(address);
            self.stores[entry] = (tag, taint);
            self.stored = self.stored.max(taint);
            let latest = &mut self.latest_of[(address >> LINE_SHIFT) as usize % LINES];
            *latest = taint.max(*latest);
        }
    }

    #[inline]
    fn found(&self, address: u64) -> u32 {
        if !self.is_suspect(address) {
            return 0;
        }
        let (entry, tag) = place(address);
        let (found, taint) = self.stores[entry];
        if found == tag { taint } else { self.in_flight(address >> 6) }
    }

    /// Returns whether no value in `reach + 1` bytes at `address`, at most 64, is tainted inside the window.
    #[inline(always)]
    pub(crate) fn is_untouched(&self, address: u64, reach: u64) -> bool {
        let (low, high) = (address >> LINE_SHIFT, (address + reach) >> LINE_SHIFT);
        let latest = |line: u64| self.latest_of[line as usize % LINES];
        latest(low) < self.oldest && (low == high || latest(high) < self.oldest)
    }

    /// Returns whether no stored value is tainted inside the window.
    #[inline(always)]
    pub(crate) fn stores_nothing(&self) -> bool {
        self.stored < self.oldest
    }

    /// Returns whether the value may be tainted inside the window: rarely, which spares the large table.
    #[inline]
    fn is_suspect(&self, address: u64) -> bool {
        self.stored.max(self.in_flight(address >> 6)) >= self.oldest
    }

    #[inline]
    fn in_flight(&self, line: u64) -> u32 {
        let (found, number) = self.lines[line as usize % LINES];
        if found == line { number } else { 0 }
    }
}

/// Returns the entry and the tag of the 8 bytes at `address`. The tag is never 0, which marks an empty entry.
fn place(address: u64) -> (usize, u32) {
    let word = address >> 3;
    (word as usize % STORES, (word / STORES as u64) as u32 | 1 << 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u32 = 1;
    const B: u32 = 2;

    fn reads(address: u32, destination: u32) -> Summary {
        Summary { address, destinations: destination, ..Summary::default() }
    }

    /// Runs a missing load and its write-back.
    fn missing_load(tracker: &mut Tracker, instruction: &Summary, address: u64, position: u64) -> u8 {
        let distance = tracker.miss(instruction, address >> 6, position);
        tracker.load(instruction, address, true);
        tracker.step(instruction);
        distance
    }

    #[test]
    fn a_chase_depends_on_the_miss_before_and_two_chains_on_the_one_before_that() {
        let mut tracker = Tracker::default();
        assert_eq!(missing_load(&mut tracker, &reads(A, A), 1 << 12, 1), 0);
        assert_eq!(missing_load(&mut tracker, &reads(A, A), 2 << 12, 2), 1);
        assert_eq!(missing_load(&mut tracker, &reads(B, B), 3 << 12, 3), 0);
        assert_eq!(missing_load(&mut tracker, &reads(A, A), 4 << 12, 4), 2);
        assert_eq!(missing_load(&mut tracker, &reads(B, B), 5 << 12, 5), 2);
    }

    #[test]
    fn a_dependence_ends_with_the_window() {
        for (gap, expected) in [(WINDOW, 1), (WINDOW + 1, 0)] {
            let mut tracker = Tracker::default();
            missing_load(&mut tracker, &reads(A, A), 1 << 12, 1);
            assert_eq!(missing_load(&mut tracker, &reads(A, A), 2 << 12, 1 + gap), expected);
        }
    }

    #[test]
    fn a_hit_in_a_line_in_flight_and_a_spilled_value_carry_the_taint() {
        let mut tracker = Tracker::default();
        missing_load(&mut tracker, &reads(0, 0), 4096, 1);
        tracker.load(&reads(0, B), 4096 + 8, false);
        tracker.step(&reads(0, B));
        let spill = Summary { sources: B, ..Summary::default() };
        tracker.store(&spill, 80);
        tracker.step(&spill);
        tracker.step(&Summary { destinations: B, ..Summary::default() });
        assert_eq!(tracker.miss(&reads(B, 0), 99, 5), 0, "overwritten");
        tracker.load(&reads(0, A), 80, false);
        tracker.step(&reads(0, A));
        assert_eq!(tracker.miss(&reads(A, 0), 100, 6), 2, "reloaded: the second miss before");
    }

    #[test]
    fn what_was_tainted_before_an_idle_time_is_not_afterwards() {
        let mut tracker = Tracker::default();
        missing_load(&mut tracker, &reads(0, A), 4096, 1);
        tracker.age(10_000);
        assert!(tracker.idle());
        assert_eq!(tracker.miss(&reads(A, 0), 7, 10_000), 0);
        assert!(!tracker.idle());
    }

    #[test]
    fn distances_beyond_a_byte_are_not_recorded() {
        let mut tracker = Tracker::default();
        missing_load(&mut tracker, &reads(0, A), 4096, 1);
        for miss in 0..300 {
            tracker.miss(&reads(0, 0), 1000 + miss, 2);
        }
        assert_eq!(tracker.miss(&reads(A, 0), 7, 3), 0);
        tracker.age(3);
        assert_eq!(tracker.latest - tracker.oldest, LONGEST - 1, "the others left the window");
    }
}
