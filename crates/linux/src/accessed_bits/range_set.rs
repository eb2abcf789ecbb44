//! Set of addresses, kept as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Addresses as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RangeSet {
    /// End of each range by its start.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn insert(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&found, &found_end)) = self.ranges.range(..=end).next_back()
            && found_end >= start
        {
            self.ranges.remove(&found);
            start = start.min(found);
            end = end.max(found_end);
        }
        self.ranges.insert(start, end);
    }

    /// Removes the addresses of `range`; returns whether it contained any.
    pub(super) fn remove(&mut self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        let mut any = false;
        while let Some((&start, &end)) = self.ranges.range(..range.end).next_back()
            && end > range.start
        {
            any = true;
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, end);
            }
            if start < range.start {
                self.ranges.insert(start, range.start);
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes the set of a bitmap of single addresses below 64.
    fn from_bits(bits: u64) -> RangeSet {
        let mut set = RangeSet::default();
        for address in (0..64).filter(|address| bits >> address & 1 == 1) {
            set.insert(&(address..address + 1));
        }
        set
    }

    fn mask(range: &Range<u64>) -> u64 {
        (0..64).filter(|address| range.contains(address)).fold(0, |mask, address| mask | 1 << address)
    }

    proptest! {
        #[test]
        fn is_a_set_of_addresses(steps in proptest::collection::vec((any::<bool>(), 0u64..60, 0u64..30), 0..80)) {
            let (mut set, mut bits) = (RangeSet::default(), 0u64);
            for (add, start, length) in steps {
                let range = start..(start + length).min(64);
                if add {
                    set.insert(&range);
                    bits |= mask(&range);
                } else {
                    prop_assert_eq!(set.remove(&range), bits & mask(&range) != 0);
                    bits &= !mask(&range);
                }
                prop_assert_eq!(&set, &from_bits(bits));
            }
        }
    }
}
