//! Whether repetitions of a measurement agree.
//!
//! Load on a machine comes and goes within seconds, and repetitions back to back all see the same. So a
//! measurement is repeated in rounds that lie apart. Its value is the median of the rounds' medians. It is
//! steady if the rounds agree and the repetitions of all rounds lie close together.

/// Excess of the largest round over the least up to which rounds agree.
pub const STEADY: f64 = 0.1;
/// Interquartile range of all repetitions, relative to their median, up to which they lie close together.
const SCATTER: f64 = 0.2;

/// Repetitions of one measurement, by rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    rounds: Vec<Vec<f64>>,
}

impl Series {
    pub(super) fn add(&mut self, round: Vec<f64>) {
        self.rounds.push(round);
    }

    fn medians(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| quantile(round, 0.5)).collect()
    }

    /// Returns the median of the rounds' medians; not a number without repetitions.
    pub fn value(&self) -> f64 {
        quantile(&self.medians(), 0.5)
    }

    /// Returns the excess of the largest round over the least, relative to the least.
    pub fn spread(&self) -> f64 {
        let [least, largest] = self.ends();
        largest / least - 1.0
    }

    /// Returns the range that holds the middle half of all repetitions, relative to their median.
    pub fn scatter(&self) -> f64 {
        let all = self.rounds.concat();
        (quantile(&all, 0.75) - quantile(&all, 0.25)) / quantile(&all, 0.5)
    }

    pub fn repetitions(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    fn ends(&self) -> [f64; 2] {
        let medians = self.medians();
        [medians.iter().copied().fold(f64::INFINITY, f64::min), medians.into_iter().fold(0.0, f64::max)]
    }

    /// Returns why the measurement is not steady; `None` if it is.
    pub fn doubt(&self, unit: &str) -> Option<String> {
        let [least, largest] = self.ends();
        if !(least > 0.0 && least.is_finite()) {
            return Some(format!("{least:.1} {unit}, expected more than 0"));
        }
        if self.spread() > STEADY {
            let limit = 100.0 * STEADY;
            let digits = if largest < 10.0 { 2 } else { 0 };
            return Some(format!(
                "{least:.digits$} to {largest:.digits$} {unit} in rounds, expected within {limit:.0} %"
            ));
        }
        (self.scatter() > SCATTER).then(|| {
            let [scatter, limit] = [self.scatter(), SCATTER].map(|share| 100.0 * share);
            format!("half of the repetitions within {scatter:.0} %, expected within {limit:.0} %")
        })
    }

    /// Says how the repetitions agree.
    pub fn agreement(&self) -> String {
        let [spread, scatter] = [self.spread(), self.scatter()].map(|share| 100.0 * share);
        let (repetitions, rounds) = (self.repetitions(), self.rounds.len());
        format!(
            "{repetitions} repetitions in {rounds} rounds, rounds within {spread:.1} %, half of all within \
             {scatter:.1} %"
        )
    }
}

/// Returns the value below which a share of the values lies; not a number for none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (low, weight) = (place as usize, place.fract());
    sorted[low] + (sorted[(low + 1).min(last)] - sorted[low]) * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rounds: &[&[f64]]) -> Series {
        Series { rounds: rounds.iter().map(|round| round.to_vec()).collect() }
    }

    #[test]
    fn the_value_is_the_rounds_median() {
        let idle = series(&[&[175.0, 176.0, 900.0], &[177.0, 175.5, 178.0], &[176.0, 176.0, 174.0]]);
        assert_eq!((idle.value(), idle.repetitions()), (176.0, 9));
        assert_eq!(idle.doubt("ns"), None, "one repetition in nine was disturbed");
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 5.0], 0.5), 2.5);
        assert_eq!(quantile(&[4.0, 0.0], 0.25), 1.0);
    }

    /// It said 991 ns under load and 175 ns idle, both with a spread below 5 %.
    #[test]
    fn load_that_comes_or_goes_is_seen() {
        let came = series(&[&[175.0, 176.0], &[991.0, 980.0], &[175.0, 176.0]]);
        assert!(came.doubt("ns").is_some_and(|why| why.contains("176 to 986 ns in rounds")), "{came:?}");
        let within = series(&[&[100.0, 130.0, 160.0], &[100.0, 130.0, 160.0], &[99.0, 131.0, 160.0]]);
        assert!(within.spread() < 0.01);
        assert!(within.doubt("ns").is_some_and(|why| why.contains("half of the repetitions")), "{within:?}");
    }

    #[test]
    fn nothing_and_less_are_no_measurements() {
        for empty in [series(&[]), series(&[&[]]), series(&[&[0.0], &[1.0]]), series(&[&[-3.0], &[1.0]])] {
            assert!(empty.doubt("ns").is_some(), "{empty:?}");
        }
    }
}
