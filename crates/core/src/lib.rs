//! Isotherm's vocabulary, the [`Host`] and [`Policy`] traits, and the one engine loop that joins them.
//!
//! A *policy* decides which pages belong in the fast tier. A *host* is the machine under it: a simulator, a
//! virtual machine or a live process. Both meet only here, so the same policy source runs on every host.
//! Nothing in this crate performs I/O, reads a clock or starts a thread.
//!
//! Without the feature `host` it holds what policies use, and depends on no other crate.
//!
//! ```
//! use isotherm_core::*;
//!
//! /// A policy that samples loads and moves nothing.
//! struct Idle;
//!
//! impl Policy for Idle {
//!     fn signals(&self) -> Signals { Signals::NONE.with(Signal::LoadSamples) }
//!     fn sampling(&self) -> Sampling {
//!         Sampling::loads(SamplingRate::Period(1000), SamplingScope::AllTiers, 512, Nanos::SECOND)
//!     }
//!     fn observe(&mut self, _: &SampleBatch, _: &mut dyn View) {}
//!     fn step(&mut self, _: Nanos, _: &mut dyn View, _: &mut Plan) {}
//!     fn metadata(&self) -> Bytes { Bytes(0) }
//! }
//!
//! // The engine, `run`, refuses a host that lacks a signal.
//! let missing: Vec<_> = Idle.signals().missing(Signals::NONE).collect();
//! assert_eq!(missing, [Signal::LoadSamples]);
//! ```

#![forbid(unsafe_code)]

mod access;
mod batch;
#[cfg(feature = "host")]
pub mod cache;
mod device;
#[cfg(feature = "host")]
mod engine;
#[cfg(feature = "host")]
mod fast_limit;
mod histogram;
mod host;
mod interleave;
#[cfg(feature = "host")]
pub mod live_result;
#[cfg(feature = "host")]
pub mod machine_status;
#[cfg(feature = "host")]
pub mod manifest;
#[cfg(feature = "host")]
pub mod names;
pub mod parameters;
mod plan;
mod policy;
mod signals;
mod units;

pub use access::{Counters, HintFault, MAX_TIERS, Operation, PageId, PageSize, Sample, TierCounters, TierId};
pub use batch::{SampleBatch, Spent};
pub use device::{DeviceReading, DeviceReport, DeviceRequest, DeviceTraffic};
#[cfg(feature = "host")]
pub use engine::{EngineError, EngineStatistics, run};
#[cfg(feature = "host")]
pub use fast_limit::{FastLimit, FastLimitError};
pub use histogram::{Bin, Histogram};
pub use host::{Host, View};
pub use interleave::{Placing, Weights, best_shares};
pub use plan::{Copying, MOVED_AT_ONCE, Move, MoveStatus, Outcome, Plan, Reclaim, Work};
pub use policy::{Allocation, Gauge, MigrationContext, Policy, Record, Setup};
pub use signals::{Sampling, SamplingRate, SamplingScope, Signal, Signals};
pub use units::{Bytes, Cycles, Nanos, Pages, ParseUnitError, parse_count, parse_number, parse_share};
