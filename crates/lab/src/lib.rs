//! The lab: a real Linux kernel with several memory tiers in a virtual machine, in which any program of the
//! host runs under a tiering policy or under the kernel's own tiering.
//!
//! A [`machine::Machine`] describes the virtual machine, a [`job::Job`] the guest's work; [`session::run`]
//! starts the guest and waits for its end, and [`counts::Counts`] are its kernel's counters.
//! `docs/guide/lab.md` has a picture.
//!
//! ```
//! use isotherm_lab::layout::physical_ranges;
//! use isotherm_lab::machine::{HugePages, Machine};
//!
//! let text = Machine::builtin_text("small").expect("it comes with Isotherm");
//! let machine = Machine::parse(&text.replace("\"never\"", "\"always\""), "mine.toml")?;
//! assert_eq!((machine.name.as_str(), machine.huge_pages), ("mine", HugePages::Always));
//! // The slow node follows the fast one in physical memory.
//! assert_eq!(physical_ranges(&machine)[1][0].start, machine.nodes[0].size.0);
//! # Ok::<(), isotherm_lab::LabError>(())
//! ```
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

pub mod cache;
pub mod console;
pub mod counts;
pub mod cpio;
mod error;
mod initramfs;
pub mod job;
pub mod kernel_tiering;
pub mod layout;
pub mod machine;
pub mod measured;
mod packed;
pub mod plugin;
pub mod qemu;
pub mod result;
pub mod run_directory;
mod script;
pub mod session;
mod snapshot;

pub use error::LabError;
