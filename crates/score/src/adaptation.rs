//! Time that a run takes to adapt after its hot set changed (HybridTier, Table 3).
//!
//! From the change until the running median of loads' hit ratio is first within 1 % of its steady state, the
//! median of the run's last tenth. Hits stand for the paper's latency of requests, which the simulator lacks.
//! The search starts where the running median no longer includes intervals before the change.

use crate::outcome::{Outcome, Part};

/// Intervals of the running median, out of a thousand.
const MEDIAN_OVER: usize = 11;
/// Share of the steady state that counts as reached.
const REACHED: f64 = 0.99;
const MINUTE: f64 = 60e9;

/// Returns the minutes at the paper's scale; infinite if the steady state is never reached.
pub(crate) fn adaptation_minutes(outcome: &Outcome, change_at: f64) -> f64 {
    let points = &outcome.parts;
    let ratios = smoothed(points);
    let change = ((points.len() as f64 * change_at) as usize).min(points.len().saturating_sub(1));
    let steady = median(&ratios[points.len() - (points.len() / 10).max(1)..]);
    let first = change + MEDIAN_OVER / 2 + 1;
    let reached = (first..points.len()).find(|&index| ratios[index] >= REACHED * steady);
    reached.map_or(f64::INFINITY, |index| {
        let time: f64 = points[change + 1..=index].iter().map(|point| point.time).sum();
        time * outcome.time_scale / MINUTE
    })
}

fn smoothed(points: &[Part]) -> Vec<f64> {
    let ratio = |point: &Part| point.load_hits / point.loads.max(1.0);
    let ratios: Vec<f64> = points.iter().map(ratio).collect();
    let half = MEDIAN_OVER / 2;
    let around =
        |index: usize| median(&ratios[index.saturating_sub(half)..ratios.len().min(index + half + 1)]);
    (0..ratios.len()).map(around).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 1000 intervals of 60 s, whose hits fall at the change and recover `after` intervals later.
    fn run(after: usize) -> Outcome {
        let point = |index: usize| Part {
            time: MINUTE,
            loads: 100.0,
            load_hits: if (500..500 + after).contains(&index) { 20.0 } else { 90.0 },
            ..Part::default()
        };
        Outcome { parts: (0..1000).map(point).collect(), time_scale: 2.0, ..Outcome::default() }
    }

    #[test]
    fn time_counts_from_the_change_to_the_steady_state() {
        let minutes = adaptation_minutes(&run(100), 0.5);
        assert!((190.0..=210.0).contains(&minutes), "{minutes}");
        assert!(adaptation_minutes(&run(20), 0.5) < minutes);
    }

    #[test]
    fn a_state_that_is_reached_by_the_last_tenth_only_is_found_there() {
        assert!(adaptation_minutes(&run(440), 0.5) > 850.0);
    }
}
