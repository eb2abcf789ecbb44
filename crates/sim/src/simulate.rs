//! Runs policies and bounds over one input at each size of the fast tier, and reports the results.

use std::time::Instant;

use isotherm_core::Pages;
use isotherm_core::parameters::Parameters;
use isotherm_policies::{Bound, Entry, Kind};
use rayon::prelude::*;

use crate::bounds::{Belady, IntervalRanks};
use crate::error::SimulateError;
use crate::experiment::{Experiment, Input};
use crate::fast_size::FastSize;
use crate::result::{Report, RunResult};
use crate::testbed::{Testbed, ratios};

/// A testbed with a fast tier of one size, and the bounds' hits there.
struct Sized<'a> {
    testbed: &'a Testbed<'a>,
    size: &'a FastSize,
    fast: Pages,
    oracle_hits: Vec<u64>,
    oracle_load_hits: Vec<u64>,
    belady: Belady,
}

/// Replays the input under every policy at every size. Calls `done` after each run, from any thread.
///
/// # Errors
/// A size, machine or policy that cannot be simulated.
pub fn simulate(
    input: &Input,
    experiment: &Experiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<Report, SimulateError> {
    let stream = &input.stream;
    let testbed = &Testbed::new(input, experiment)?;
    let replay = &testbed.replay;
    let fast = experiment.sizes.iter().map(|size| size.pages(stream)).collect::<Result<Vec<_>, _>>()?;
    let load_ranks = IntervalRanks::new(stream, replay.interval_length, true);
    let sized = |(size, &fast)| Sized {
        testbed,
        size,
        fast,
        oracle_hits: replay.ranks().hits(stream, fast, replay.interval_length),
        oracle_load_hits: load_ranks.hits(stream, fast, replay.interval_length),
        belady: replay.belady(fast),
    };
    let sized: Vec<Sized<'_>> = experiment.sizes.par_iter().zip(&fast).map(sized).collect();
    let jobs: Vec<_> = sized
        .iter()
        .flat_map(|sized| experiment.policies.iter().map(move |policy| (sized, policy)))
        .collect();
    let run = |(sized, (entry, parameters)): &(&Sized<'_>, &(&'static Entry, Parameters))| {
        let result = sized.run(entry, parameters);
        done();
        result
    };
    let runs = jobs.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    Ok(Report {
        version: experiment.version.into(),
        input: input.summary(experiment.seed, experiment.scale),
        machine: experiment.profile.summary(),
        runs,
    })
}

impl Sized<'_> {
    fn run(&self, entry: &Entry, parameters: &Parameters) -> Result<RunResult, SimulateError> {
        let start = Instant::now();
        let mut result = match entry.kind {
            Kind::Bound(Bound::Belady) => {
                let finished = self.testbed.replay.placed(&self.belady);
                self.testbed.result(entry, parameters, self.fast, &finished)
            }
            _ => self.testbed.run(entry, parameters, self.fast)?,
        };
        self.add_bounds(&mut result, matches!(entry.kind, Kind::Policy(_)));
        result.fast = self.size.text.clone();
        result.wall_s = start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn add_bounds(&self, result: &mut RunResult, policy: bool) {
        let accesses = result.timeline.iter().map(|interval| interval.accesses);
        let loads = result.timeline.iter().map(|interval| interval.loads);
        (result.oracle_hit_ratio, result.oracle_final_hit_ratio) =
            ratios(self.oracle_hits.iter().copied(), accesses);
        (result.oracle_load_hit_ratio, result.oracle_final_load_hit_ratio) =
            ratios(self.oracle_load_hits.iter().copied(), loads);
        result.belady_hit_ratio = self.belady.total as f64 / result.accesses as f64;
        result.beats_oracle = policy && result.hit_ratio > result.oracle_hit_ratio;
        for (interval, &hits) in result.timeline.iter_mut().zip(&self.oracle_hits) {
            interval.oracle_hits = hits;
        }
    }
}
