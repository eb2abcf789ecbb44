//! The operating system boundary: topology, access sources, page placement and migration on Linux.
//!
//! A live run joins four parts: [`topology`] tells which nodes form which tier, access sources ([`source`])
//! tell which addresses are used, [`memory`] tells where pages are and moves them, and [`process`] follows
//! the program and its children. All `unsafe` code is in [`sys`]. No module names a policy.
//!
//! ```
//! use isotherm_linux::memory::maps::MapsReader;
//! use isotherm_linux::memory::nodes::{Kernel, NodeReader, Residence};
//! use isotherm_linux::process::{Pid, ProcRoot};
//!
//! let (page, this) = (vec![1u8; 4096], Pid(std::process::id()));
//! let address = page.as_ptr() as u64;
//! let mut mappings = Vec::new();
//! MapsReader::new(ProcRoot::default()).read(this, &mut mappings)?;
//! assert!(mappings.iter().any(|mapping| (mapping.start..mapping.end).contains(&address)));
//! let mut places = Vec::new();
//! // Kernels without NUMA have no `move_pages`.
//! if NodeReader::new(Kernel).locate(this, &[address], &mut places).is_ok() {
//!     assert!(matches!(places[0], Residence::Node(_)));
//! }
//! # Ok::<(), isotherm_linux::LinuxError>(())
//! ```
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

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
pub use sys::{HugePages, HugePagesOrEnd};
