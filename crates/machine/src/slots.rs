//! Numbered slots with a time each, to find the earliest: a free miss register, the oldest page.

use crate::limits::REGISTER_BITS as NUMBER_BITS;

/// Words compared side by side, so that the comparisons are independent.
const LANES: usize = 4;

/// Time and number in one word: the least word is the earliest slot. 57 bits of picoseconds are 40 hours.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Vec<u64>);

impl Slots {
    pub(crate) const MAX: usize = 1 << NUMBER_BITS;

    /// Creates `count` slots, at most [`Self::MAX`], all at time 0.
    pub(crate) fn new(count: usize) -> Self {
        let slots = 0..count.min(Self::MAX) as u64;
        let never = slots.end.next_multiple_of(LANES as u64) - slots.end;
        Self(slots.chain(std::iter::repeat_n(u64::MAX, never as usize)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the earliest slot and its time; the lowest number among equals. There must be one.
    #[inline]
    pub(crate) fn earliest(&self) -> (usize, u64) {
        let (lanes, _) = self.0.as_chunks::<LANES>();
        let mut least = [u64::MAX; LANES];
        for words in lanes {
            for lane in 0..LANES {
                least[lane] = least[lane].min(words[lane]);
            }
        }
        let word = least[0].min(least[1]).min(least[2].min(least[3]));
        ((word & (Self::MAX as u64 - 1)) as usize, word >> NUMBER_BITS)
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: usize, time: u64) {
        self.0[slot] = time << NUMBER_BITS | slot as u64;
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
