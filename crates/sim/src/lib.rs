//! The simulator: a modelled machine on which the engine runs over recorded or generated accesses.
//!
//! [`StreamBuilder`] turns rows of a trace or a workload into dense pages once; [`simulate()`] replays them under every
//! policy and bound, on the machine that a [`Profile`] describes, and fills a [`Report`].

#![forbid(unsafe_code)]

mod bounds;
mod cores;
mod cost_model;
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
mod profile;
mod replay;
mod result;
mod sampler;
mod simulate;
mod size;
mod slots;
mod soar;
mod stream;
mod streamer;
mod summary;
mod testbed;
mod thread_model;
mod tiers;
mod workload;

pub use cost_model::{CostModel, Miss, MissCost};
pub use criticality::{
    Criticality, PageStall, TierStall, Truth, WindowStall, pearson, spearman, stall_window,
};
pub use fast_size::FastSize;
pub use profile::{CoreClock, CoreProfile, Costs, DeviceProfile, Profile, ProfileError, TierProfile};
pub use result::{
    Charges, FailedMoves, Heatmap, InputSummary, Interval, MachineNumber, MachineSummary, Region, Report,
    RunResult,
};
pub use simulate::{Experiment, INTERVALS, Input, SimulateError, simulate};
pub use size::{
    FullRun, Knee, Outcome, Point, PolicySize, Recommended, Sampling, SizeExperiment, SizeReport, SizedInput,
    size,
};
pub use stream::{Access, MAX_ACCESSES, Stream, StreamBuilder, StreamError};
pub use summary::NamedRange;
pub use testbed::Testbed;
pub use workload::{LoadError, Loaded, load_workload, run_workload};
