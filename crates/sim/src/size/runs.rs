//! Defines the runs over one stream, whole or sub-sample, that curves are made of.

use isotherm_core::parameters::{Parameters, Scale};
use isotherm_core::{Nanos, Pages};
use isotherm_policies::{Bound, Entry, Kind};

use super::SizeExperiment;
use crate::bounds::{Belady, IntervalRanks, OraclePlacement, next_uses};
use crate::replay::Replay;
use crate::simulate::oracle_length;
use crate::stream::Stream;
use crate::{INTERVALS, NamedRange, SimulateError, soar};

/// One stream on the machine, and what all runs over it share.
pub(super) struct Runs<'a> {
    replay: Replay<'a>,
    ranks: Option<IntervalRanks>,
    next_uses: Vec<u32>,
    /// Modelled time with all memory fast.
    pub(super) all_fast: Nanos,
    /// Slowdown with all memory slow.
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
        bounds: bool,
    ) -> Self {
        let SizeExperiment { profile, scale, .. } = *experiment;
        // Fewer pages at the same density: a window holds as many samples of a page in a sub-sample as in the whole.
        let smaller = f64::from(one_in);
        let scale = Scale { footprint: scale.footprint * smaller, time: scale.time * smaller };
        let interval_length = stream.accesses.len().div_ceil(INTERVALS).max(1);
        let replay = Replay { stream, profile, ranges, seed, scale, interval_length };
        let all_fast = replay.fixed(true).end;
        let all_slow = slowdown(replay.fixed(false).end, all_fast);
        let oracle = || IntervalRanks::new(stream, oracle_length(stream, interval_length), false);
        Self {
            replay,
            ranks: bounds.then(oracle),
            next_uses: if bounds { next_uses(stream) } else { Vec::new() },
            all_fast,
            all_slow,
        }
    }

    /// The slowdown of a policy or bound with a fast tier of `fast` pages. Bounds need `bounds` at the start.
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
                self.replay.policy(fast, policy.as_mut())?.0.machine.now()
            }
            Kind::Bound(Bound::AllFast) => self.all_fast,
            Kind::Bound(Bound::AllSlow) => return Ok(self.all_slow),
            Kind::Bound(Bound::Oracle) => match &self.ranks {
                Some(ranks) => {
                    let pages = self.replay.stream.pages.len();
                    self.replay.bound(OraclePlacement::new(ranks, pages, fast)).end
                }
                None => self.all_fast,
            },
            Kind::Bound(Bound::Soar) => soar::run(&self.replay, fast).end,
            Kind::Bound(Bound::Belady) => {
                self.replay.bound(&Belady::new(self.replay.stream, &self.next_uses, fast)).end
            }
        };
        Ok(slowdown(end, self.all_fast))
    }

    /// The slowdown at a share of the stream's pages.
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
