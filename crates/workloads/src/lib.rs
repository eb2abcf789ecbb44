//! The papers' applications: the real algorithm over a [`Memory`], seeded and scalable.
//!
//! A [`Workload`] of the registry builds a [`Program`]; the program runs on any [`Memory`]. The [`MissRecorder`] is the
//! memory that keeps what misses the last-level cache, in the trace's format. Same parameters and seed, same rows.

#![forbid(unsafe_code)]

mod address_space;
mod alias;
mod array;
mod btree;
mod bwaves;
mod cachelib;
mod counting;
mod dataflow;
mod deepsjeng;
mod dict;
mod flexkvs;
mod gpt2;
mod graph;
mod gups;
mod heap;
mod last_line;
mod layout;
mod liblinear;
mod masim;
mod memory;
mod miss_recorder;
mod native_memory;
mod permutation;
mod profile;
mod random;
mod redis;
mod registry;
mod roms;
mod silo;
mod social_network;
mod specs;
mod xgboost;
mod xsbench;
mod xz;
mod zipf;

pub use address_space::{AddressSpace, Allocation};
pub use counting::CountingMemory;
pub use layout::Layout;
pub use memory::{Memory, Token};
pub use miss_recorder::{Limits, MissRecorder};
pub use native_memory::NativeMemory;
pub use profile::PageProfile;
pub use registry::{ALL, ObjectSize, PAPER_PRESET, Program, TEST_PRESET, Workload, WorkloadError, find};
