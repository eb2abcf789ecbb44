//! A core's page walkers: how many walks go on at once.

use std::hint::select_unpredictable;

use crate::limits::MAX_WALKERS;

/// One walker's last booking, and the idle time before it.
///
/// Walks are booked in program order, but a walk whose address comes late must not keep the walker from an
/// independent one that is ready before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Walker {
    idle_from: u64,
    start: u64,
    end: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Walkers {
    all: [Walker; MAX_WALKERS],
    count: usize,
    /// When the last of all walks so far was ready: none starts later without having waited.
    latest: u64,
}

impl Walkers {
    pub(crate) fn new(count: usize) -> Self {
        Self { all: [Walker::default(); MAX_WALKERS], count: count.min(MAX_WALKERS), latest: 0 }
    }

    /// Books a walk of `duration` that is ready at `ready`, all in picoseconds; returns its end.
    #[inline(always)]
    pub(crate) fn walk(&mut self, ready: u64, duration: u64) -> u64 {
        // Idle times end where a walk was ready: for one that is ready later, they are too short.
        if ready < self.latest || duration == 0 {
            return self.walk_early(ready, duration);
        }
        self.latest = ready;
        // Selects in place of branches, which would be mispredicted half of the time.
        let (mut first, mut begin) = (0, u64::MAX);
        for (index, walker) in self.all[..self.count].iter().enumerate() {
            let possible = ready.max(walker.end);
            first = select_unpredictable(possible < begin, index, first);
            begin = possible.min(begin);
        }
        let end = begin + duration;
        let walker = &mut self.all[first];
        *walker = Walker { idle_from: walker.end, start: begin, end };
        end
    }

    /// Books a walk that may fit into a walker's idle time.
    #[inline(never)]
    fn walk_early(&mut self, ready: u64, duration: u64) -> u64 {
        self.latest = self.latest.max(ready);
        let (mut first, mut begin) = (0, u64::MAX);
        for (index, walker) in self.all[..self.count].iter().enumerate() {
            let (idle, behind) = (ready.max(walker.idle_from), ready.max(walker.end));
            let possible = select_unpredictable(idle + duration <= walker.start, idle, behind);
            first = select_unpredictable(possible < begin, index, first);
            begin = possible.min(begin);
        }
        let end = begin + duration;
        let walker = &mut self.all[first];
        let fits = end <= walker.start;
        walker.idle_from = select_unpredictable(fits, end, walker.end);
        walker.start = select_unpredictable(fits, walker.start, begin);
        walker.end = select_unpredictable(fits, walker.end, end);
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_that_is_ready_last_needs_no_look_at_idle_times(
            count in 1..=MAX_WALKERS,
            walks in prop::collection::vec((0u64..200, 0u64..100, 0u64..40), 1..300),
        ) {
            let (mut walkers, mut naive) = (Walkers::new(count), Walkers::new(count));
            let mut now = 0;
            for (passed, early, duration) in walks {
                now += passed;
                let ready = now - early.min(now);
                prop_assert_eq!(walkers.walk(ready, duration), naive.walk_early(ready, duration));
                prop_assert_eq!(walkers.all, naive.all);
            }
        }
    }

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
