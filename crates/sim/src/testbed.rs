//! A stream on a machine, on which [`crate::simulate()`] and the scoreboard run policies one by one.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, Nanos, Pages, Policy};
use isotherm_policies::{Entry, Kind};

use crate::bound_replay::replay_bound;
use crate::compression::Compression;
use crate::error::SimulateError;
use crate::experiment::{Experiment, Input};
use crate::long::{Length, Long, Scaled};
use crate::lookups::Lookups;
use crate::replay::{Finished, Replay};
use crate::result::{LongRun, RunResult};

/// The time of an input with all memory fast, and its TLB look-ups: no sample, move or fault has a part in
/// them.
#[derive(Debug, Clone)]
pub struct AllFast {
    once: (Nanos, Vec<Nanos>),
    long: Option<LongRun>,
    lookups: Option<Arc<Lookups>>,
}

impl AllFast {
    /// Drops the look-ups, which take a byte or two an access: further testbeds compute their own.
    pub fn forget_lookups(&mut self) {
        self.lookups = None;
    }
}

/// An input on a machine, with the time that it takes with all memory fast.
#[derive(Debug)]
pub struct Testbed<'a> {
    input: &'a Input,
    experiment: &'a Experiment<'a>,
    pub(crate) replay: Replay<'a>,
    /// Time of a replay with all memory fast, and the end of each interval in it.
    all_fast: (Nanos, Vec<Nanos>),
    /// A long run with all memory fast.
    all_fast_long: Option<LongRun>,
}

impl<'a> Testbed<'a> {
    /// Sets the input on the experiment's machine, whose policies and sizes are ignored: each run brings its
    /// own.
    ///
    /// # Errors
    /// A machine with a number of tiers that the model does not run.
    pub fn new(input: &'a Input, experiment: &'a Experiment<'a>) -> Result<Self, SimulateError> {
        let Experiment { profile, scale, seed, intervals, .. } = *experiment;
        let mut replay = Replay::new(&input.stream, &input.ranges, profile, scale, seed, intervals)?;
        replay.stop = experiment.stop;
        let finished = replay.fixed(true);
        let ends = finished.intervals.iter().map(|interval| interval.end_ns).collect();
        let all_fast = (finished.end, ends);
        Ok(Self { input, experiment, replay, all_fast, all_fast_long: None })
    }

    /// Sets the input on a machine that differs from a known one in the seed and the costs of tiering alone.
    ///
    /// # Errors
    /// As [`Self::new`] and [`Self::lengthened`].
    pub fn beside(
        input: &'a Input,
        experiment: &'a Experiment<'a>,
        length: Option<Length>,
        known: AllFast,
    ) -> Result<Self, SimulateError> {
        let Experiment { profile, scale, seed, intervals, .. } = *experiment;
        let mut replay = Replay::new(&input.stream, &input.ranges, profile, scale, seed, intervals)?;
        replay.stop = experiment.stop;
        replay.lookups = known.lookups.map(OnceLock::from).unwrap_or_default();
        let testbed = Self { input, experiment, replay, all_fast: known.once, all_fast_long: known.long };
        match length {
            Some(length) => testbed.rounds_of(length),
            None => Ok(testbed),
        }
    }

    /// Returns what the input takes with all memory fast, for other testbeds.
    pub fn all_fast(&self) -> AllFast {
        let (once, long) = (self.all_fast.clone(), self.all_fast_long.clone());
        AllFast { once, long, lookups: Some(self.replay.lookups()) }
    }

    /// Makes each run one of several rounds.
    ///
    /// # Errors
    /// Rounds that are too short for the model, or less time than one takes.
    pub fn lengthened(self, length: Length) -> Result<Self, SimulateError> {
        let testbed = self.rounds_of(length)?;
        let all_fast_long = testbed.replay.fixed(true).rounds.as_ref().map(|rounds| rounds.result(None));
        Ok(Self { all_fast_long, ..testbed })
    }

    fn rounds_of(self, length: Length) -> Result<Self, SimulateError> {
        let Self { replay, all_fast, .. } = self;
        // Loading apart is the scoreboard's alone: whole intervals, whose times are known.
        let apart = matches!(length, Length::Loops { .. });
        let intervals = if apart { replay.stream.loaded() / replay.interval_length } else { 0 };
        let before = intervals.checked_sub(1).map_or(Nanos(0), |last| all_fast.1[last]);
        let loading = intervals * replay.interval_length;
        let long = Long::new(length, (replay.stream.accesses.len() - loading) as u64, all_fast.0 - before)?;
        Ok(Self { replay: replay.lengthened(long.behind(loading)), all_fast, ..self })
    }

    /// Returns the number of intervals of the timeline asked for.
    pub(crate) fn intervals(&self) -> usize {
        self.experiment.intervals
    }

    /// Returns the end of each interval of a single replay's timeline with all memory fast.
    pub fn all_fast_ends(&self) -> &[Nanos] {
        &self.all_fast.1
    }

    /// Returns a long run with all memory fast, if it is lengthened.
    pub fn all_fast_long(&self) -> Option<&LongRun> {
        self.all_fast_long.as_ref()
    }

    /// Replays under a policy or bound with unscaled parameters. The result's fields about the bounds
    /// `oracle` and `belady` are 0: [`crate::simulate()`] computes them once for all policies.
    ///
    /// # Errors
    /// A policy that cannot be built for this size, or that asks for a signal that the simulator lacks.
    pub fn run(
        &self,
        entry: &Entry,
        parameters: &Parameters,
        fast: Pages,
    ) -> Result<RunResult, SimulateError> {
        let start = Instant::now();
        let mut result = match entry.kind {
            Kind::Policy(build) => {
                let scaled = self.replay.scaled(parameters)?;
                let mut policy = build(&scaled.parameters, &self.replay.setup(fast))?;
                self.run_policy(entry, scaled, fast, policy.as_mut())?
            }
            Kind::Bound(bound) => {
                let finished = replay_bound(&self.replay, bound, fast);
                self.result(entry, self.replay.scaled(parameters)?, fast, &finished)
            }
        };
        result.wall_s = start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn run_policy(
        &self,
        entry: &Entry,
        scaled: Scaled,
        fast: Pages,
        policy: &mut dyn Policy,
    ) -> Result<RunResult, SimulateError> {
        let (mut host, statistics) = self.replay.policy(fast, policy, &scaled)?;
        let finished = Finished::of(&host.processor, host.rounds.take());
        let mut result = self.result(entry, scaled, fast, &finished);
        result.promotions = host.migrations.promotions;
        result.demotions = host.migrations.demotions;
        result.failed_moves = host.migrations.failed;
        result.bytes_moved = host.migrations.bytes;
        let shift = self.replay.stream.page_size.shift();
        result.shadow_bytes = Bytes(host.processor.locator.max_shadows().0 << shift);
        result.swap_ins = host.processor.swap_ins;
        result.stored_bytes = host.processor.locator.compression().map_or(Bytes(0), Compression::most);
        result.hint_faults = statistics.faults;
        result.samples = statistics.samples;
        result.samples_lost = statistics.lost;
        result.metadata_bytes = policy.metadata();
        result.page_tiers = host.processor.locator.tiers_of_pages();
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

    /// Returns the result of a run that moved nothing; callers fill in a policy's counts and the bounds.
    pub(crate) fn result(
        &self,
        entry: &Entry,
        scaled: Scaled,
        fast: Pages,
        finished: &Finished,
    ) -> RunResult {
        let (input, experiment) = (self.input, self.experiment);
        let all_fast = self.all_fast_long.as_ref();
        let long_run = finished.rounds.as_ref().map(|rounds| rounds.result(all_fast));
        let rounds = long_run.as_ref().map_or(1, |run| run.simulated);
        let all_fast = all_fast.map_or(self.all_fast.0, |all_fast| all_fast.after(rounds));
        let intervals = &finished.intervals;
        let all = intervals.iter().map(|interval| interval.accesses);
        let loads = intervals.iter().map(|interval| interval.loads);
        let (hits, final_hits) = ratios(intervals.iter().map(|interval| interval.hits), all);
        let (load_hits, final_load_hits) = ratios(intervals.iter().map(|interval| interval.load_hits), loads);
        let fast_bytes = Bytes(fast.0 << input.stream.page_size.shift());
        RunResult {
            policy: entry.name.into(),
            parameters: scaled.parameters,
            workload: input.workload.then(|| input.name.clone()),
            trace: (!input.workload).then(|| input.name.clone()),
            machine: experiment.profile.name.clone(),
            seed: experiment.seed,
            scale: experiment.scale.footprint,
            time_scale: scaled.times,
            version: experiment.version.into(),
            page_size: input.stream.page_size,
            footprint_bytes: input.stream.footprint(),
            fast_bytes,
            fast: fast_bytes.to_string(),
            accesses: input.stream.accesses.len() as u64 * rounds,
            hit_ratio: hits,
            final_hit_ratio: final_hits,
            load_hit_ratio: load_hits,
            final_load_hit_ratio: final_load_hits,
            slowdown: finished.end.0 as f64 / all_fast.0.max(1) as f64,
            modelled_ns: finished.end,
            all_fast_ns: all_fast,
            parts: finished.parts,
            fast_cells: finished.fast_cells.clone(),
            stall_ns: finished.stall.clone(),
            tier_accesses: finished.served.clone(),
            tier_bytes: finished.bytes.clone(),
            charges: finished.charges,
            page_walks: finished.walks.walks,
            page_walk_reads: finished.walks.from_memory,
            samples_throttled: finished.throttled,
            timeline: intervals.clone(),
            long_run,
            ..RunResult::default()
        }
    }
}

/// Returns a ratio over the whole run and over its last quarter.
pub(crate) fn ratios(
    hits: impl Iterator<Item = u64> + Clone,
    accesses: impl Iterator<Item = u64> + Clone,
) -> (f64, f64) {
    let last_quarter = accesses.clone().count() * 3 / 4;
    let ratio = |from: usize| {
        let accesses = accesses.clone().skip(from).sum::<u64>();
        hits.clone().skip(from).sum::<u64>() as f64 / accesses.max(1) as f64
    };
    (ratio(0), ratio(last_quarter))
}
