//! A core's page walkers: how many walks go on at once.

use std::hint::select_unpredictable;

/// One walker's last booking, and the idle time before it.
///
/// Walks are booked in program order, but a walk whose address comes late must not keep the walker from an
/// independent one that is ready before.
#[derive(Debug, Clone, Copy, Default)]
struct Walker {
    idle_from: u64,
    start: u64,
    end: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Walkers(Vec<Walker>);

impl Walkers {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Walker::default(); count])
    }

    /// Books a walk of `duration` that is ready at `ready`, all in picoseconds; returns its end.
    #[inline]
    pub(crate) fn walk(&mut self, ready: u64, duration: u64) -> u64 {
        // Selects in place of branches, which would be mispredicted half of the time.
        let (mut first, mut begin, mut fits) = (0, u64::MAX, false);
        for (index, walker) in self.0.iter().enumerate() {
            let (idle, behind) = (ready.max(walker.idle_from), ready.max(walker.end));
            let before = idle + duration <= walker.start;
            let possible = select_unpredictable(before, idle, behind);
            let sooner = possible < begin;
            first = select_unpredictable(sooner, index, first);
            fits = select_unpredictable(sooner, before, fits);
            begin = possible.min(begin);
        }
        let end = begin + duration;
        let walker = &mut self.0[first];
        walker.idle_from = select_unpredictable(fits, end, walker.end);
        walker.start = select_unpredictable(fits, walker.start, begin);
        walker.end = select_unpredictable(fits, walker.end, end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_walks_go_on_at_once_as_there_are_walkers() {
        let mut walkers = Walkers::new(2);
        let ends: Vec<u64> = (0..6).map(|_| walkers.walk(0, 100)).collect();
        assert_eq!(ends, [100, 100, 200, 200, 300, 300]);
    }

    #[test]
    fn a_walk_that_is_ready_goes_before_one_that_waits_for_its_address() {
        let mut walkers = Walkers::new(1);
        assert_eq!(walkers.walk(1000, 100), 1100);
        assert_eq!((walkers.walk(0, 100), walkers.walk(0, 100)), (100, 200));
        assert_eq!(walkers.walk(850, 100), 950);
        assert_eq!(walkers.walk(860, 100), 1200, "no room is left before");
    }
}
