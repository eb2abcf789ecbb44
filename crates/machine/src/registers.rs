//! The registers of a core that hold lines in flight: when one of them is free.

use crate::limits::MAX_REGISTERS;
use crate::slots::Slots;

const _: () = assert!(MAX_REGISTERS <= Slots::MAX);

/// Registers, each taken until a time in picoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    /// Times since `base`.
    slots: Slots,
    base: u64,
}

impl Registers {
    /// Creates `count` registers, at least one and at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        Self { slots: Slots::new(count.clamp(1, MAX_REGISTERS)), base: 0 }
    }

    /// Returns when the first register is free.
    #[inline(always)]
    pub(crate) fn earliest(&self) -> u64 {
        self.base + self.slots.earliest().1
    }

    /// Returns the first time from `time` on at which a register is free.
    #[inline(always)]
    pub(crate) fn free_from(&self, time: u64) -> u64 {
        time.max(self.earliest())
    }

    /// Takes the register that is free first until `time`, which is not before it is free.
    #[inline(always)]
    pub(crate) fn take(&mut self, time: u64) {
        debug_assert!(self.earliest() <= time, "taken until {time}, free from {}", self.earliest());
        if time - self.base > Slots::LATEST {
            self.move_base(time);
        }
        self.slots.set(self.slots.earliest().0, time - self.base);
    }

    /// Makes room for times from `time` on. A register that is free for half of what slots can hold is free.
    #[cold]
    fn move_base(&mut self, time: u64) {
        let base = time - Slots::LATEST / 2;
        self.slots.move_back(base - self.base);
        self.base = base;
    }
}

/// Takes that are remembered until the registers must know them. A power of two.
const TAKEN: usize = 256;

const _: () = assert!(MAX_REGISTERS <= TAKEN);

/// Registers of which one is nearly always free.
///
/// The register that is taken is always the one that is free first. So `n` registers are taken until the `n`
/// latest times of all takes. While all takes but the last `n - 1` are over, one of them is free, whichever
/// it is: they learn of takes only when it is not so.
#[derive(Debug, Clone)]
pub(crate) struct AmpleRegisters {
    /// As of the first `known` takes.
    registers: Registers,
    count: usize,
    /// Times of the last takes, and the number of all.
    taken: [u64; TAKEN],
    takes: usize,
    known: usize,
    /// The latest time of all takes but the last `count - 1`.
    over: u64,
}

impl AmpleRegisters {
    /// Creates `count` registers, at least one and at most [`MAX_REGISTERS`], all free.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.clamp(1, MAX_REGISTERS);
        Self { registers: Registers::new(count), count, taken: [0; TAKEN], takes: 0, known: 0, over: 0 }
    }

    /// Returns when the first register is free.
    #[cold]
    pub(crate) fn earliest(&mut self) -> u64 {
        // The last takes first: most of those before are over then.
        for take in (self.known..self.takes).rev() {
            let time = self.taken[take % TAKEN];
            if time > self.registers.earliest() {
                self.registers.take(time);
            }
        }
        self.known = self.takes;
        self.registers.earliest()
    }

    /// Returns the first time from `time` on at which a register is free.
    #[inline(always)]
    pub(crate) fn free_from(&mut self, time: u64) -> u64 {
        if self.over <= time { time } else { time.max(self.earliest()) }
    }

    /// Takes the register that is free first until `time`, which is not before it is free.
    #[inline(always)]
    pub(crate) fn take(&mut self, time: u64) {
        if self.takes - self.known == TAKEN {
            self.earliest();
        }
        self.taken[self.takes % TAKEN] = time;
        self.takes += 1;
        // 0 before there were so many.
        self.over = self.over.max(self.taken[self.takes.wrapping_sub(self.count) % TAKEN]);
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
            // Up to two hours between misses, so that times go beyond what slots hold.
            scale in prop::sample::select(vec![1, 1 << 46]),
        ) {
            let (mut registers, mut ample) = (Registers::new(count), AmpleRegisters::new(count));
            let (mut naive, mut now) = (vec![0; count], 0);
            for (passed, duration) in misses {
                now += passed * scale;
                let first = naive.iter_mut().min().expect("one");
                let start = now.max(*first);
                prop_assert_eq!(registers.free_from(now), start);
                prop_assert_eq!(ample.free_from(now), start);
                *first = start + duration;
                registers.take(*first);
                ample.take(*first);
            }
            if scale == 1 {
                prop_assert_eq!(Some(ample.earliest()), naive.into_iter().min());
            }
        }
    }
}
