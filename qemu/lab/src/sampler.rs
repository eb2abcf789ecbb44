//! Selects the misses to sample.

use isotherm_virtual_pmu::Control;
use isotherm_virtual_pmu::layout::MAX_TIERS;

/// Countdowns to the next samples.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    /// Period of each event: one event for each tier, or the first for all.
    periods: [u64; MAX_TIERS],
    events: u64,
    each_tier: bool,
    exact: bool,
    countdowns: [u64; MAX_TIERS],
    random: u64,
}

impl Sampler {
    pub(crate) fn new(control: &Control) -> Self {
        let mut sampler = Self {
            periods: if control.counting { control.periods } else { [0; MAX_TIERS] },
            events: control.events,
            each_tier: control.each_tier,
            exact: control.exact,
            countdowns: [0; MAX_TIERS],
            random: 0,
        };
        sampler.countdowns = std::array::from_fn(|event| sampler.countdown(event));
        sampler
    }

    /// Applies another request; an unchanged one lets the countdowns continue.
    pub(crate) fn change(&mut self, control: &Control) {
        let new = Self::new(control);
        let of = |sampler: &Self| (sampler.periods, sampler.events, sampler.each_tier, sampler.exact);
        if of(&new) != of(self) {
            *self = Self { random: self.random, ..new };
        }
    }

    /// Counts a miss. Returns the weight of the sample if it is sampled.
    #[inline]
    pub(crate) fn count(&mut self, tier: u8, store: bool) -> Option<u64> {
        let event = if self.each_tier { usize::from(tier) } else { 0 };
        if self.periods[event] == 0 || self.events & Control::event(tier.into(), store) == 0 {
            return None;
        }
        self.countdowns[event] -= 1;
        if self.countdowns[event] > 0 {
            return None;
        }
        self.countdowns[event] = self.countdown(event);
        Some(self.periods[event])
    }

    /// Returns the misses until the next sample, at least 1: the period, dithered by an eighth.
    fn countdown(&mut self, event: usize) -> u64 {
        let period = self.periods[event];
        let dither = if self.exact { 0 } else { period / 8 };
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let offset = (u128::from(mixed) * u128::from(2 * dither + 1)) >> 64;
        (period - dither).saturating_add(offset as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(period: u64) -> Control {
        let (periods, events) = ([period; MAX_TIERS], Control::all_events(true));
        Control { counting: true, periods, events, exact: true, ..Control::default() }
    }

    fn samples(sampler: &mut Sampler, misses: u64, tier: u8, store: bool) -> u64 {
        (0..misses).filter_map(|_| sampler.count(tier, store)).count() as u64
    }

    #[test]
    fn every_nth_miss_is_sampled_and_stands_for_n() {
        let mut sampler = Sampler::new(&control(10));
        let taken: Vec<u64> = (1..=100).filter(|_| sampler.count(0, false).is_some()).collect();
        assert_eq!(taken, (10..=100).step_by(10).collect::<Vec<_>>());
        assert_eq!((0..10).find_map(|_| sampler.count(1, true)), Some(10));
    }

    #[test]
    fn dithered_periods_differ_by_an_eighth_and_keep_their_mean() {
        let mut sampler = Sampler::new(&Control { exact: false, ..control(1000) });
        let taken: Vec<u64> = (1..=4_000_000).filter(|_| sampler.count(0, false).is_some()).collect();
        assert!((taken.len() as u64).abs_diff(4000) < 20, "{}", taken.len());
        let distances: Vec<u64> = taken.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(distances.iter().all(|distance| (875..=1125).contains(distance)));
        assert!(distances.iter().any(|&d| d < 900) && distances.iter().any(|&d| d > 1100));
    }

    #[test]
    fn events_that_are_not_asked_for_do_not_count() {
        let events = Control::event(1, true);
        let mut sampler = Sampler::new(&Control { events, ..control(2) });
        assert_eq!(samples(&mut sampler, 10, 0, true), 0);
        assert_eq!(samples(&mut sampler, 10, 1, false), 0);
        assert_eq!(samples(&mut sampler, 10, 1, true), 5);
    }

    #[test]
    fn one_event_for_all_tiers_or_one_for_each() {
        let alternate = |each_tier| {
            let mut sampler = Sampler::new(&Control { each_tier, ..control(10) });
            (0..100u8)
                .filter_map(|n| sampler.count(u8::from(n % 10 == 9), false).map(|_| n % 10 == 9))
                .collect()
        };
        let (all, each): (Vec<bool>, Vec<bool>) = (alternate(false), alternate(true));
        assert_eq!(all, vec![true; 10], "every tenth miss is of tier 1");
        assert_eq!(each.iter().filter(|&&slow| slow).count(), 1);
        assert_eq!(each.len(), 10);
    }

    #[test]
    fn off_is_off_and_the_same_request_goes_on() {
        let mut sampler = Sampler::new(&Control { counting: false, ..control(1) });
        assert_eq!(samples(&mut sampler, 10, 0, false), 0);
        sampler.change(&control(4));
        assert_eq!(samples(&mut sampler, 3, 0, false), 0);
        sampler.change(&control(4));
        assert_eq!(samples(&mut sampler, 1, 0, false), 1);
        sampler.change(&control(0));
        assert_eq!(samples(&mut sampler, 100, 0, false), 0);
    }
}
