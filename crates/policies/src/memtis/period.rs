//! Control of the sampling period: as dense as a share of one core's time allows.

use isotherm_core::Nanos;

use super::settings::Common;

/// Weight of the last interval in the usage.
const NEWEST: f64 = 0.8;

#[derive(Debug, Clone)]
pub(super) struct PeriodControl {
    settings: Common,
    step: u32,
    samples: u64,
    since: Nanos,
    usage: Option<f64>,
}

impl PeriodControl {
    pub(super) fn new(settings: Common) -> Self {
        Self { settings, step: 0, samples: 0, since: Nanos(0), usage: None }
    }

    pub(super) fn period(&self) -> u64 {
        let Common { shortest_period: shortest, longest_period: longest, period_steps: steps, .. } =
            self.settings;
        let longest = longest.max(shortest);
        let share = f64::from(self.step) / f64::from(steps.saturating_sub(1).max(1));
        (shortest as f64 * (longest as f64 / shortest as f64).powf(share)).round() as u64
    }

    pub(super) fn count(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// Adjusts the period by one step where an interval has passed. Returns whether it changed.
    pub(super) fn adapt(&mut self, now: Nanos) -> bool {
        let elapsed = now - self.since;
        if elapsed < self.settings.period_interval {
            return false;
        }
        let spent = self.samples as f64 * self.settings.sample_cost.0 as f64;
        let newest = spent / elapsed.0.max(1) as f64;
        let usage = self.usage.map_or(newest, |before| NEWEST * newest + (1.0 - NEWEST) * before);
        (self.usage, self.samples, self.since) = (Some(usage), 0, now);
        let Common { cpu_target: target, cpu_tolerance: tolerance, period_steps: steps, .. } = self.settings;
        let before = self.step;
        if usage > target + tolerance {
            self.step = (self.step + 1).min(steps.saturating_sub(1));
        } else if usage < target - tolerance {
            self.step = self.step.saturating_sub(1);
        }
        self.step != before
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Parameters;

    use super::*;

    fn control() -> PeriodControl {
        let common = Common::read(&Parameters::new("memtis", Common::SPECS));
        PeriodControl::new(Common { sample_cost: Nanos(200), ..common })
    }

    /// Lets `intervals` intervals pass in which the program does `rate` accesses a second.
    fn run(control: &mut PeriodControl, rate: f64, intervals: u64) {
        for _ in 0..intervals {
            control.count((rate * 15.0 / control.period() as f64) as u64);
            control.adapt(control.since + Nanos(15 * Nanos::SECOND.0));
        }
    }

    #[test]
    fn periods_go_from_the_shortest_to_the_longest_in_thirty_steps() {
        let mut control = control();
        assert_eq!(control.period(), 199);
        let mut before = 0;
        for step in 0..30 {
            control.step = step;
            assert!(control.period() > before);
            before = control.period();
        }
        assert_eq!(before, 19_997);
    }

    #[test]
    fn a_busy_program_is_sampled_less_until_sampling_takes_its_share() {
        let mut control = control();
        run(&mut control, 1e8, 40);
        let usage = 1e8 / control.period() as f64 * 200e-9;
        assert!((0.025..=0.035).contains(&usage), "{usage} at {}", control.period());
        run(&mut control, 1e12, 40);
        assert_eq!(control.period(), 19_997, "no further than the longest");
    }

    #[test]
    fn a_program_that_calms_down_is_sampled_more_again() {
        let mut control = control();
        run(&mut control, 1e8, 40);
        let busy = control.period();
        run(&mut control, 4e7, 40);
        let usage = 4e7 / control.period() as f64 * 200e-9;
        assert!(control.period() < busy && (0.02..=0.035).contains(&usage), "{usage}");
        run(&mut control, 0.0, 40);
        assert_eq!(control.period(), 199);
    }

    #[test]
    fn within_the_tolerance_and_within_the_interval_nothing_changes() {
        let mut control = control();
        control.step = 10;
        control.count((0.0345 / 200e-9 * 15.0) as u64);
        assert!(!control.adapt(Nanos(15 * Nanos::SECOND.0)));
        control.count(u64::from(u32::MAX));
        assert!(!control.adapt(Nanos(29 * Nanos::SECOND.0)), "15 s have not passed");
        assert!(control.adapt(Nanos(30 * Nanos::SECOND.0)), "now they have");
        assert_eq!(control.step, 11, "one step at a time");
    }
}
