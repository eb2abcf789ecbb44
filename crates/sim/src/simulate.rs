//! Runs policies and bounds over one input at each size of the fast tier, and reports the results.

use std::time::Instant;

use isotherm_core::Pages;
use isotherm_core::parameters::Parameters;
use isotherm_machine::Profile;
use isotherm_policies::registry::BASELINE;
use isotherm_policies::{Bound, Entry, Kind};
use rayon::prelude::*;

use crate::bounds::{Belady, BeladyPlacement, IntervalRanks, NextUses};
use crate::error::SimulateError;
use crate::experiment::{Experiment, Input};
use crate::fast_size::FastSize;
use crate::long::{Length, pays_back};
use crate::result::{Interval, LongRun, Report, RunResult};
use crate::stop::stoppable;
use crate::testbed::{Testbed, ratios};

/// A testbed with a fast tier of one size, and the bounds' hits there.
struct Sized<'a> {
    testbed: &'a Testbed<'a>,
    size: &'a FastSize,
    fast: Pages,
    oracle_hits: Vec<Vec<u64>>,
    oracle_load_hits: Vec<Vec<u64>>,
    /// Of the fast tier, and of it with each further one but the last.
    belady: Vec<Belady>,
    /// In a long run: the same under first-touch.
    first_touch: Option<RunResult>,
}

/// Replays the input under every policy at every size. Calls `done` after each run, from any thread.
///
/// # Errors
/// A size, machine or policy that cannot be simulated, or work that was stopped.
pub fn simulate(
    input: &Input,
    experiment: &Experiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<Report, SimulateError> {
    stoppable(|| run(&Testbed::new(input, experiment)?, None, input, experiment, done))
}

/// Replays the input round after round, likewise, until rounds no longer change or so much is replayed, and
/// says when each policy pays back.
///
/// # Errors
/// As [`simulate`], or an input or length that is too short for rounds of it or for a policy.
pub fn simulate_long(
    input: &Input,
    experiment: &Experiment<'_>,
    length: Length,
    done: &(dyn Fn() + Sync),
) -> Result<Report, SimulateError> {
    stoppable(|| {
        run(&Testbed::new(input, experiment)?.lengthened(length)?, Some(length), input, experiment, done)
    })
}

fn run(
    testbed: &Testbed<'_>,
    length: Option<Length>,
    input: &Input,
    experiment: &Experiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<Report, SimulateError> {
    let (stream, replay) = (&input.stream, &testbed.replay);
    // What is too short is found before the work.
    experiment.policies.iter().try_for_each(|(_, parameters)| replay.scaled(parameters).map(drop))?;
    let fast = experiment.sizes.iter().map(|size| size.pages(stream)).collect::<Result<Vec<_>, _>>()?;
    // A size may name those of the tiers in the middle, too: a machine of its own.
    let profiles = experiment.sizes.iter().map(|size| size.on(experiment.profile, stream));
    let profiles = profiles.collect::<Result<Vec<Option<Profile>>, _>>()?;
    let experiments: Vec<_> = profiles.iter().map(|own| Some(experiment.on(own.as_ref()?))).collect();
    let mut own = Vec::new();
    for experiment in &experiments {
        let beside = |experiment| Testbed::beside(input, experiment, length, testbed.all_fast());
        own.push(experiment.as_ref().map(beside).transpose()?);
    }
    let testbeds: Vec<&Testbed<'_>> = own.iter().map(|own| own.as_ref().unwrap_or(testbed)).collect();
    let (uses, load_ranks) = rayon::join(
        || NextUses::of(stream),
        || {
            replay.ranks();
            IntervalRanks::new(stream, replay.interval_length, true)
        },
    );
    let sizes = experiment.sizes.par_iter().zip(&fast).zip(&testbeds);
    let sized = sizes.map(|((size, &fast), testbed)| Sized::new(testbed, size, fast, &load_ranks, &uses));
    let sized = sized.collect::<Result<Vec<Sized<'_>>, _>>()?;
    drop(uses);
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
        manifest: input.manifest(experiment.profile),
        input: input.summary(experiment.seed, experiment.scale),
        machine: experiment.profile.summary(),
        runs,
    })
}

impl<'a> Sized<'a> {
    fn new(
        testbed: &'a Testbed<'a>,
        size: &'a FastSize,
        fast: Pages,
        load_ranks: &IntervalRanks,
        uses: &NextUses,
    ) -> Result<Self, SimulateError> {
        let replay = &testbed.replay;
        let (stream, length) = (replay.stream, replay.interval_length);
        let first_touch = isotherm_policies::find(BASELINE).ok().filter(|_| replay.long.is_some());
        // The second round stands for every later one.
        let rounds = if replay.long.is_some() { 2 } else { 1 };
        let hits = |ranks: &IntervalRanks| ranks.hits(stream, fast, length, rounds);
        let ((oracle_hits, oracle_load_hits), belady) = rayon::join(
            || rayon::join(|| hits(replay.ranks()), || hits(load_ranks)),
            || replay.belady(uses, fast),
        );
        Ok(Self {
            testbed,
            size,
            fast,
            oracle_hits,
            oracle_load_hits,
            belady,
            first_touch: first_touch
                .map(|entry| testbed.run(entry, &entry.parameters(), fast))
                .transpose()?,
        })
    }

    fn run(&self, entry: &Entry, parameters: &Parameters) -> Result<RunResult, SimulateError> {
        let start = Instant::now();
        let known = self.first_touch.as_ref().filter(|run| run.policy == entry.name);
        let mut result = match entry.kind {
            _ if known.is_some() => known.cloned().unwrap_or_default(),
            Kind::Bound(Bound::Belady) => {
                let finished = self.testbed.replay.placed(BeladyPlacement::new(&self.belady));
                let scaled = self.testbed.replay.scaled(parameters)?;
                self.testbed.result(entry, scaled, self.fast, &finished)
            }
            _ => self.testbed.run(entry, parameters, self.fast)?,
        };
        let policy = matches!(entry.kind, Kind::Policy(_));
        self.add_bounds(&mut result, policy);
        if let (Some(run), Some(first_touch)) = (&mut result.long_run, self.first_touch()) {
            run.first_touch_ns = first_touch.after(run.rounds);
            let limit = matches!(entry.kind, Kind::Bound(bound) if bound.is_limit());
            run.pays_back_ns = pays_back(run, first_touch).filter(|_| !limit);
            result.timeline = condensed(&result.timeline, self.testbed.intervals());
        }
        result.fast = self.size.text.clone();
        result.wall_s = known.map_or(0.0, |run| run.wall_s) + start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn first_touch(&self) -> Option<&LongRun> {
        self.first_touch.as_ref()?.long_run.as_ref()
    }

    fn add_bounds(&self, result: &mut RunResult, policy: bool) {
        let rounds = result.long_run.as_ref().map_or(1, |run| run.simulated);
        let each = if policy { self.testbed.replay.intervals_merged() } else { 1 };
        let repeated = |each_round: &[Vec<u64>]| -> Vec<u64> {
            let round = |number: usize| each_round[number.min(each_round.len() - 1)].chunks(each);
            (0..rounds as usize).flat_map(round).map(|hits| hits.iter().sum()).collect()
        };
        let (oracle_hits, oracle_load_hits) = (repeated(&self.oracle_hits), repeated(&self.oracle_load_hits));
        let accesses = result.timeline.iter().map(|interval| interval.accesses);
        let loads = result.timeline.iter().map(|interval| interval.loads);
        (result.oracle_hit_ratio, result.oracle_final_hit_ratio) =
            ratios(oracle_hits.iter().copied(), accesses);
        (result.oracle_load_hit_ratio, result.oracle_final_load_hit_ratio) =
            ratios(oracle_load_hits.iter().copied(), loads);
        result.belady_hit_ratio = self.belady[0].hits(rounds) as f64 / result.accesses as f64;
        result.beats_oracle = policy && result.hit_ratio > result.oracle_hit_ratio;
        for (interval, &hits) in result.timeline.iter_mut().zip(&oracle_hits) {
            interval.oracle_hits = hits;
        }
    }
}

/// Merges neighbours so that at most `most` intervals are left.
fn condensed(timeline: &[Interval], most: usize) -> Vec<Interval> {
    timeline.chunks(timeline.len().div_ceil(most.max(1)).max(1)).map(Interval::merged).collect()
}
