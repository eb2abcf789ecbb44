//! Runs over one stream, whole or sub-sample, that give the points of curves.

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Nanos, Pages};
use isotherm_policies::{Bound, Entry, Kind};

use super::{ROUND_ACCESSES, ROUNDS, SizeExperiment};
use crate::bound_replay::replay_bound;
use crate::long::{Long, Rounds, Scaled};
use crate::replay::Replay;
use crate::stream::Stream;
use crate::{INTERVALS, Input, SimulateError};

pub(super) struct Runs<'a> {
    replay: Replay<'a>,
    /// Time with all memory fast: of one replay, or of a round in the long run.
    pub(super) all_fast: Nanos,
    pub(super) all_slow: f64,
}

/// Returns what a run took: as a whole, or a round of it in the long run.
fn time(end: Nanos, rounds: Option<&Rounds>) -> Nanos {
    rounds.map_or(end, |rounds| rounds.result(None).round_ns)
}

impl<'a> Runs<'a> {
    /// Prepares runs over the experiment's whole input.
    pub(super) fn whole(input: &'a Input, experiment: &SizeExperiment<'a>) -> Result<Self, SimulateError> {
        let SizeExperiment { profile, scale, seed, .. } = *experiment;
        let mut replay = Replay::new(&input.stream, &input.ranges, profile, scale, seed, INTERVALS)?;
        replay.stop = experiment.stop;
        if let Some(length) = experiment.length {
            let accesses = input.stream.accesses.len() as u64;
            let long = Long::new(length, accesses, replay.fixed(true).end)?;
            replay = replay.lengthened(long.at_most(ROUNDS.max(ROUND_ACCESSES / accesses)));
        }
        Ok(Self::over(replay))
    }

    /// Prepares as long runs over a stream that holds one in `one_in` of its pages.
    pub(super) fn sample(&self, stream: &'a Stream, one_in: u32, seed: u64) -> Result<Self, SimulateError> {
        let Replay { profile, ranges, scale, long, .. } = self.replay;
        // Fewer pages at the same density: a window holds as many samples of a page as in the whole.
        let smaller = f64::from(one_in);
        let scale = Scale { footprint: scale.footprint * smaller, time: scale.time * smaller };
        let mut replay = Replay::new(stream, ranges, profile, scale, seed, INTERVALS)?;
        replay.long = long.map(|long| long.thinned(smaller));
        replay.stop = self.replay.stop;
        Ok(Self::over(replay))
    }

    fn over(replay: Replay<'a>) -> Self {
        let fixed = |fast| {
            let finished = replay.fixed(fast);
            time(finished.end, finished.rounds.as_ref())
        };
        let all_fast = fixed(true);
        let all_slow = slowdown(fixed(false), all_fast);
        Self { replay, all_fast, all_slow }
    }

    /// Returns the rounds of a run: asked for, and simulated at most.
    pub(super) fn rounds(&self) -> Option<(u64, u64)> {
        self.replay.long.map(|long| (long.asked(Nanos(0)), long.simulated(Nanos(0))))
    }

    pub(super) fn scaled(&self, parameters: &Parameters) -> Result<Scaled, SimulateError> {
        self.replay.scaled(parameters)
    }

    pub(super) fn slowdown(
        &self,
        entry: &Entry,
        parameters: &Parameters,
        fast: Pages,
    ) -> Result<f64, SimulateError> {
        let end = match entry.kind {
            Kind::Policy(build) => {
                let scaled = self.replay.scaled(parameters)?;
                let mut policy = build(&scaled.parameters, &self.replay.setup(fast))?;
                let (host, _) = self.replay.policy(fast, policy.as_mut(), &scaled)?;
                time(host.processor.now(), host.rounds.as_ref())
            }
            Kind::Bound(Bound::AllFast) => self.all_fast,
            Kind::Bound(Bound::AllSlow) => return Ok(self.all_slow),
            Kind::Bound(bound) => {
                let finished = replay_bound(&self.replay, bound, fast);
                time(finished.end, finished.rounds.as_ref())
            }
        };
        Ok(slowdown(end, self.all_fast))
    }

    pub(super) fn slowdown_at(
        &self,
        entry: &Entry,
        parameters: &Parameters,
        share: f64,
    ) -> Result<f64, SimulateError> {
        let pages = self.replay.stream.pages.len() as u64;
        let fast = ((share * pages as f64).round() as u64).clamp(1, pages.max(1));
        self.slowdown(entry, parameters, Pages(fast))
    }
}

fn slowdown(time: Nanos, all_fast: Nanos) -> f64 {
    time.0 as f64 / all_fast.0.max(1) as f64
}
