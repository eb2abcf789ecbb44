//! First-level cache of a thread: a *filter* in front of the cache that all threads share.
//!
//! As in a real machine, whose cores have their own caches, a hit here does not refresh the line in the
//! last-level cache. A hit changes nothing, so accesses that all hit may come in any order; and the array is
//! direct-mapped, at most 16 KiB, and needs no lock. Another thread's store does not invalidate a line, and a
//! line that leaves the shared cache stays: neither would cause an access to memory. A forked child continues
//! with a copy.

use isotherm_core::cache::{Geometry, LINE_SHIFT};

use isotherm_recorder_protocol::layout::LARGEST_FILTER;

const LINES: usize = LARGEST_FILTER as usize;
/// Marks a place without a line; no address lies there.
const NONE: u64 = u64::MAX;

/// Lines in a direct-mapped cache, each at its only possible place.
pub(crate) struct Filter {
    last: usize,
    lines: Option<Box<[u64; LINES]>>,
}

impl Filter {
    pub(crate) const fn none() -> Self {
        Self { last: 0, lines: None }
    }

    pub(crate) fn new(geometry: Geometry) -> Self {
        Self { last: geometry.sets as usize - 1, lines: Some(Box::new([NONE; LINES])) }
    }

    #[inline(always)]
    fn place(&self, line: u64) -> usize {
        // The remainder spares a bounds check.
        (line as usize & self.last) % LINES
    }

    #[inline(always)]
    pub(crate) fn holds(&self, line: u64) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines[self.place(line)] == line)
    }

    /// Returns whether the filter holds all of `reach + 1` bytes at `address`, at most 64.
    #[inline(always)]
    pub(crate) fn covers(&self, address: u64, reach: u64) -> bool {
        let (low, high) = (address >> LINE_SHIFT, (address + reach) >> LINE_SHIFT);
        self.holds(low) && (low == high || self.holds(high))
    }

    /// Puts `line` in its place, and returns whether it was there before.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u64) -> bool {
        let place = self.place(line);
        self.lines.as_mut().is_some_and(|lines| std::mem::replace(&mut lines[place], line) == line)
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
        assert!([0, 1, NONE].into_iter().all(|line| !none.touch(line) && !none.holds(line)));
    }

    #[test]
    fn lines_with_the_same_place_replace_each_other() {
        let (one, other) = (3, 3 + SETS * 1_000_003);
        let mut filter = filter(&[one, 4, other]);
        assert!(!filter.holds(one) && filter.holds(4) && filter.holds(other));
        assert!(!filter.touch(one) && !filter.touch(other));
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
