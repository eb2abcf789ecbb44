//! Numbered slots with a time each, to find the earliest: the page that was used last.

/// Bits of a slot's number.
const NUMBER_BITS: u32 = 7;

/// A tournament tree in one array: the root is word 1, the children of word `n` are 2n and 2n + 1, and the
/// slots are the leaves, from word `leaves` on. A word has its time and number: the least is the earliest.
/// Times have 57 bits: 40 hours in picoseconds.
///
/// No branch depends on a time: a set costs a few words whatever the times are.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    words: [u64; 2 * Self::MAX],
    count: usize,
    leaves: usize,
}

impl Slots {
    pub(crate) const MAX: usize = 1 << NUMBER_BITS;
    /// The latest time that a slot can have.
    pub(crate) const LATEST: u64 = u64::MAX >> NUMBER_BITS;

    /// Creates `count` slots, at most [`Self::MAX`], all at time 0.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(Self::MAX);
        let mut slots = Self { words: [u64::MAX; 2 * Self::MAX], count, leaves: count.next_power_of_two() };
        (0..count).for_each(|slot| slots.set(slot, 0));
        slots
    }

    /// Returns the earliest slot and its time; the lowest number among equals. There must be one.
    #[inline(always)]
    pub(crate) fn earliest(&self) -> (usize, u64) {
        let word = self.words[1];
        ((word & (Self::MAX as u64 - 1)) as usize, word >> NUMBER_BITS)
    }

    /// Makes every time earlier by `by`, or 0.
    pub(crate) fn move_back(&mut self, by: u64) {
        for slot in 0..self.count {
            let time = self.words[self.leaves + slot] >> NUMBER_BITS;
            self.set(slot, time.saturating_sub(by));
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, time: u64) {
        // In range already; the mask saves the checks.
        let within = |at: usize| at % (2 * Self::MAX);
        let mut least = time << NUMBER_BITS | slot as u64;
        let mut at = self.leaves + slot;
        self.words[within(at)] = least;
        while at > 1 {
            least = least.min(self.words[within(at ^ 1)]);
            at /= 2;
            self.words[within(at)] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_found(
            count in 1..=Slots::MAX,
            times in prop::collection::vec(0u64..1 << 50, 1..300),
        ) {
            let mut slots = Slots::new(count);
            let mut naive = vec![0; count];
            for time in times {
                let expected = (0..count).min_by_key(|&slot| naive[slot]).expect("one");
                prop_assert_eq!(slots.earliest(), (expected, naive[expected]));
                slots.set(expected, time);
                naive[expected] = time;
            }
        }
    }
}
