//! Runs policies and bounds over one input, each at each size of the fast tier, and reports what came of them.

use std::collections::BTreeMap;
use std::time::Instant;

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Bytes, EngineError, Nanos, Pages, Policy};
use isotherm_policies::{Bound, BuildError, Entry, Kind};
use rayon::prelude::*;

use crate::bounds::{Belady, IntervalRanks, OraclePlacement, next_uses};
use crate::fast_size::FastSize;
use crate::machine::IntervalCount;
use crate::replay::{self, Finished, Replay};
use crate::result::{InputSummary, Interval, Report, RunResult};
use crate::stream::Stream;
use crate::summary::{NamedRange, heatmap, page_cdf, page_counts, regions};
use crate::{MachineSummary, Profile};

/// Intervals that a run's timeline is divided into, of equally many accesses.
pub const INTERVALS: usize = 100;
/// The oracle's horizon: so many accesses a page on average, rounded up to whole intervals of the timeline. In a shorter
/// one it would fetch pages for a single access each, which nobody who moves pages can.
const ORACLE_ACCESSES_PER_PAGE: usize = 10;

/// Why a simulation could not run.
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
    /// The machine has one tier only.
    #[error("machine {0}: needs at least two tiers")]
    OneTier(String),
    /// The machine has more tiers than the model.
    #[error("machine {0}: at most 4 tiers are modelled")]
    ManyTiers(String),
    /// The policy cannot be built for this size.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The policy asks for what the simulator lacks.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What is replayed, and what is known of it.
#[derive(Debug)]
pub struct Input {
    /// The workload's name or the trace's path.
    pub name: String,
    /// Whether it is a workload rather than a trace.
    pub workload: bool,
    /// The workload's parameters.
    pub parameters: Option<Parameters>,
    /// Where it comes from, as key and value.
    pub provenance: BTreeMap<String, String>,
    /// The accesses.
    pub stream: Stream,
    /// Named ranges of addresses, where known.
    pub ranges: Vec<NamedRange>,
}

/// What to run.
#[derive(Debug)]
pub struct Experiment<'a> {
    /// Policies and bounds with their parameters, unscaled.
    pub policies: Vec<(&'static Entry, Parameters)>,
    /// Sizes of the fast tier.
    pub sizes: Vec<FastSize>,
    /// The machine.
    pub profile: &'a Profile,
    /// The machine for the report.
    pub machine: MachineSummary,
    /// The random generator's seed.
    pub seed: u64,
    /// By what to divide scaled parameters.
    pub scale: Scale,
    /// Intervals of the timeline; [`INTERVALS`] if nothing else is wanted.
    pub intervals: usize,
    /// Isotherm's version.
    pub version: &'a str,
}

/// What all runs over one stream share.
struct Shared<'a> {
    input: &'a Input,
    experiment: &'a Experiment<'a>,
    replay: Replay<'a>,
    ranks: IntervalRanks,
    load_ranks: IntervalRanks,
    next_uses: Vec<u32>,
    all_fast: Nanos,
}

/// What all runs at one size share.
struct Sized<'a> {
    size: &'a FastSize,
    fast: Pages,
    oracle_hits: Vec<u64>,
    oracle_load_hits: Vec<u64>,
    belady: Belady,
}

/// Replays the input under every policy at every size. `done` is called after each run, from any thread.
pub fn simulate(
    input: &Input,
    experiment: &Experiment<'_>,
    done: &(dyn Fn() + Sync),
) -> Result<Report, SimulateError> {
    replay::check(experiment.profile)?;
    let stream = &input.stream;
    let fast = experiment.sizes.iter().map(|size| size.pages(stream)).collect::<Result<Vec<_>, _>>()?;
    let interval_length = stream.accesses.len().div_ceil(experiment.intervals.max(1)).max(1);
    let mut shared = Shared {
        input,
        experiment,
        replay: Replay {
            stream,
            profile: experiment.profile,
            seed: experiment.seed,
            scale: experiment.scale,
            interval_length,
        },
        ranks: IntervalRanks::new(stream, oracle_length(stream, interval_length), false),
        load_ranks: IntervalRanks::new(stream, oracle_length(stream, interval_length), true),
        next_uses: next_uses(stream),
        all_fast: Nanos(1),
    };
    shared.all_fast = shared.replay.fixed(true).end;
    let sized = |(size, &fast)| Sized {
        size,
        fast,
        oracle_hits: shared.ranks.hits(stream, fast, interval_length),
        oracle_load_hits: shared.load_ranks.hits(stream, fast, interval_length),
        belady: Belady::new(stream, &shared.next_uses, fast),
    };
    let sized: Vec<Sized<'_>> = experiment.sizes.par_iter().zip(&fast).map(sized).collect();
    let jobs: Vec<_> = sized
        .iter()
        .flat_map(|sized| experiment.policies.iter().map(move |policy| (sized, policy)))
        .collect();
    let run = |(sized, (entry, parameters)): &(&Sized<'_>, &(&'static Entry, Parameters))| {
        let result = shared.run(sized, entry, parameters);
        done();
        result
    };
    let runs = jobs.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    Ok(Report {
        version: experiment.version.into(),
        input: shared.summary(),
        machine: experiment.machine.clone(),
        runs,
    })
}

/// The length of the oracle's intervals: whole intervals of the timeline.
pub(crate) fn oracle_length(stream: &Stream, interval_length: usize) -> usize {
    let wanted = (ORACLE_ACCESSES_PER_PAGE * stream.pages.len()).min(stream.accesses.len());
    wanted.div_ceil(interval_length).max(1) * interval_length
}

/// A ratio over the whole run and over its last quarter.
fn ratios(
    hits: impl Iterator<Item = u64> + Clone,
    accesses: impl Iterator<Item = u64> + Clone,
) -> (f64, f64) {
    let steady = accesses.clone().count() * 3 / 4;
    let ratio = |from: usize| {
        let accesses = accesses.clone().skip(from).sum::<u64>();
        hits.clone().skip(from).sum::<u64>() as f64 / accesses.max(1) as f64
    };
    (ratio(0), ratio(steady))
}

impl Shared<'_> {
    fn run(
        &self,
        sized: &Sized<'_>,
        entry: &Entry,
        parameters: &Parameters,
    ) -> Result<RunResult, SimulateError> {
        let start = Instant::now();
        let mut parameters = parameters.clone();
        parameters.scale(self.experiment.scale);
        let mut result = match entry.kind {
            Kind::Policy(build) => {
                self.run_policy(sized, entry, build(&parameters, &self.replay.setup(sized.fast))?)?
            }
            Kind::Bound(bound) => {
                let finished = match bound {
                    Bound::AllFast => self.replay.fixed(true),
                    Bound::AllSlow => self.replay.fixed(false),
                    Bound::Oracle => {
                        let pages = self.input.stream.pages.len();
                        self.replay.bound(OraclePlacement::new(&self.ranks, pages, sized.fast))
                    }
                    Bound::Belady => self.replay.bound(&sized.belady),
                };
                self.result(sized, entry, &finished)
            }
        };
        result.parameters = parameters;
        result.wall_s = start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn run_policy(
        &self,
        sized: &Sized<'_>,
        entry: &Entry,
        mut policy: Box<dyn Policy>,
    ) -> Result<RunResult, SimulateError> {
        let page_size = self.input.stream.page_size;
        let (host, statistics) = self.replay.policy(sized.fast, policy.as_mut())?;
        let mut result = self.result(sized, entry, &Finished::of(&host.machine));
        result.promotions = host.migrations.promotions;
        result.demotions = host.migrations.demotions;
        result.failed_moves = host.migrations.failed;
        result.bytes_moved = host.migrations.bytes;
        result.shadow_bytes = Bytes(host.machine.locator.most_shadows().0 << page_size.shift());
        result.hint_faults = statistics.faults;
        result.samples = statistics.samples;
        result.samples_lost = statistics.lost;
        result.metadata_bytes = policy.metadata();
        result.tiering_cpu_ns = host.tiering_cpu;
        let mut before = (0, 0, 0);
        for (interval, noted) in result.timeline.iter_mut().zip(&host.history) {
            interval.promotions = noted.promotions - before.0;
            interval.demotions = noted.demotions - before.1;
            interval.samples = noted.samples - before.2;
            interval.gauges = noted.gauges.iter().map(|gauge| (gauge.name, gauge.value)).collect();
            before = (noted.promotions, noted.demotions, noted.samples);
        }
        Ok(result)
    }

    /// The result of a run that moved nothing; a policy's own numbers are filled in by its caller.
    fn result(&self, sized: &Sized<'_>, entry: &Entry, finished: &Finished) -> RunResult {
        let input = self.input;
        let intervals = &finished.intervals;
        let all = intervals.iter().map(|interval| interval.accesses);
        let loads = intervals.iter().map(|interval| interval.loads);
        let (hits, steady_hits) = ratios(intervals.iter().map(|interval| interval.hits), all.clone());
        let (load_hits, steady_load_hits) =
            ratios(intervals.iter().map(|interval| interval.load_hits), loads.clone());
        let (oracle, steady_oracle) = ratios(sized.oracle_hits.iter().copied(), all);
        let (load_oracle, steady_load_oracle) = ratios(sized.oracle_load_hits.iter().copied(), loads);
        let interval = |(count, &oracle_hits): (&IntervalCount, &u64)| Interval {
            end_ns: count.end,
            accesses: count.accesses,
            hits: count.hits,
            loads: count.loads,
            load_hits: count.load_hits,
            oracle_hits,
            ..Interval::default()
        };
        let accesses = input.stream.accesses.len() as u64;
        RunResult {
            policy: entry.name.into(),
            parameters: Parameters::new(entry.name, entry.specs),
            workload: input.workload.then(|| input.name.clone()),
            trace: (!input.workload).then(|| input.name.clone()),
            machine: self.experiment.profile.name.clone(),
            seed: self.experiment.seed,
            scale: self.experiment.scale.footprint,
            time_scale: self.experiment.scale.time,
            version: self.experiment.version.into(),
            page_size: input.stream.page_size,
            footprint_bytes: input.stream.footprint(),
            fast_bytes: Bytes(sized.fast.0 << input.stream.page_size.shift()),
            fast: sized.size.text.clone(),
            accesses,
            hit_ratio: hits,
            steady_hit_ratio: steady_hits,
            load_hit_ratio: load_hits,
            steady_load_hit_ratio: steady_load_hits,
            oracle_hit_ratio: oracle,
            oracle_steady_hit_ratio: steady_oracle,
            oracle_load_hit_ratio: load_oracle,
            oracle_steady_load_hit_ratio: steady_load_oracle,
            belady_hit_ratio: sized.belady.total as f64 / accesses as f64,
            beats_oracle: matches!(entry.kind, Kind::Policy(_)) && hits > oracle,
            slowdown: finished.end.0 as f64 / self.all_fast.0.max(1) as f64,
            modelled_ns: finished.end,
            stall_ns: finished.stall.clone(),
            tier_bytes: finished.bytes.clone(),
            promotions: 0,
            demotions: 0,
            failed_moves: crate::FailedMoves::default(),
            bytes_moved: Bytes(0),
            shadow_bytes: Bytes(0),
            hint_faults: 0,
            samples: 0,
            samples_lost: 0,
            metadata_bytes: Bytes(0),
            tiering_cpu_ns: Nanos(0),
            charges: finished.charges,
            wall_s: 0.0,
            timeline: intervals.iter().zip(&sized.oracle_hits).map(interval).collect(),
        }
    }

    fn summary(&self) -> InputSummary {
        let stream = &self.input.stream;
        let counts = page_counts(stream);
        InputSummary {
            name: self.input.name.clone(),
            kind: if self.input.workload { "workload" } else { "trace" },
            parameters: self.input.parameters.clone(),
            provenance: self.input.provenance.clone(),
            seed: self.experiment.seed,
            scale: self.experiment.scale.footprint,
            time_scale: self.experiment.scale.time,
            accesses: stream.accesses.len() as u64,
            instructions: stream.instructions(),
            threads: stream.threads,
            footprint_bytes: stream.footprint(),
            heatmap: heatmap(stream),
            page_cdf: page_cdf(&counts),
            regions: regions(stream, &counts, &self.input.ranges),
        }
    }
}
