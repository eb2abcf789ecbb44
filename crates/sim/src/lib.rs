//! The simulator: a modelled machine on which the engine runs over recorded or generated accesses.
//!
//! [`StreamBuilder`] turns rows of a trace or a workload into dense pages once; [`simulate()`] replays them under every
//! policy and bound, on the machine that a [`Profile`] describes, and fills a [`Report`].

#![forbid(unsafe_code)]

mod bounds;
mod criticality;
mod device;
mod fast_size;
mod faults;
mod host;
mod lru;
mod machine;
mod pace;
mod page_tables;
mod placement;
mod replay;
mod result;
mod sampler;
mod simulate;
mod size;
mod soar;
mod stream;
mod summary;
mod testbed;
mod workload;

pub use criticality::{
    Criticality, PageStall, TierStall, Truth, WindowStall, pearson, spearman, stall_window,
};
pub use fast_size::FastSize;
pub use result::{Charges, FailedMoves, Heatmap, InputSummary, Interval, Region, Report, RunResult};
pub use simulate::{Experiment, INTERVALS, Input, SimulateError, simulate};
pub use size::{
    FullRun, Knee, Outcome, Point, PolicySize, Recommended, Sampling, SizeExperiment, SizeReport, SizedInput,
    size,
};
pub use stream::{Access, MAX_ACCESSES, Stream, StreamBuilder, StreamError};
pub use summary::NamedRange;
pub use testbed::Testbed;
pub use workload::{LoadError, Loaded, load_workload, run_workload};
