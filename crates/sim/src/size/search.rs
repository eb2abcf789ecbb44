//! Searches the smallest size within the budget: first on sub-samples, then on the whole.

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, Pages};
use isotherm_policies::{Entry, Kind};
use rayon::prelude::*;

use super::curve::{grid, knee};
use super::estimate::{Estimate, Expected};
use super::result::{FullRun, Knee, Outcome, Point, PolicySize, Recommended};
use super::runs::Runs;
use super::{FULL_RUNS, SizeExperiment};
use crate::SimulateError;
use crate::stream::Stream;

/// Number of times that the pair of sizes around the crossing is halved.
const HALVINGS: usize = 3;
pub(super) const SIZES: usize = 13 + HALVINGS;
/// Minimum slowdown by which a knee lies below the straight line: less is not worth a decision.
const MIN_KNEE: f64 = 0.01;

type Selected = (&'static Entry, Parameters);

pub(super) struct Search<'a> {
    pub(super) experiment: &'a SizeExperiment<'a>,
    pub(super) samples: &'a [Runs<'a>],
    pub(super) whole: &'a Runs<'a>,
    pub(super) stream: &'a Stream,
    pub(super) done: &'a (dyn Fn() + Sync),
}

impl Search<'_> {
    /// Sizes every policy; the `in_full` policies that seem to need least with full simulations.
    pub(super) fn policies(&self, in_full: usize) -> Result<Vec<PolicySize>, SimulateError> {
        let policies = &self.experiment.policies;
        let estimates =
            policies.par_iter().map(|policy| self.estimate(policy)).collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<usize> =
            (0..policies.len()).filter(|&index| !is_bound(&policies[index])).collect();
        order.sort_by_key(|&index| estimates[index].expected_size(self.limit()).unwrap_or(u64::MAX));
        order.truncate(in_full);
        let confirm = |(index, mut estimate): (usize, Estimate)| {
            let mut full = Vec::new();
            if order.contains(&index) {
                full = self.confirm(&policies[index], &mut estimate)?;
            }
            self.conclude(&policies[index], &estimate, full)
        };
        estimates.into_par_iter().enumerate().map(confirm).collect()
    }

    fn limit(&self) -> f64 {
        1.0 + self.experiment.budget
    }

    fn pages(&self) -> u64 {
        self.stream.pages.len() as u64
    }

    fn bytes(&self, pages: u64) -> Bytes {
        Bytes(pages << self.stream.page_size.shift())
    }

    fn estimate(&self, policy: &Selected) -> Result<Estimate, SimulateError> {
        let mut estimate = Estimate::default();
        let sizes = grid(self.pages());
        let measured = sizes
            .par_iter()
            .map(|&size| Ok((size, self.sample(policy, size)?)))
            .collect::<Result<Vec<_>, SimulateError>>()?;
        measured.into_iter().for_each(|(size, slowdowns)| estimate.add(size, slowdowns));
        for _ in 0..HALVINGS {
            let Some((left, right)) = estimate.bracket(self.limit()) else { break };
            let middle = ((left as f64 * right as f64).sqrt()).round() as u64;
            if middle <= left || middle >= right {
                break;
            }
            estimate.add(middle, self.sample(policy, middle)?);
        }
        Ok(estimate)
    }

    fn sample(&self, (entry, parameters): &Selected, size: u64) -> Result<Vec<f64>, SimulateError> {
        let share = size as f64 / self.pages() as f64;
        let run = |runs: &Runs<'_>| {
            let slowdown = runs.slowdown_at(entry, parameters, share)?;
            (self.done)();
            Ok(adjusted(slowdown, runs.all_slow, self.whole.all_slow))
        };
        self.samples.par_iter().map(run).collect()
    }

    /// Simulates the needed size in full and corrects the estimate, until one meets the budget as expected.
    fn confirm(&self, policy: &Selected, estimate: &mut Estimate) -> Result<Vec<FullRun>, SimulateError> {
        let mut full: Vec<FullRun> = Vec::new();
        let shift = self.stream.page_size.shift();
        // Largest size known to be too small for the budget.
        let mut too_small = 0;
        while full.len() < FULL_RUNS {
            let needed = estimate.expected_size(self.limit()).unwrap_or(self.pages());
            let size = needed.max(too_small + 1).min(self.pages());
            if estimate.is_known(size) {
                break;
            }
            let slowdown = self.whole.slowdown(policy.0, &policy.1, Pages(size))?;
            (self.done)();
            let run = estimate.judge(size, slowdown, self.limit(), shift);
            if self.experiment.one_in(self.stream) > 1 {
                estimate.correct(size, slowdown);
            } else {
                // Sub-samples are the whole under other seeds: one more size is known, nothing to correct.
                estimate.add(size, self.sample(policy, size)?);
                estimate.correct(size, estimate.mean(size));
            }
            let settled = run.meets && run.within;
            if !run.meets {
                too_small = too_small.max(size);
            }
            full.push(run);
            if settled {
                break;
            }
        }
        Ok(full)
    }

    fn conclude(
        &self,
        policy: &Selected,
        estimate: &Estimate,
        full: Vec<FullRun>,
    ) -> Result<PolicySize, SimulateError> {
        let (entry, parameters) = policy;
        let scaled = self.whole.scaled(parameters)?;
        let point = |(&size, samples): (&u64, &Vec<f64>)| {
            let Expected { slowdown, low, high } = estimate.expect(size);
            Point { fast_bytes: self.bytes(size), slowdown, low, high, samples: samples.clone() }
        };
        let curve: Vec<Point> = estimate.samples.iter().map(point).collect();
        let error = |run: &FullRun| (run.slowdown - run.expected).abs();
        let (outcome, recommended) = self.recommend(estimate, &full);
        Ok(PolicySize {
            policy: entry.name.into(),
            bound: is_bound(policy),
            parameters: scaled.parameters,
            time_scale: scaled.times,
            outcome,
            recommended,
            knee: find_knee(&curve),
            error: full.iter().map(error).reduce(f64::max),
            curve,
            full,
        })
    }

    /// Returns the smallest size that a full simulation confirmed and none above contradicts; without full
    /// simulations, the estimate.
    fn recommend(&self, estimate: &Estimate, full: &[FullRun]) -> (Outcome, Option<Recommended>) {
        let too_small = full.iter().filter(|run| !run.meets).map(|run| run.fast_bytes).max();
        let confirmed = full
            .iter()
            .filter(|run| run.meets && too_small.is_none_or(|size| run.fast_bytes > size))
            .min_by_key(|run| run.fast_bytes);
        if let Some(run) = confirmed {
            let size = run.fast_bytes.0 >> self.stream.page_size.shift();
            return (Outcome::Confirmed, Some(self.recommended(estimate, size, run.slowdown)));
        }
        let needed = estimate.expected_size(self.limit());
        match (needed, too_small) {
            (_, Some(size)) if size >= self.bytes(self.pages()) => (Outcome::Never, None),
            (None, _) => (Outcome::Never, None),
            (Some(_), Some(_)) => (Outcome::Unconfirmed, None),
            (Some(size), None) => {
                let slowdown = estimate.expect(size).slowdown;
                (Outcome::Estimated, Some(self.recommended(estimate, size, slowdown)))
            }
        }
    }

    fn recommended(&self, estimate: &Estimate, size: u64, slowdown: f64) -> Recommended {
        let low = estimate.needed(self.limit(), |expected| expected.low).unwrap_or(size).min(size);
        let high = estimate.needed(self.limit(), |expected| expected.high).map(|high| high.max(size));
        Recommended {
            fast_bytes: self.bytes(size),
            low_bytes: self.bytes(low),
            high_bytes: high.map(|high| self.bytes(high)),
            saved_bytes: self.bytes(self.pages() - size),
            slowdown,
        }
    }
}

fn is_bound((entry, _): &Selected) -> bool {
    matches!(entry.kind, Kind::Bound(_))
}

/// Corrects a sub-sample's slowdown for lost or gained overlap between misses: with all memory slow it is
/// `part` times as slow, the whole `whole` times. The excess is no stall but the policy's own cost, and
/// stays.
fn adjusted(slowdown: f64, part: f64, whole: f64) -> f64 {
    let stall = if part > 1.0 { ((slowdown - 1.0) / (part - 1.0)).clamp(0.0, 1.0) } else { 0.0 };
    slowdown + stall * (whole - part)
}

fn find_knee(curve: &[Point]) -> Option<Knee> {
    let sizes: Vec<u64> = curve.iter().map(|point| point.fast_bytes.0).collect();
    let values: Vec<f64> = curve.iter().map(|point| point.slowdown).collect();
    let widest = curve.iter().map(|point| (point.high - point.low) / 2.0).fold(MIN_KNEE, f64::max);
    let found = &curve[knee(&sizes, &values, widest)?];
    Some(Knee { fast_bytes: found.fast_bytes, slowdown: found.slowdown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_sample_is_made_up_for_its_overlap_but_not_for_a_policys_cost() {
        assert_eq!(adjusted(1.0, 1.2, 1.4), 1.0);
        assert!((adjusted(1.1, 1.2, 1.4) - 1.2).abs() < 1e-9);
        assert!((adjusted(1.5, 1.2, 1.4) - 1.7).abs() < 1e-9);
        assert_eq!(adjusted(1.1, 1.0, 1.4), 1.1, "a sub-sample that never stalls tells nothing");
    }
}
