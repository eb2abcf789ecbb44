//! The registers of a core that hold lines in flight: when one of them is free.
//!
//! Whatever the order of taking, `count` registers hold the `count` latest of all times for which one was
//! taken. So where all but the last `count` - 1 of those taken are free at a time, one of them is, too: most
//! misses need to know no more, and the times are put in order only for those that do.

use crate::limits::{MAX_REGISTERS, WINDOW};

/// The bits of the first float that is not subnormal.
const FIRST: u64 = f64::MIN_POSITIVE.to_bits();
/// Times remembered. What is older is free: at most [`WINDOW`] loads and as many stores are in flight.
const REMEMBERED: usize = 2 * WINDOW;

/// Registers, each taken until a time in picoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    /// Until when those were taken that are no longer among the last `count` - 1.
    earlier: u64,
    count: usize,
    /// Registers taken so far, and those of them that `times` has.
    taken: usize,
    ordered: usize,
    /// The times for which the last ones were taken.
    ring: [u64; REMEMBERED],
    /// The times at which registers become free, in order, then infinite ones.
    ///
    /// A time is the float with its bits, beyond those of subnormal ones: positive floats are in the order of
    /// their bits, and every x86-64 processor has minima of floats.
    times: [f64; MAX_REGISTERS + 1],
}

impl Registers {
    /// Creates `count` registers, at least one and at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.clamp(1, MAX_REGISTERS);
        let mut times = [f64::INFINITY; MAX_REGISTERS + 1];
        times[..count].fill(float(0));
        Self { earlier: 0, count, taken: 0, ordered: 0, ring: [0; REMEMBERED], times }
    }

    /// Returns the first time from `time` on at which a register is free.
    #[inline(always)]
    pub(crate) fn free_from(&mut self, time: u64) -> u64 {
        if time >= self.earlier { time } else { time.max(self.earliest()) }
    }

    /// Takes the register that is free first until `time`, not before it is free.
    #[inline(always)]
    pub(crate) fn take(&mut self, time: u64) {
        self.ring[self.taken % REMEMBERED] = time;
        self.taken += 1;
        self.earlier = self.earlier.max(self.ring[self.taken.wrapping_sub(self.count) % REMEMBERED]);
    }

    /// Returns when the first register is free.
    #[inline]
    pub(crate) fn earliest(&mut self) -> u64 {
        match self.taken - self.ordered {
            0 => {}
            1 => self.insert(self.ring[self.ordered % REMEMBERED]),
            _ => self.put_in_order(),
        }
        self.ordered = self.taken;
        self.times[0].to_bits() - FIRST
    }

    #[inline(never)]
    fn put_in_order(&mut self) {
        let from = self.ordered.max(self.taken.saturating_sub(REMEMBERED));
        (from..self.taken).for_each(|number| self.insert(self.ring[number % REMEMBERED]));
    }

    /// Puts a time among those in order, in place of the first if it is later.
    ///
    /// All times move, by vector instructions: where a time belongs is hard to predict, and a mispredicted
    /// branch costs more.
    #[inline(always)]
    fn insert(&mut self, time: u64) {
        let time = float(time);
        // A known length needs no branch, and infinite times stay.
        if let Some(times) = self.times.first_chunk_mut::<17>().filter(|_| self.count <= 16) {
            shift_in(times, time);
        } else {
            shift_in(&mut self.times[..=self.count], time);
        }
    }
}

#[inline(always)]
fn float(time: u64) -> f64 {
    f64::from_bits(time + FIRST)
}

#[inline(always)]
fn shift_in(times: &mut [f64], time: f64) {
    // Each register's time comes between what it and the next one had.
    for place in 0..times.len() - 1 {
        let after = times[place + 1];
        let later = if times[place] > time { times[place] } else { time };
        times[place] = if later < after { later } else { after };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_register_that_is_free_first_is_taken(
            count in 1..=MAX_REGISTERS,
            misses in prop::collection::vec((0u64..100, 0u64..1000), 1..2000),
        ) {
            let (mut registers, mut naive, mut now) = (Registers::new(count), vec![0; count], 0);
            for (passed, duration) in misses {
                now += passed;
                let first = naive.iter_mut().min().expect("one");
                let start = now.max(*first);
                prop_assert_eq!(registers.free_from(now), start);
                *first = start + duration;
                registers.take(*first);
            }
        }
    }
}
