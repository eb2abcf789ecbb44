//! Defines when to look at what is mapped: as often as a budget allows.

use isotherm_core::Nanos;

/// The time of the next scan.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    next: Nanos,
}

impl Scanner {
    /// Whether it is time.
    pub(crate) fn due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Something appeared: look soon.
    pub(crate) fn soon(&mut self) {
        self.next = Nanos(0);
    }

    /// A scan ended at `now` and took `cost`: the next comes when `cost` is `budget` of the time between, and not
    /// before `shortest` has passed.
    pub(crate) fn done(&mut self, now: Nanos, cost: Nanos, budget: f64, shortest: Nanos) {
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
        scanner.done(Nanos(0), Nanos(30 * Nanos::MILLISECOND.0), 0.01, shortest);
        assert!(!scanner.due(Nanos(2 * Nanos::SECOND.0)));
        assert!(scanner.due(Nanos(3 * Nanos::SECOND.0)));
        scanner.done(Nanos(0), Nanos(10), 0.01, shortest);
        assert!(!scanner.due(Nanos(99 * Nanos::MILLISECOND.0)));
        assert!(scanner.due(Nanos(100 * Nanos::MILLISECOND.0)));
        scanner.soon();
        assert!(scanner.due(Nanos(1)));
    }
}
