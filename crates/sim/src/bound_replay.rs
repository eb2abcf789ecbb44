//! The replay of a stream under a bound.

use isotherm_core::Pages;
use isotherm_policies::Bound;

use crate::bounds::OraclePlacement;
use crate::paying_oracle;
use crate::replay::{Finished, Replay};
use crate::soar;

/// Replays under a bound with `fast` pages in the first tier.
pub(crate) fn replay_bound(replay: &Replay<'_>, bound: Bound, fast: Pages) -> Finished {
    match bound {
        Bound::AllFast => replay.fixed(true),
        Bound::AllSlow => replay.fixed(false),
        Bound::Oracle => replay.placed(OraclePlacement::new(replay.ranks(), replay.stream.pages.len(), fast)),
        Bound::PayingOracle => paying_oracle::run(replay, fast),
        Bound::Soar => soar::run(replay, fast),
        Bound::Belady => replay.placed(replay.belady(fast).placement()),
    }
}
