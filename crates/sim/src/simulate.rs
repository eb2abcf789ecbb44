//! Runs policies and bounds over one input at each size of the fast tier, and reports the results.

use std::collections::BTreeMap;
use std::time::Instant;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Bytes, EngineError, Pages};
use isotherm_machine::{MAX_TIERS, Profile};
use isotherm_policies::{Bound, BuildError, Entry, Kind};
use rayon::prelude::*;

use crate::bounds::{Belady, IntervalRanks};
use crate::fast_size::FastSize;
use crate::result::{InputSummary, Report, RunResult};
use crate::stream::Stream;
use crate::summary::{NamedRange, heatmap, page_cdf, page_counts, regions};
use crate::testbed::{Testbed, ratios};

/// Usual number of intervals in a run's timeline, of equally many accesses.
pub const INTERVALS: usize = 100;
/// Why a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The text is no size.
    #[error(
        "--fast: '{0}' is not a size (64M), a fast:slow ratio (1:8) or a percentage of the footprint (25%)"
    )]
    InvalidSize(String),
    /// No page would be fast.
    #[error("--fast {0}: leaves no fast page of a footprint of {1}")]
    NoFastPage(String, Bytes),
    /// Nothing would be slow.
    #[error("--fast {0}: larger than the footprint of {1}, so there is nothing to tier")]
    LargerThanFootprint(String, Bytes),
    /// The machine has only one tier.
    #[error("machine {0}: needs at least two tiers")]
    OneTier(String),
    /// The machine has more tiers than the model.
    #[error("machine {0}: at most {MAX_TIERS} tiers are modelled")]
    ManyTiers(String),
    /// The policy cannot be built for this size.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The policy asks for a signal that the simulator lacks.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The accesses to replay, and what is known about them.
#[derive(Debug)]
pub struct Input {
    /// Workload's name or trace's path.
    pub name: String,
    /// Whether it is a workload rather than a trace.
    pub workload: bool,
    /// The workload's parameters.
    pub parameters: Option<Parameters>,
    /// Origin, as key and value.
    pub provenance: BTreeMap<String, String>,
    /// The accesses.
    pub stream: Stream,
    /// Named ranges of addresses, where known.
    pub ranges: Vec<NamedRange>,
}

/// Policies and machine to run.
#[derive(Debug)]
pub struct Experiment<'a> {
    /// Policies and bounds with their parameters, unscaled.
    pub policies: Vec<(&'static Entry, Parameters)>,
    /// Sizes of the fast tier.
    pub sizes: Vec<FastSize>,
    /// The machine.
    pub profile: &'a Profile,
    /// The random generator's seed.
    pub seed: u64,
    /// Divisors of scaled parameters.
    pub scale: Scale,
    /// Intervals of the timeline, usually [`INTERVALS`].
    pub intervals: usize,
    /// Isotherm's version.
    pub version: &'a str,
}

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

impl Input {
    /// Summarises the input for people: footprint, heatmap, skew over pages, allocation sites.
    pub fn summary(&self, seed: u64, scale: Scale) -> InputSummary {
        let stream = &self.stream;
        let counts = page_counts(stream);
        InputSummary {
            name: self.name.clone(),
            kind: if self.workload { "workload" } else { "trace" },
            parameters: self.parameters.clone(),
            provenance: self.provenance.clone(),
            seed,
            scale: scale.footprint,
            time_scale: scale.time,
            accesses: stream.accesses.len() as u64,
            instructions: stream.instructions(),
            threads: stream.threads,
            footprint_bytes: stream.footprint(),
            heatmap: heatmap(stream),
            page_cdf: page_cdf(&counts),
            regions: regions(stream, &counts, &self.ranges),
        }
    }
}
