//! The replay of a stream under a bound.

use isotherm_core::Pages;
use isotherm_policies::Bound;

use crate::bounds::{BeladyPlacement, OraclePlacement};
use crate::paying_oracle;
use crate::replay::{Finished, Replay};
use crate::soar;

/// Replays under a bound with `fast` pages in the first tier.
pub(crate) fn replay_bound(replay: &Replay<'_>, bound: Bound, fast: Pages) -> Finished {
    match bound {
        Bound::AllFast => replay.fixed(true),
        Bound::AllSlow => replay.fixed(false),
        Bound::Oracle => {
            let pages = replay.stream.pages.len();
            replay.placed(OraclePlacement::new(replay.ranks(), pages, &replay.levels(fast)))
        }
        Bound::PayingOracle => paying_oracle::run(replay, fast),
        Bound::Soar => soar::run(replay, fast),
        Bound::Belady => replay.placed(BeladyPlacement::new(&replay.belady(fast))),
    }
}
