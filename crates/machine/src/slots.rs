//! Defines numbered slots that each have a time, of which the earliest is wanted again and again: the miss register that is free first, the
//! page that was used longest ago.

/// Bits that hold a slot's number below its time.
const NUMBER_BITS: u32 = 7;
/// Numbers compared side by side, so that the comparisons do not wait for each other.
const LANES: usize = 4;

/// Time and number in one word, so that the least word names the earliest slot, without a branch. 57 bits of picoseconds are forty hours.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Vec<u64>);

impl Slots {
    /// The most that there can be.
    pub(crate) const MAX: usize = 1 << NUMBER_BITS;

    /// So many, [`Self::MAX`] at most, all at time 0.
    pub(crate) fn new(count: usize) -> Self {
        let slots = 0..count.min(Self::MAX) as u64;
        let never = slots.end.next_multiple_of(LANES as u64) - slots.end;
        Self(slots.chain(std::iter::repeat_n(u64::MAX, never as usize)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The earliest slot, of equal ones that with the least number, and its time. There must be one.
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
        fn the_earliest_is_found(count in 1..=Slots::MAX, times in prop::collection::vec(0u64..1 << 50, 1..300)) {
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
