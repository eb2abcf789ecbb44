//! The registers of a core that hold lines in flight: when each of them is free again.

use crate::limits::{MAX_REGISTERS, WINDOW};

/// Few registers, which every miss asks for.
///
/// Taking one moves all times by vector instructions: where a time belongs is hard to predict, and a
/// mispredicted branch costs more. Every x86-64 processor has minima of floats, and positive floats are in
/// the order of their bits, so a time is the float with its bits, beyond those of subnormal ones.
#[derive(Debug, Clone)]
pub(crate) struct FewRegisters {
    /// The times in order, then infinite ones.
    times: [f64; MAX_REGISTERS + 1],
    count: usize,
}

/// The bits of the first float that is not subnormal.
const FIRST: u64 = f64::MIN_POSITIVE.to_bits();

#[inline(always)]
fn float(time: u64) -> f64 {
    f64::from_bits(time + FIRST)
}

impl FewRegisters {
    /// Creates `count` registers, at least one and at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.clamp(1, MAX_REGISTERS);
        let mut times = [f64::INFINITY; MAX_REGISTERS + 1];
        times[..count].fill(float(0));
        Self { times, count }
    }

    /// Returns when the first register is free.
    #[inline(always)]
    pub(crate) fn earliest(&self) -> u64 {
        self.times[0].to_bits() - FIRST
    }

    /// Takes that register until `time`, not before it is free.
    #[inline(always)]
    pub(crate) fn take(&mut self, time: u64) {
        let time = float(time);
        let times = &mut self.times[..=self.count];
        // Each register's time comes between what it and the next one had.
        for place in 0..times.len() - 1 {
            let after = times[place + 1];
            let later = if times[place] > time { times[place] } else { time };
            times[place] = if later < after { later } else { after };
        }
    }
}

/// The times at which registers become free, in order. A line takes the register that is free first and holds
/// it for longer, so its place is near the end, where it is sought.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    /// `count` words from `first` on; those before have left. At their end they move to the start.
    times: [u64; MAX_WORDS],
    words: usize,
    count: usize,
    first: usize,
}

const MAX_WORDS: usize = 2 * MAX_REGISTERS;

impl Registers {
    /// Creates `count` registers, at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(MAX_REGISTERS);
        Self { times: [0; MAX_WORDS], words: 2 * count, count, first: 0 }
    }

    /// Returns when the first register is free.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.times[self.first]
    }

    /// Takes that register until `time`, not before it is free. There must be one.
    #[inline(always)]
    pub(crate) fn take(&mut self, time: u64) {
        if self.first + self.count == self.words {
            self.times.copy_within(self.first..self.words, 0);
            self.first = 0;
        }
        let mut place = self.first + self.count;
        self.first += 1;
        while self.times[place - 1] > time {
            self.times[place] = self.times[place - 1];
            place -= 1;
        }
        self.times[place] = time;
    }

    /// Takes registers until `times`, which are in order.
    fn merge(&mut self, times: &[u64]) {
        let ours: [u64; MAX_WORDS] = self.times;
        let (mut ours, mut theirs) = (&ours[self.first..self.first + self.count], times);
        for place in self.times[..self.count].iter_mut().rev() {
            let latest = if ours.last() >= theirs.last() { &mut ours } else { &mut theirs };
            let (time, rest) = latest.split_last().expect("ours are enough");
            (*place, *latest) = (*time, rest);
        }
        self.first = 0;
    }
}

/// Registers that are asked for rarely: what takes them is put in order only then.
///
/// Whatever the order of taking, `count` registers hold the `count` latest of all times for which one was
/// taken.
#[derive(Debug, Clone)]
pub(crate) struct LateRegisters {
    registers: Registers,
    /// Times that are not in `registers` yet: the last `taken`, in a ring. What left it was taken
    /// [`REMEMBERED`] misses ago and is free by now, since [`WINDOW`] misses at most are in flight.
    ring: [u64; REMEMBERED],
    taken: usize,
}

const REMEMBERED: usize = 4 * WINDOW;
/// Times up to which they are put in order one by one.
const FEW: usize = 64;

impl LateRegisters {
    pub(crate) fn new(count: usize) -> Self {
        Self { registers: Registers::new(count), ring: [0; REMEMBERED], taken: 0 }
    }

    /// Takes the register that is free first until `time`, where it is known to be free.
    #[inline(always)]
    pub(crate) fn take_free(&mut self, time: u64) {
        self.ring[self.taken % REMEMBERED] = time;
        self.taken += 1;
    }

    /// Returns the registers, all of them in order.
    #[inline(always)]
    pub(crate) fn in_order(&mut self) -> &mut Registers {
        if self.taken > 0 {
            self.put_in_order();
        }
        &mut self.registers
    }

    #[cold]
    fn put_in_order(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let times = &mut self.ring[..taken.min(REMEMBERED)];
        if taken <= FEW {
            times.iter().for_each(|&time| self.registers.take(time));
        } else {
            times.sort_unstable();
            self.registers.merge(times);
        }
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
            durations in prop::collection::vec(0u64..1000, 1..600),
        ) {
            let (mut registers, mut few) = (Registers::new(count), FewRegisters::new(count));
            let mut naive = vec![0; count];
            for duration in durations {
                let first = naive.iter_mut().min().expect("one");
                prop_assert_eq!((registers.earliest(), few.earliest()), (*first, *first));
                *first += duration;
                registers.take(*first);
                few.take(*first);
            }
        }

        #[test]
        fn registers_that_are_put_in_order_late_are_the_same(
            count in 1..=MAX_REGISTERS,
            durations in prop::collection::vec((0u64..1000, 0..200), 1..2000),
        ) {
            let (mut early, mut late) = (Registers::new(count), LateRegisters::new(count));
            for (duration, asked) in durations {
                let time = early.earliest() + duration;
                early.take(time);
                late.take_free(time);
                if asked == 0 {
                    prop_assert_eq!(late.in_order().earliest(), early.earliest());
                }
            }
        }
    }
}
