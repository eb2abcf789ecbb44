//! The operating system boundary: what Isotherm asks of Linux, and the only crate beside the allocator, the recorder's
//! plugin and the preloaded library that may be `unsafe`.
//!
//! A live run joins four things: the [`topology`] says which nodes are which tier, access sources ([`source`]) say
//! which addresses are used, [`memory`] says where pages are and moves them, and [`process`] follows the program and
//! its children.

pub mod accessed_bits;
pub mod clock;
pub mod devices;
mod error;
pub mod files;
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
