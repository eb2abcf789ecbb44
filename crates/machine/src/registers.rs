//! The registers of a core that hold lines in flight: when each of them is free again.

use crate::limits::MAX_REGISTERS;

/// The times at which registers become free, in order, in a ring. A line takes the register that is free
/// first and holds it for longer, so its place is near the end, where it is sought.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    free: [u64; RING],
    count: usize,
    /// Of the ring's part in use, a power of two.
    mask: usize,
    /// Number of times that left the ring; the first `count` of those that follow are in it.
    first: usize,
}

/// More words than registers: a line is put in its place before the register that it takes leaves the ring.
const RING: usize = 2 * MAX_REGISTERS;

impl Registers {
    /// Creates `count` registers, at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(MAX_REGISTERS);
        Self { free: [0; RING], count, mask: (count + 1).next_power_of_two() - 1, first: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns when the first register is free.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.free[self.place(self.first)]
    }

    /// Takes that register until `time`, not before it is free. There must be one.
    #[inline]
    pub(crate) fn take(&mut self, time: u64) {
        let mut at = self.first + self.count;
        self.first += 1;
        loop {
            let before = self.free[self.place(at - 1)];
            if before <= time {
                break;
            }
            self.free[self.place(at)] = before;
            at -= 1;
        }
        self.free[self.place(at)] = time;
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        number & (self.mask % RING)
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
            let mut registers = Registers::new(count);
            let mut naive = vec![0; count];
            for duration in durations {
                let first = naive.iter_mut().min().expect("one");
                prop_assert_eq!(registers.earliest(), *first);
                *first += duration;
                registers.take(*first);
            }
        }
    }
}
