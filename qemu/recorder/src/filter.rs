//! First-level cache of a thread: a *filter* in front of the cache that all threads share.
//!
//! As in a real machine, whose cores have their own caches, a hit here does not refresh the line in the
//! last-level cache. A hit changes nothing, so accesses that all hit may come in any order; and the array is
//! direct-mapped, 8 KiB, and needs no lock. Another thread's store does not invalidate a line, and a
//! line that leaves the shared cache stays: neither would cause an access to memory. A forked child continues
//! with a copy.

use isotherm_core::cache::{Geometry, LINE_SHIFT};

use isotherm_recorder_protocol::layout::LARGEST_FILTER;

const LINES: usize = LARGEST_FILTER as usize;
const PLACE_BITS: u32 = LARGEST_FILTER.ilog2();
/// Marks a place without a line; no address lies there.
const NONE: u32 = u32::MAX;

/// Lines in a direct-mapped cache. A line's place is that in the largest filter, so that tags are short, and
/// looking for a line needs no geometry. A smaller filter has fewer places in use, one for each of its sets.
pub(crate) struct Filter {
    /// Line's bits above its place, by place; `None` without a filter.
    tags: Option<Box<[u32; LINES]>>,
    /// Place that each set uses. Only a miss reads them.
    used: Option<Box<[u16; LINES]>>,
    last: usize,
}

impl Filter {
    pub(crate) const fn none() -> Self {
        Self { tags: None, used: None, last: 0 }
    }

    pub(crate) fn new(geometry: Geometry) -> Self {
        let used = Some(Box::new(std::array::from_fn(|set| set as u16)));
        Self { tags: Some(Box::new([NONE; LINES])), used, last: geometry.sets as usize - 1 }
    }

    #[inline(always)]
    fn place(line: u64) -> usize {
        line as usize % LINES
    }

    /// Returns the bits of a line that its place does not tell. Addresses have at most 48 bits.
    #[inline(always)]
    fn tag(line: u64) -> u32 {
        (line >> PLACE_BITS) as u32
    }

    #[inline(always)]
    pub(crate) fn holds(&self, line: u64) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags[Self::place(line)] == Self::tag(line))
    }

    /// Returns whether the filter holds all of `reach + 1` bytes at `address`, at most 64.
    #[inline(always)]
    pub(crate) fn covers(&self, address: u64, reach: u64) -> bool {
        let (low, high) = (address >> LINE_SHIFT, (address + reach) >> LINE_SHIFT);
        self.holds(low) && (low == high || self.holds(high))
    }

    /// Puts `line` in the place of its set's line, and returns whether it was there before.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u64) -> bool {
        let hit = self.holds(line);
        if let (false, Some(tags), Some(used)) = (hit, &mut self.tags, &mut self.used) {
            let place = Self::place(line);
            let before = std::mem::replace(&mut used[place & self.last], place as u16);
            tags[usize::from(before) % LINES] = NONE;
            tags[place] = Self::tag(line);
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETS: u64 = 64;

    fn filter(lines: &[u64]) -> Filter {
        let mut filter = Filter::new(Geometry { sets: SETS as u32, ways: 1 });
        lines.iter().for_each(|&line| assert!(!filter.touch(line), "{line}"));
        filter
    }

    #[test]
    fn an_empty_one_holds_nothing_and_a_filled_one_what_was_touched() {
        assert!((0..2 * SETS).all(|line| !filter(&[]).holds(line)));
        let lines: Vec<_> = (7..7 + SETS).collect();
        let mut filled = filter(&lines);
        assert!(lines.iter().all(|&line| filled.holds(line) && filled.touch(line)));
        assert!(!filled.holds(6) && !filled.holds(7 + SETS));
    }

    #[test]
    fn none_holds_nothing() {
        let mut none = Filter::none();
        assert!([0, 1, u64::MAX >> 6].into_iter().all(|line| !none.touch(line) && !none.holds(line)));
    }

    #[test]
    fn lines_with_the_same_place_replace_each_other() {
        let (one, other) = (3, 3 + SETS * 1_000_003);
        let mut filter = filter(&[one, 4, other]);
        assert!(!filter.holds(one) && filter.holds(4) && filter.holds(other));
        assert!(!filter.touch(one) && !filter.touch(other));
    }

    #[test]
    fn one_of_any_size_is_a_direct_mapped_cache() {
        for sets in [2, 64, u64::from(LARGEST_FILTER)] {
            let mut filter = Filter::new(Geometry { sets: sets as u32, ways: 1 });
            let (mut plain, mut state) = (vec![u64::MAX; sets as usize], 1_u64);
            for _ in 0..100_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let line = ((state >> 33) % (3 * sets)) << (state >> 20 & 31);
                let before = std::mem::replace(&mut plain[(line % sets) as usize], line);
                assert_eq!((filter.holds(line), filter.touch(line)), (before == line, before == line));
            }
        }
    }

    #[test]
    fn an_access_across_two_lines_needs_both() {
        let filter = filter(&[1, 2]);
        let covered = [(64, 0), (64, 63), (127, 0), (124, 7), (65, 63), (191, 0)];
        let not = [(60, 7), (63, 0), (188, 7), (192, 0)];
        assert!(covered.iter().all(|&(address, reach)| filter.covers(address, reach)));
        assert!(not.iter().all(|&(address, reach)| !filter.covers(address, reach)));
    }
}
