//! Defines when to look at what is mapped: as often as a budget allows.

use isotherm_core::Nanos;

/// The time of the next scan.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    next: Nanos,
    /// How many scans in a row have found about as much as the one before.
    calm: u32,
}

/// The longest time between two scans of memory that does not change, in units of the shortest, as a power of two.
const CALMEST: u32 = 2;

impl Scanner {
    /// Whether it is time.
    pub(crate) fn due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Something appeared: look soon.
    pub(crate) fn soon(&mut self) {
        (self.next, self.calm) = (Nanos(0), 0);
    }

    /// A scan ended at `now` and took `cost`: the next comes when `cost` is `budget` of the time between, and not
    /// before `shortest` has passed. While nothing has `changed`, more and more time passes, up to four times the shortest.
    pub(crate) fn done(&mut self, now: Nanos, cost: Nanos, budget: f64, shortest: Nanos, changed: bool) {
        self.calm = if changed { 0 } else { (self.calm + 1).min(CALMEST) };
        let shortest = Nanos(shortest.0 << self.calm);
        let allowed = Nanos((cost.0 as f64 / budget.max(1e-6)) as u64);
        self.next = now + allowed.max(shortest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dear_scan_comes_seldom_and_a_cheap_one_ten_times_a_second() {
        let mut scanner = Scanner::default();
        assert!(scanner.due(Nanos(0)));
        let shortest = Nanos(100 * Nanos::MILLISECOND.0);
        scanner.done(Nanos(0), Nanos(30 * Nanos::MILLISECOND.0), 0.01, shortest, true);
        assert!(!scanner.due(Nanos(2 * Nanos::SECOND.0)));
        assert!(scanner.due(Nanos(3 * Nanos::SECOND.0)));
        scanner.done(Nanos(0), Nanos(10), 0.01, shortest, true);
        assert!(!scanner.due(Nanos(99 * Nanos::MILLISECOND.0)));
        assert!(scanner.due(Nanos(100 * Nanos::MILLISECOND.0)));
        scanner.soon();
        assert!(scanner.due(Nanos(1)));
    }

    #[test]
    fn memory_that_stays_as_it_is_is_looked_at_less_often() {
        let mut scanner = Scanner::default();
        let shortest = Nanos(100 * Nanos::MILLISECOND.0);
        let mut due = |changed| {
            scanner.done(Nanos(0), Nanos(0), 1.0, shortest, changed);
            (1..).find(|&tenths| scanner.due(Nanos(tenths * shortest.0)))
        };
        assert_eq!([false, false, false, true].map(&mut due), [2, 4, 4, 1].map(Some));
    }
}
