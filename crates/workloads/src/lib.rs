//! The papers' applications: the real algorithm over a [`Memory`], seeded and scalable.
//!
//! A [`Workload`] of the registry builds a [`Program`], which runs on any [`Memory`]. The [`MissRecorder`] is
//! the memory that keeps the accesses that miss the last-level cache, in the trace's format. The same
//! parameters and seed give the same rows.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use isotherm_workloads::{Limits, MissRecorder, find};
//!
//! let workload = find("gups").unwrap();
//! let mut parameters = workload.parameters();
//! parameters.set("preset", "test").unwrap();
//! let program = workload.build(&parameters, 42).unwrap();
//! let cache = workload.cache(program.footprint());
//! let mut stores = 0;
//! let mut recorder = MissRecorder::new(cache, Limits { misses: 1000, ..Limits::NONE }, |rows| {
//!     stores += rows.iter().filter(|row| row.store).count();
//!     ControlFlow::Continue(())
//! });
//! program.run(&mut recorder);
//! assert_eq!(recorder.misses(), 1000);
//! assert_eq!(recorder.finish().allocations()[0].context, "gups table");
//! assert_eq!(stores, 1000, "the table is filled first");
//! ```

#![forbid(unsafe_code)]

mod alias;
mod apps;
mod memory;
mod pace;
mod permutation;
mod presets;
mod profile;
mod program;
mod random;
mod registry;
mod workload;
mod zipf;

pub(crate) use alias::AliasTable;
pub use apps::ALL;
pub(crate) use apps::XEON_4314;
pub(crate) use memory::heap::{Heap, NULL};
pub use memory::{
    AddressSpace, Allocation, CountingMemory, Layout, Limits, Memory, MissRecorder, NativeMemory, Token,
};
pub(crate) use memory::{Array, LINE, LastLine, LayoutSettings, WORD};
pub use pace::{Incomparable, Original, Pace, Source};
pub(crate) use permutation::Permutation;
pub use presets::{PAPER_PRESET, TEST_PRESET};
pub(crate) use presets::{Values, paper, test};
pub use profile::PageProfile;
pub use program::Program;
pub use random::{Probability, Random, mix};
pub use registry::find;
pub(crate) use workload::Built;
pub use workload::{ObjectSize, WAYS, Workload, WorkloadError};
pub use zipf::Zipf;
