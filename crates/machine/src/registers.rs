//! The registers of a core that hold lines in flight: when each of them is free again.

use crate::limits::MAX_REGISTERS;

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

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
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
