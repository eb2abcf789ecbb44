//! The replay of a stream under a bound.

use isotherm_core::Pages;
use isotherm_policies::Bound;

use crate::bounds::{BeladyPlacement, NextUses, OraclePlacement};
use crate::paying_oracle;
use crate::replay::{Finished, Replay};
use crate::soar;

/// Replays under a bound with `fast` pages in the first tier.
pub(crate) fn replay_bound(replay: &Replay<'_>, bound: Bound, fast: Pages) -> Finished {
    match bound {
        Bound::AllFast => replay.fixed(true).clone(),
        Bound::AllSlow => replay.fixed(false).clone(),
        Bound::Oracle => {
            let pages = replay.stream.pages.len();
            replay.placed(OraclePlacement::new(replay.ranks(), pages, &replay.levels(fast)))
        }
        Bound::PayingOracle => paying_oracle::run(replay, fast),
        Bound::Soar => soar::run(replay, fast),
        Bound::Belady => {
            let belady = replay.belady(&NextUses::of(replay.stream), fast);
            replay.placed(BeladyPlacement::new(&belady))
        }
    }
}
