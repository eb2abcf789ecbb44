//! Fit of `k` to measured runs.

use std::ops::Sub;

/// Counts of one run of a pattern, of loads only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Run {
    pub misses: u64,
    /// Requests in flight, integrated over time, in request-nanoseconds (T1).
    pub occupancy: u64,
    /// Time with a request in flight, in nanoseconds (T2).
    pub busy: u64,
    /// Time that the thread was stalled, in nanoseconds.
    pub stall: u64,
    /// Whether counters were multiplexed, so that their values are extrapolated.
    pub multiplexed: bool,
}

impl Sub for Run {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            misses: self.misses.saturating_sub(before.misses),
            occupancy: self.occupancy.saturating_sub(before.occupancy),
            busy: self.busy.saturating_sub(before.busy),
            stall: self.stall.saturating_sub(before.stall),
            multiplexed: self.multiplexed,
        }
    }
}

impl Run {
    /// Returns misses / MLP, Equation 1 of PACT without its `k`, if every counter is nonzero and exact.
    fn serial_misses(&self) -> Option<f64> {
        let counted = self.misses > 0 && self.occupancy > 0 && self.busy > 0 && self.stall > 0;
        let parallelism = (self.occupancy as f64 / self.busy as f64).max(1.0);
        (counted && !self.multiplexed).then(|| self.misses as f64 / parallelism)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Cost of a miss that nothing overlaps, in nanoseconds.
    pub k: f64,
    /// Root mean square of the runs' relative errors.
    pub error: f64,
    pub runs: usize,
}

/// Fits stalls = k x misses / MLP, relative errors weighted alike; `None` with fewer than three usable runs.
pub fn fit(runs: &[Run]) -> Option<Fit> {
    let cost = |run: &Run| Some(run.stall as f64 / run.serial_misses()?);
    let costs: Vec<f64> = runs.iter().filter_map(cost).collect();
    if costs.len() < 3 {
        return None;
    }
    // Minimises the sum of (k x / s - 1)^2 over k, with s / x the cost of a run.
    let (inverse, squares) = costs
        .iter()
        .fold((0.0, 0.0), |(inverse, squares), cost| (inverse + 1.0 / cost, squares + 1.0 / (cost * cost)));
    let k = inverse / squares;
    let error = costs.iter().map(|cost| (k / cost - 1.0).powi(2)).sum::<f64>() / costs.len() as f64;
    Some(Fit { k, error: error.sqrt(), runs: costs.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run of misses, `parallelism` at a time, each of which costs `k` alone.
    fn run(misses: u64, parallelism: u64, k: u64) -> Run {
        let busy = misses * 200 / parallelism;
        Run { misses, occupancy: misses * 200, busy, stall: k * misses / parallelism, multiplexed: false }
    }

    #[test]
    fn the_coefficient_of_exact_runs_is_found_without_error() {
        let runs: Vec<Run> = [1, 2, 4, 8].map(|parallelism| run(80_000, parallelism, 170)).to_vec();
        let found = fit(&runs).expect("four runs");
        assert!((found.k - 170.0).abs() < 1e-6 && found.error < 1e-6, "{found:?}");
        assert_eq!(found.runs, 4);
    }

    #[test]
    fn runs_that_disagree_widen_the_error() {
        let runs = [run(80_000, 1, 180), run(80_000, 2, 180), run(80_000, 8, 120), run(80_000, 4, 120)];
        let found = fit(&runs).expect("four runs");
        assert!((130.0..160.0).contains(&found.k), "{found:?}");
        // The costs are 180 / 138 and 120 / 138 of it, about a fifth off.
        assert!((0.15..0.25).contains(&found.error), "{found:?}");
    }

    #[test]
    fn runs_without_all_counters_do_not_count() {
        let good = run(1000, 2, 100);
        for broken in [
            Run { misses: 0, ..good },
            Run { busy: 0, ..good },
            Run { stall: 0, ..good },
            Run { multiplexed: true, ..good },
        ] {
            assert_eq!(fit(&[good, good, broken]), None, "{broken:?}");
            assert_eq!(fit(&[good, good, good, broken]).map(|fit| fit.runs), Some(3));
        }
    }

    #[test]
    fn differences_of_readings_are_of_the_run() {
        let (before, after) = (run(1000, 1, 50), run(5000, 1, 50));
        assert_eq!(after - before, run(4000, 1, 50));
    }
}
