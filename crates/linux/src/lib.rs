//! The operating system boundary: topology, access sources, page placement and migration on Linux.
//!
//! A live run joins four parts: [`topology`] tells which nodes form which tier, access sources ([`source`])
//! tell which addresses are used, [`memory`] tells where pages are and moves them, and [`process`] follows
//! the program and its children. All `unsafe` code is in [`sys`]. No module names a policy.

pub mod accessed_bits;
pub mod clock;
pub mod devices;
mod error;
pub mod hint_faults;
pub mod memory;
pub mod perf;
pub mod process;
pub mod source;
#[allow(unsafe_code)]
pub mod sys;
pub mod topology;
pub mod virtual_pmu;

pub use error::LinuxError;
pub use sys::HugePages;
