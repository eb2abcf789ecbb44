//! Runs over one stream, whole or sub-sample, that give the points of curves.

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Nanos, Pages};
use isotherm_policies::{Bound, Entry, Kind};

use super::SizeExperiment;
use crate::bound_replay::replay_bound;
use crate::replay::Replay;
use crate::stream::Stream;
use crate::{INTERVALS, NamedRange, SimulateError};

pub(super) struct Runs<'a> {
    replay: Replay<'a>,
    pub(super) all_fast: Nanos,
    pub(super) all_slow: f64,
}

impl<'a> Runs<'a> {
    /// Prepares runs over a stream that holds one in `one_in` of the experiment's pages.
    pub(super) fn new(
        stream: &'a Stream,
        ranges: &'a [NamedRange],
        experiment: &SizeExperiment<'a>,
        one_in: u32,
        seed: u64,
    ) -> Result<Self, SimulateError> {
        let SizeExperiment { profile, scale, .. } = *experiment;
        // Fewer pages at the same density: a window holds as many samples of a page as in the whole.
        let smaller = f64::from(one_in);
        let scale = Scale { footprint: scale.footprint * smaller, time: scale.time * smaller };
        let replay = Replay::new(stream, ranges, profile, scale, seed, INTERVALS)?;
        let all_fast = replay.fixed(true).end;
        let all_slow = slowdown(replay.fixed(false).end, all_fast);
        Ok(Self { replay, all_fast, all_slow })
    }

    pub(super) fn slowdown(
        &self,
        entry: &Entry,
        parameters: &Parameters,
        fast: Pages,
    ) -> Result<f64, SimulateError> {
        let end = match entry.kind {
            Kind::Policy(build) => {
                let mut parameters = parameters.clone();
                parameters.scale(self.replay.scale);
                let mut policy = build(&parameters, &self.replay.setup(fast))?;
                self.replay.policy(fast, policy.as_mut())?.0.processor.now()
            }
            Kind::Bound(Bound::AllFast) => self.all_fast,
            Kind::Bound(Bound::AllSlow) => return Ok(self.all_slow),
            Kind::Bound(bound) => replay_bound(&self.replay, bound, fast).end,
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
