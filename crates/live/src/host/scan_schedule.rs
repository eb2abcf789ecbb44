//! Schedules scans of mapped memory as often as a budget allows.

use isotherm_core::Nanos;

#[derive(Debug, Default)]
pub(crate) struct ScanSchedule {
    next: Nanos,
    /// Successive scans that found about as much as the one before.
    calm: u32,
}

/// Longest time between two scans of unchanging memory in units of the shortest, as a power of two.
const CALMEST: u32 = 2;
/// The same while the programs sleep: only others change their memory then.
const ASLEEP: u32 = 5;

impl ScanSchedule {
    pub(crate) fn due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    pub(crate) fn soon(&mut self) {
        (self.next, self.calm) = (Nanos(0), 0);
    }

    /// Schedules the scan after one that ended at `now` and took `cost`: when `cost` is `budget` of the time
    /// between, and not before `shortest` has passed. While nothing has `changed`, the shortest time doubles,
    /// twice, or five times while the programs are `asleep`.
    pub(crate) fn done(
        &mut self,
        now: Nanos,
        (cost, budget): (Nanos, f64),
        shortest: Nanos,
        changed: bool,
        asleep: bool,
    ) {
        self.calm = if changed { 0 } else { (self.calm + 1).min(if asleep { ASLEEP } else { CALMEST }) };
        let shortest = Nanos(shortest.0 << self.calm);
        let allowed = Nanos((cost.0 as f64 / budget.max(1e-6)) as u64);
        self.next = now + allowed.max(shortest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_scans_are_rare_and_cheap_ones_come_ten_times_a_second() {
        let mut schedule = ScanSchedule::default();
        assert!(schedule.due(Nanos(0)));
        let shortest = Nanos(100 * Nanos::MILLISECOND.0);
        schedule.done(Nanos(0), (Nanos(30 * Nanos::MILLISECOND.0), 0.01), shortest, true, false);
        assert!(!schedule.due(Nanos(2 * Nanos::SECOND.0)));
        assert!(schedule.due(Nanos(3 * Nanos::SECOND.0)));
        schedule.done(Nanos(0), (Nanos(10), 0.01), shortest, true, false);
        assert!(!schedule.due(Nanos(99 * Nanos::MILLISECOND.0)));
        assert!(schedule.due(Nanos(100 * Nanos::MILLISECOND.0)));
        schedule.soon();
        assert!(schedule.due(Nanos(1)));
    }

    #[test]
    fn unchanging_memory_is_scanned_less_often() {
        let mut schedule = ScanSchedule::default();
        let shortest = Nanos(100 * Nanos::MILLISECOND.0);
        let mut due = |changed, asleep| {
            schedule.done(Nanos(0), (Nanos(0), 1.0), shortest, changed, asleep);
            (1..).find(|&tenths| schedule.due(Nanos(tenths * shortest.0)))
        };
        assert_eq!([false, false, false, true].map(|changed| due(changed, false)), [2, 4, 4, 1].map(Some));
        assert_eq!([false; 6].map(|changed| due(changed, true)), [2, 4, 8, 16, 32, 32].map(Some));
        assert_eq!(due(false, false), Some(4), "awake again");
    }
}
