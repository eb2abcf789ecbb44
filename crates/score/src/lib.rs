//! The scoreboard: every comparison of the five papers as data, run in the simulator and judged.
//!
//! A file of `figures/` holds one paper: its machine, its workloads and systems in our names, and its comparisons with the
//! figures that it prints and the orderings that it claims. [`Plan`] gathers the replays that the comparisons of a
//! [`Request`] need, each once; [`Plan::run`] generates one stream at a time and replays it under all that need it;
//! [`score`] compares what came of it with the paper and fills a [`Scoreboard`].
//!
//! Nothing here knows a paper, a workload or a policy by name: what does not exist yet, or is not expressible, is a row that
//! says so. `docs/scoreboard-method.md` says how the result is read and how a comparison is added.

#![forbid(unsafe_code)]

mod adaptation;
mod catalogue;
mod effect;
mod evidence;
mod figures;
mod judge;
mod key;
mod metadata;
mod metric;
mod outcome;
mod plan;
mod probe;
mod run;
mod scoreboard;
mod stalls;
mod table;
mod update;
mod values;

pub use figures::{Comparison, Effect, Paper, UnknownName, papers};
pub use metric::Metric;
pub use plan::{Mode, Plan, Request, compare};
pub use run::{Progress, Results};
pub use scoreboard::{
    Cell, EffectRow, EffectScore, Gain, Judged, PaperScore, Proof, Row, RunFacts, Scoreboard, Scored, System,
    Tally, Tried, Updated, Verdict,
};
pub use stalls::Predictor;
pub use table::score;
pub use update::NotTheSame;
