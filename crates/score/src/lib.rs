//! The scoreboard: every comparison of the five papers as data, run in the simulator and judged.
//!
//! A file of `figures/` holds one paper: its machine, its workloads and systems in our names, and its
//! comparisons with their printed figures and claimed orderings. [`Plan`] gathers the replays that the
//! comparisons of a [`Request`] need, each once. [`Plan::run`] generates one stream at a time and replays it
//! under all policies that need it. [`score()`] compares the results with the paper and fills a
//! [`Scoreboard`]; [`compare`] does all of this:
//!
//! ```
//! use isotherm_score::{Mode, Request, compare};
//!
//! // Memory of the systems' own structures: they are built, and nothing is run.
//! let request = Request::new(None, Some("hybridtier.table4"), Mode { quick: true, seed: 1 })?;
//! let board = compare(&request, "example", &mut |_| ());
//! let comparison = &board.papers[0].comparisons[0];
//! assert_eq!(comparison.tally.judged(), comparison.orderings.len());
//! # Ok::<(), isotherm_score::UnknownName>(())
//! ```
//!
//! No code names a paper, a workload or a policy: one that does not exist yet, or cannot be expressed,
//! becomes a row that says so. See `docs/reference/scoreboard-method.md`.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

mod adaptation;
mod effect;
mod evidence;
mod figures;
mod judge;
mod key;
mod metadata;
mod metric;
mod outcome;
pub mod pace;
mod plan;
mod probe;
mod request;
mod run;
mod scoreboard;
mod stalls;
mod table;
mod update;
mod values;

pub use figures::{Comparison, Effect, Paper, Predictor, UnknownName, papers};
pub use metric::Metric;
pub use plan::compare;
pub use request::{Mode, Request};
pub use run::{Plan, Progress, Results};
pub use scoreboard::{
    Cell, EffectRow, EffectScore, Gain, Judged, PaperScore, Proof, Row, RunFacts, Scoreboard, Scored, System,
    Tally, Tried, Updated, Verdict,
};
pub use table::score;
pub use update::NotTheSame;
