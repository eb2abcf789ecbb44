//! Control of the sampling period: as dense as a share of one core's time allows.
//!
//! The published control goes one of thirty steps each 15 s, seven minutes from end to end; most runs here
//! stand for less and would sample at the shortest period, for a third of a core, from beginning to end. Time
//! spent is in proportion to the density, so here one adjustment goes all the way, and the first comes after
//! one round of moves.

use isotherm_core::Nanos;

use super::settings::Common;

#[derive(Debug, Clone)]
pub(super) struct PeriodControl {
    settings: Common,
    step: u32,
    samples: u64,
    since: Nanos,
    adjusted: bool,
}

impl PeriodControl {
    pub(super) fn new(settings: Common) -> Self {
        Self { settings, step: 0, samples: 0, since: Nanos(0), adjusted: false }
    }

    fn last_step(&self) -> f64 {
        f64::from(self.settings.period_steps - 1)
    }

    /// Returns the longest period over the shortest.
    fn span(&self) -> f64 {
        (self.settings.longest_period as f64 / self.settings.shortest_period as f64).max(1.0)
    }

    pub(super) fn period(&self) -> u64 {
        let share = f64::from(self.step) / self.last_step().max(1.0);
        (self.settings.shortest_period as f64 * self.span().powf(share)).round() as u64
    }

    pub(super) fn count(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// Adjusts the period where an interval has passed. Returns whether it changed.
    pub(super) fn adapt(&mut self, now: Nanos) -> bool {
        let Common { period_interval, migration_interval, .. } = self.settings;
        let interval = if self.adjusted { period_interval } else { period_interval.min(migration_interval) };
        let elapsed = now - self.since;
        if elapsed < interval || (self.samples == 0 && !self.adjusted) {
            return false;
        }
        let spent = self.samples as f64 * self.settings.sample_cost.0 as f64;
        let usage = spent / elapsed.0.max(1) as f64;
        (self.samples, self.since, self.adjusted) = (0, now, true);
        let Common { cpu_target: target, cpu_tolerance: tolerance, .. } = self.settings;
        let before = self.step;
        if usage > target + tolerance || usage < target - tolerance {
            self.step = self.step_for(usage / target);
        }
        self.step != before
    }

    /// Returns the step nearest to a period `factor` times as long.
    fn step_for(&self, factor: f64) -> u32 {
        let steps = self.last_step() * factor.ln() / self.span().ln();
        (f64::from(self.step) + steps).round().clamp(0.0, self.last_step()) as u32
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

    fn usage(control: &PeriodControl, rate: f64) -> f64 {
        rate / control.period() as f64 * 200e-9
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

    /// One step in 15 s left a run that stands for a minute at 36 % of a core.
    #[test]
    fn after_one_round_of_moves_sampling_takes_its_share() {
        for rate in [5e7, 1e8, 3e8] {
            let mut control = control();
            control.count((rate * 0.5 / control.period() as f64) as u64);
            assert!(control.adapt(Nanos(Nanos::SECOND.0 / 2)), "{} of a core", usage(&control, rate));
            assert!((0.025..=0.035).contains(&usage(&control, rate)), "{}", usage(&control, rate));
        }
    }

    #[test]
    fn a_busy_program_is_sampled_less_down_to_the_longest_period() {
        let mut control = control();
        run(&mut control, 1e8, 2);
        assert!((0.025..=0.035).contains(&usage(&control, 1e8)), "{}", usage(&control, 1e8));
        run(&mut control, 1e12, 1);
        assert_eq!(control.period(), 19_997, "no further than the longest");
    }

    #[test]
    fn a_program_that_calms_down_is_sampled_more_again() {
        let mut control = control();
        run(&mut control, 1e8, 2);
        let busy = control.period();
        run(&mut control, 4e7, 1);
        let usage = usage(&control, 4e7);
        assert!(control.period() < busy && (0.02..=0.035).contains(&usage), "{usage}");
        run(&mut control, 0.0, 1);
        assert_eq!(control.period(), 199);
    }

    #[test]
    fn within_the_tolerance_and_within_the_interval_nothing_changes() {
        let mut control = control();
        (control.step, control.adjusted) = (10, true);
        control.count((0.0345 / 200e-9 * 15.0) as u64);
        assert!(!control.adapt(Nanos(15 * Nanos::SECOND.0)));
        control.count(u64::from(u32::MAX));
        assert!(!control.adapt(Nanos(29 * Nanos::SECOND.0)), "15 s have not passed");
        assert!(control.adapt(Nanos(30 * Nanos::SECOND.0)), "now they have");
    }

    #[test]
    fn before_the_first_sample_there_is_nothing_to_adjust_to() {
        let mut control = control();
        assert!(!control.adapt(Nanos(Nanos::SECOND.0)));
        control.count(1_000_000);
        assert!(control.adapt(Nanos(2 * Nanos::SECOND.0)));
    }
}
