//! The simulator: a modelled machine on which the engine runs over recorded or generated accesses.
//!
//! [`StreamBuilder`] turns rows of a trace or a workload into dense pages once. [`simulate()`] replays them
//! under every policy and bound on the machine of a profile, and fills a [`Report`]:
//!
//! ```
//! # use std::ops::ControlFlow::Continue;
//! # use isotherm_core::PageSize;
//! use isotherm_sim::{Experiment, FastSize, INTERVALS, load_workload, simulate};
//!
//! let workload = isotherm_workloads::find("masim")?;
//! let mut parameters = workload.parameters();
//! parameters.set("preset", "test")?;
//! let loaded = load_workload(workload, parameters, PageSize::Base, 1, 200_000, &mut |_| Continue(()))?;
//! let policy = isotherm_policies::find("lru")?;
//! let experiment = Experiment {
//!     policies: vec![(policy, policy.parameters())],
//!     sizes: vec![FastSize::parse("1:1")?],
//!     profile: &isotherm_machine::Profile::builtin("pact")?,
//!     seed: 1,
//!     scale: loaded.scale,
//!     intervals: INTERVALS,
//!     version: "example",
//!     stop: None,
//! };
//! let run = &simulate(&loaded.input, &experiment, &|| ())?.runs[0];
//! assert!(0.3 < run.hit_ratio && run.hit_ratio <= run.belady_hit_ratio);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bound_replay;
mod bounds;
mod cache_hits;
mod compression;
mod criticality;
mod device;
mod error;
mod experiment;
mod fast_size;
mod faults;
mod host;
mod in_flight;
mod long;
mod lookups;
mod lru;
mod memory;
mod pace;
mod page_state;
mod page_table;
mod page_walk;
mod paying_oracle;
mod processor;
mod replay;
mod result;
mod sampler;
mod side_by_side;
mod simulate;
mod size;
mod soar;
mod stop;
mod stream;
mod summary;
mod testbed;
mod watched;
mod workload;

pub use cache_hits::{Algorithm, cache_hits};
pub use criticality::{
    Criticality, PageStall, TierStall, Truth, WindowStall, pearson, spearman, stall_window,
};
pub use error::SimulateError;
pub use experiment::{Experiment, INTERVALS, Input};
pub use fast_size::FastSize;
pub use long::Length;
pub use memory::{ACCESS_MEMORY, replay_memory};
pub use result::{
    Charges, FailedMoves, Heatmap, Held, InputSummary, Interval, LongRun, Region, Report, Round, RunResult,
    TimeParts, UNMAPPED,
};
pub use side_by_side::{Program, Share, Shared, Sharing, side_by_side};
pub use simulate::{simulate, simulate_long};
pub use size::{
    FullRun, Knee, Outcome, Point, PolicySize, Recommended, RunLength, Sampling, SizeExperiment, SizeReport,
    SizedInput, size,
};
pub use stream::{
    Access, CompressedShares, Kind, MAX_ACCESSES, RowsHash, Stream, StreamBuilder, StreamError,
};
pub use summary::NamedRange;
pub use testbed::{AllFast, Testbed};
pub use watched::Watched;
pub use workload::{LoadError, Loaded, load_workload, run_workload};
