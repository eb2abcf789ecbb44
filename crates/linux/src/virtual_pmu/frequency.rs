//! Turns a rate of samples into periods, by the rate of misses.

use isotherm_core::Nanos;
use isotherm_virtual_pmu::Record;
use isotherm_virtual_pmu::layout::MAX_TIERS;

const FIRST: u64 = 256;
/// Shortest time that tells a rate: perf adapts its periods once per tick, as often.
const TICK: Nanos = Nanos::MILLISECOND;
/// Weight of the old estimate of a rate.
const MEMORY: f64 = 0.75;

/// Periods that follow the rates of misses, one per event.
#[derive(Debug, Clone)]
pub(super) struct Frequency {
    hertz: f64,
    /// Misses per nanosecond; `None` before the first.
    rates: [Option<f64>; MAX_TIERS],
    before: [u64; MAX_TIERS],
    time: Nanos,
}

impl Frequency {
    /// Starts at `time`, when `misses` had been counted, with `hertz` samples per second of each event.
    pub(super) fn new(hertz: u64, misses: [u64; MAX_TIERS], time: Nanos) -> Self {
        Self { hertz: hertz.max(1) as f64, rates: [None; MAX_TIERS], before: misses, time }
    }

    pub(super) fn learn(&mut self, misses: [u64; MAX_TIERS], now: Nanos) {
        let elapsed = (now - self.time).0;
        if elapsed < TICK.0 {
            return;
        }
        for ((rate, before), misses) in self.rates.iter_mut().zip(self.before).zip(misses) {
            // Counters restart with an epoch.
            let count = misses.checked_sub(before).unwrap_or(misses);
            let new = count as f64 / elapsed as f64;
            *rate = Some(rate.map_or(new, |rate| rate * MEMORY + new * (1.0 - MEMORY)));
        }
        (self.before, self.time) = (misses, now);
    }

    pub(super) fn periods(&self) -> [u64; MAX_TIERS] {
        let period = |rate: f64| ((rate * 1e9 / self.hertz) as u64).clamp(1, u64::from(Record::MAX_WEIGHT));
        self.rates.map(|rate| rate.map_or(FIRST, period))
    }
}

/// Returns whether periods differ by more than an eighth, the dither of each.
pub(super) fn differ(old: &[u64; MAX_TIERS], new: &[u64; MAX_TIERS]) -> bool {
    old.iter().zip(new).any(|(&old, &new)| old.abs_diff(new) > old / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_the_rate_of_misses() {
        let mut frequency = Frequency::new(1000, [0; MAX_TIERS], Nanos(0));
        assert_eq!(frequency.periods(), [FIRST; MAX_TIERS]);
        // A million misses per second of one event, a thousand of another, in steps of 10 ms.
        let misses = |step: u64| std::array::from_fn(|event| [10_000, 10, 0, 0, 0, 0, 0, 0][event] * step);
        (1..20).for_each(|step| frequency.learn(misses(step), Nanos(step * 10_000_000)));
        let periods = frequency.periods();
        assert!((999..=1000).contains(&periods[0]), "{periods:?}");
        assert_eq!(periods[1..3], [1, 1]);
        // The rate falls tenfold, and so does the period, in some steps.
        let before = misses(19)[0];
        for step in 1..40 {
            frequency.learn([before + 1000 * step; MAX_TIERS], Nanos((19 + step) * 10_000_000));
        }
        assert!((99..=101).contains(&frequency.periods()[0]), "{:?}", frequency.periods());
    }

    #[test]
    fn a_new_epoch_is_no_flood_of_misses() {
        let mut frequency = Frequency::new(1000, [1_000_000; MAX_TIERS], Nanos(0));
        frequency.learn([50_000; MAX_TIERS], Nanos(1_000_000_000));
        assert_eq!(frequency.periods(), [50; MAX_TIERS]);
    }

    #[test]
    fn small_changes_are_not_worth_a_call() {
        let old = [800; MAX_TIERS];
        assert!(!differ(&old, &[900; MAX_TIERS]) && !differ(&old, &[700; MAX_TIERS]));
        assert!(differ(&old, &[901; MAX_TIERS]) && differ(&[1; MAX_TIERS], &[2; MAX_TIERS]));
    }
}
