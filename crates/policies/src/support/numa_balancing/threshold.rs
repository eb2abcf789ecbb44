//! The hot threshold (`numa_promotion_adjust_threshold`) and the rate limit (`numa_promotion_rate_limit`)
//! that it follows.

use isotherm_core::Nanos;

/// NUMA_MIGRATION_ADJUST_STEPS: the threshold moves in steps of two of these parts of the reference.
const STEPS: u64 = 16;

/// The hint-fault latency below which a page is hot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HotThreshold {
    reference: Nanos,
    period: Nanos,
    /// `None`: the reference.
    current: Option<Nanos>,
    started: Nanos,
    before: u64,
}

impl HotThreshold {
    pub(crate) fn new(reference: Nanos, period: Nanos) -> Self {
        Self { reference, period, current: None, started: Nanos(0), before: 0 }
    }

    pub(crate) fn value(&self) -> Nanos {
        self.current.unwrap_or(self.reference)
    }

    pub(crate) fn reset(&mut self) {
        self.current = None;
    }

    /// Steps down after a period with 10 % more candidates than `target`, and up after one with 10 % fewer.
    pub(crate) fn adjust(&mut self, now: Nanos, candidates: u64, target: f64) {
        if now - self.started <= self.period {
            return;
        }
        let step = Nanos(self.reference.0 * 2 / STEPS);
        let found = (candidates - self.before) as f64;
        let threshold = self.value();
        if found > target * 1.1 {
            self.current = Some((threshold - step).max(step));
        } else if found < target * 0.9 {
            self.current = Some((threshold + step).min(Nanos(self.reference.0 * 2)));
        }
        (self.started, self.before) = (now, candidates);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimit {
    pages: f64,
    period: Nanos,
    started: Nanos,
    before: u64,
    /// Hot pages since the start of the run, promoted or not.
    pub(crate) candidates: u64,
}

impl RateLimit {
    pub(crate) fn new(pages: f64, period: Nanos) -> Self {
        Self { pages, period, started: Nanos(0), before: 0, candidates: 0 }
    }

    pub(crate) fn pages_in(&self, duration: Nanos) -> f64 {
        self.pages * duration.0 as f64 / self.period.0 as f64
    }

    pub(crate) fn admits(&mut self, now: Nanos) -> bool {
        self.candidates += 1;
        if now - self.started > self.period {
            (self.started, self.before) = (now, self.candidates);
        }
        ((self.candidates - self.before) as f64) < self.pages
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: u64 = 60 * Nanos::SECOND.0;

    fn after(steps: &[u64]) -> u64 {
        let mut threshold = HotThreshold::new(Nanos(1600), Nanos(MINUTE));
        let mut total = 0;
        for (minute, &candidates) in steps.iter().enumerate() {
            total += candidates;
            threshold.adjust(Nanos((minute as u64 + 1) * (MINUTE + 1)), total, 100.0);
        }
        threshold.value().0
    }

    #[test]
    fn it_steps_by_an_eighth_of_the_reference_to_hit_the_rate_within_a_tenth() {
        assert_eq!(after(&[111]), 1400, "too many are hot");
        assert_eq!(after(&[89]), 1800, "too few");
        assert_eq!(after(&[110, 90, 100]), 1600, "within a tenth");
        assert_eq!(after(&[111, 89]), 1600);
    }

    #[test]
    fn it_stays_between_a_step_and_twice_the_reference_and_can_be_reset() {
        assert_eq!(after(&[1000; 20]), 200);
        assert_eq!(after(&[0; 20]), 3200);
        let mut threshold = HotThreshold::new(Nanos(1600), Nanos(10));
        threshold.adjust(Nanos(11), 0, 100.0);
        assert_eq!(threshold.value(), Nanos(1800));
        threshold.adjust(Nanos(20), 0, 100.0);
        assert_eq!(threshold.value(), Nanos(1800), "not within the period");
        threshold.reset();
        assert_eq!(threshold.value(), Nanos(1600));
    }

    proptest! {
        /// If the candidates grow with the threshold, it comes to rest at the rate or one step beside it.
        #[test]
        fn it_finds_the_rate(slope in 0.02..0.2f64) {
            let mut threshold = HotThreshold::new(Nanos(1600), Nanos(MINUTE));
            let (mut total, mut now) = (0, 0);
            for _ in 0..30 {
                now += MINUTE + 1;
                total += (threshold.value().0 as f64 * slope) as u64;
                threshold.adjust(Nanos(now), total, 100.0);
            }
            let wanted = (100.0 / slope).clamp(200.0, 3200.0);
            prop_assert!((threshold.value().0 as f64 - wanted).abs() <= 1.1 * 200.0 + 0.1 * wanted);
        }

        /// In no period are more pages admitted than the limit, while all are counted.
        #[test]
        fn the_limit_holds(gaps in prop::collection::vec(0..40u64, 1..400), limit in 1..30u64) {
            let mut rate = RateLimit::new(limit as f64, Nanos(100));
            let (mut now, mut window, mut admitted) = (0, 0, 0);
            for gap in &gaps {
                now += gap;
                if now - window > 100 {
                    (window, admitted) = (now, 0);
                }
                admitted += u64::from(rate.admits(Nanos(now)));
                prop_assert!(admitted <= limit);
            }
            prop_assert_eq!(rate.candidates, gaps.len() as u64);
        }
    }
}
