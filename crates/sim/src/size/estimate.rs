//! Estimate of one policy's curve: sub-samples give its shape, full simulations its height.

use std::collections::BTreeMap;

use super::curve::{crossing, range_at, student, value_at};
use super::result::FullRun;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expected {
    pub(super) slowdown: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Estimate {
    /// Slowdown of each sub-sample at each size in pages.
    pub(super) samples: BTreeMap<u64, Vec<f64>>,
    sizes: Vec<u64>,
    means: Vec<f64>,
    /// Half the width of the 95 % interval of each mean.
    noise: Vec<f64>,
    /// Each fully simulated size, with its slowdown less the sub-samples' mean; ascending.
    errors: BTreeMap<u64, f64>,
}

impl Estimate {
    pub(super) fn add(&mut self, size: u64, slowdowns: Vec<f64>) {
        self.samples.insert(size, slowdowns);
        self.sizes = self.samples.keys().copied().collect();
        (self.means, self.noise) = self.samples.values().map(|values| mean_and_width(values)).unzip();
    }

    pub(super) fn correct(&mut self, size: u64, slowdown: f64) {
        let error = slowdown - self.mean(size);
        self.errors.insert(size, error);
    }

    pub(super) fn mean(&self, size: u64) -> f64 {
        value_at(&self.sizes, &self.means, size as f64)
    }

    pub(super) fn is_known(&self, size: u64) -> bool {
        self.errors.contains_key(&size)
    }

    /// Returns the slowdown to expect of a full simulation: the sub-samples' mean, shifted by the errors
    /// found at other sizes. Its interval adds the spread of the sub-samples, what interpolation can hide,
    /// and half of that shift, because it was measured elsewhere.
    pub(super) fn expect(&self, size: u64) -> Expected {
        let at = size as f64;
        let shift = self.shift(at);
        let beside = if self.is_known(size) { 0.0 } else { shift.abs() / 2.0 };
        let (least, most) = range_at(&self.sizes, &self.means, at);
        let around = value_at(&self.sizes, &self.noise, at) + beside;
        Expected {
            slowdown: self.mean(size) + shift,
            low: least + shift - around,
            high: most + shift + around,
        }
    }

    fn shift(&self, size: f64) -> f64 {
        let (sizes, errors): (Vec<u64>, Vec<f64>) = self.errors.iter().unzip();
        if sizes.is_empty() { 0.0 } else { value_at(&sizes, &errors, size) }
    }

    /// Returns the smallest size in pages from which on `end` of the expectation is within the limit.
    pub(super) fn needed(&self, limit: f64, end: impl Fn(Expected) -> f64) -> Option<u64> {
        let values: Vec<f64> = self.sizes.iter().map(|&size| end(self.expect(size))).collect();
        // Rounding must not leave the curve.
        let largest = *self.sizes.last()?;
        crossing(&self.sizes, &values, limit).map(|size| (size.ceil() as u64).min(largest))
    }

    /// Returns the smallest size in pages from which on the limit is expected to hold.
    pub(super) fn expected_size(&self, limit: f64) -> Option<u64> {
        self.needed(limit, |expected| expected.slowdown)
    }

    /// Returns the two measured sizes around the crossing; the same twice at the ends.
    pub(super) fn bracket(&self, limit: f64) -> Option<(u64, u64)> {
        let needed = self.expected_size(limit)?;
        let right = self.sizes.partition_point(|&size| size < needed).min(self.sizes.len() - 1);
        Some((self.sizes[right.saturating_sub(1)], self.sizes[right]))
    }

    pub(super) fn judge(&self, size: u64, slowdown: f64, limit: f64, page_shift: u32) -> FullRun {
        let Expected { slowdown: expected, low, high } = self.expect(size);
        FullRun {
            fast_bytes: isotherm_core::Bytes(size << page_shift),
            expected,
            low,
            high,
            slowdown,
            meets: slowdown <= limit,
            within: (low..=high).contains(&slowdown),
        }
    }
}

/// Returns the mean and half the width of its 95 % interval; no width below two values.
fn mean_and_width(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    (mean, student(values.len() - 1) * deviation / count.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate() -> Estimate {
        let mut estimate = Estimate::default();
        estimate.add(16, vec![1.09, 1.11]);
        estimate.add(4, vec![1.29, 1.31]);
        estimate.add(1, vec![1.49, 1.51]);
        estimate
    }

    #[test]
    fn sub_samples_give_a_mean_and_an_interval() {
        // Two values 0.02 apart: deviation 0.01414, of the mean 0.01, times 12.706.
        let expected = estimate().expect(4);
        assert!((expected.slowdown - 1.3).abs() < 1e-9);
        assert!((expected.high - 1.42706).abs() < 1e-9 && (expected.low - 1.17294).abs() < 1e-9);
    }

    #[test]
    fn full_simulations_shift_the_curve() {
        let mut estimate = estimate();
        assert_eq!(estimate.expected_size(1.2001), Some(8));
        estimate.correct(8, 1.15);
        assert!((estimate.expect(8).slowdown - 1.15).abs() < 1e-9);
        // The whole curve is 0.05 lower: the crossing moves a quarter of a step of four to the left.
        assert_eq!(estimate.expected_size(1.2), Some(6), "4 times the square root of 2, in whole pages");
    }

    #[test]
    fn a_crossing_just_before_the_last_size_stays_on_the_curve() {
        let mut estimate = Estimate::default();
        (1..=40).for_each(|step| estimate.add(step * 75, vec![1.5, 1.5]));
        estimate.add(3000, vec![1.3, 1.3]);
        assert!((0..1000).all(|step| estimate.expected_size(1.3 + f64::from(step) * 1e-17) <= Some(3000)));
        assert_eq!(estimate.expected_size(1.3), Some(3000));
    }

    #[test]
    fn what_lies_between_measured_sizes_is_less_certain() {
        let expected = estimate().expect(8);
        assert!((expected.slowdown - 1.2).abs() < 1e-9);
        assert!((expected.high - 1.42706).abs() < 1e-9 && (expected.low - 0.97294).abs() < 1e-9);
    }

    #[test]
    fn a_full_simulation_is_judged_by_what_was_expected_before() {
        let estimate = estimate();
        let judged = estimate.judge(4, 1.35, 1.4, 12);
        assert!(judged.within && judged.meets);
        assert!(!estimate.judge(4, 1.45, 1.4, 12).within && !estimate.judge(4, 1.45, 1.4, 12).meets);
    }
}
