//! Adaptive promotion (section 4.5, algorithm 3): a reservoir of values, its quartiles and the bins' width.

use super::settings::{Binning, Settings, WHOLE};

#[derive(Debug, Clone)]
struct Reservoir {
    values: Vec<f32>,
    size: usize,
    seen: u64,
    random: u64,
}

impl Reservoir {
    fn add(&mut self, value: f32) {
        self.seen += 1;
        if self.values.len() < self.size {
            self.values.push(value);
            return;
        }
        let place = self.draw() % self.seen;
        if let Some(old) = self.values.get_mut(place as usize) {
            *old = value;
        }
    }

    /// Draws the next number by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns the distance of the first and the third quartile; `None` of fewer than four values.
    fn interquartile_range(&self) -> Option<f64> {
        let count = self.values.len();
        if count < 4 {
            return None;
        }
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        Some(f64::from(sorted[3 * count / 4]) - f64::from(sorted[count / 4]))
    }
}

/// The histogram: bins of equal width from 0, the last one open.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    binning: Binning,
    last: f64,
    /// Of a bin, in the unit of the values.
    pub(super) width: f64,
    t_scale: f64,
    /// Pages of the paper's footprint that one page of the run stands for.
    represented: f64,
    reservoir: Reservoir,
}

impl Bins {
    pub(super) fn new(settings: &Settings, seed: u64) -> Self {
        let size = settings.reservoir;
        Self {
            binning: settings.binning,
            last: (settings.bins - 1) as f64,
            width: settings.initial_width,
            t_scale: settings.t_scale,
            represented: WHOLE as f64 / settings.whole as f64,
            reservoir: Reservoir { values: Vec::with_capacity(size), size, seen: 0, random: seed },
        }
    }

    /// Takes in a page's new value. Returns whether it is in the last bin.
    pub(super) fn add(&mut self, value: f32) -> bool {
        self.reservoir.add(value);
        f64::from(value) / self.width >= self.last
    }

    /// Adapts the width to the added values. Where half of them are equal, the old one stays.
    pub(super) fn adapt(&mut self, tracked: usize, candidates: usize) {
        if self.binning == Binning::Static || tracked == 0 {
            return;
        }
        let Some(range) = self.reservoir.interquartile_range().filter(|&range| range > 0.0) else { return };
        let width = 2.0 * range / (tracked as f64 * self.represented).cbrt();
        self.width = match (self.binning, candidates) {
            (Binning::Scaled, 1..) if tracked as f64 / candidates as f64 > self.t_scale => width * 2.0,
            (Binning::Scaled, 1..) => width / 2.0,
            _ => width,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::parameters::Parameters;

    fn bins(settings: &[(&str, &str)]) -> Bins {
        let mut parameters = Parameters::new("pact", Settings::SPECS);
        settings.iter().for_each(|(name, value)| parameters.set(name, value).expect("in range"));
        Bins::new(&Settings::read(&parameters), 1)
    }

    fn added(settings: &[(&str, &str)], values: impl IntoIterator<Item = f32>) -> Bins {
        let mut bins = bins(settings);
        values.into_iter().for_each(|value| {
            bins.add(value);
        });
        bins
    }

    #[test]
    fn the_width_is_freedman_and_diaconis() {
        let mut bins = added(&[], (0..100).map(|value| value as f32));
        bins.adapt(1000, 0);
        assert_eq!(bins.width, 2.0 * (75.0 - 25.0) / 10.0, "the quartiles of 0..100 are 25 and 75");
    }

    #[test]
    fn pages_that_stand_for_more_count_as_more() {
        let whole = (WHOLE / 8).to_string();
        let mut bins = added(&[("whole", &whole)], (0..100).map(|value| value as f32));
        bins.adapt(1000, 0);
        assert_eq!(bins.width, 5.0, "half of that of 1000 pages, as of 8000");
    }

    #[test]
    fn candidates_double_the_width_and_more_than_tracked_halve_it() {
        let width = |settings: &[(&str, &str)], candidates| {
            let mut bins = added(settings, (0..100).map(|value| value as f32));
            bins.adapt(1000, candidates);
            bins.width
        };
        assert_eq!(width(&[], 10), 20.0);
        assert_eq!(width(&[("t_scale", "200")], 10), 5.0);
        assert_eq!(width(&[("binning", "adaptive")], 10), 10.0);
        assert_eq!(width(&[("binning", "static")], 10), 455.0);
    }

    #[test]
    fn the_last_bin_begins_at_nineteen_widths() {
        let mut bins = bins(&[("initial_width", "10")]);
        assert!(!bins.add(189.0) && bins.add(190.0) && bins.add(1e9));
    }

    #[test]
    fn equal_values_leave_the_width() {
        let mut bins = added(&[], std::iter::repeat_n(7.0, 100));
        bins.adapt(1000, 5);
        assert_eq!(bins.width, 455.0);
    }

    #[test]
    fn the_reservoir_is_an_even_sample_of_all() {
        let bins = added(&[], (0..100_000).map(|value| value as f32));
        let values = &bins.reservoir.values;
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        assert!(values.len() == 100 && (40_000.0..60_000.0).contains(&mean), "{mean}");
    }
}
