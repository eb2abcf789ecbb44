//! Defines the lab: a real Linux kernel with two memory tiers in a virtual machine, in which any program of the host runs
//! under a tiering policy or under the kernel's own tiering.
//!
//! A [`machine::Machine`] is data, a [`job::Job`] says what its guest runs, [`session::run`] boots it and waits,
//! [`counts::Counts`] is what the guest's kernel has counted meanwhile. `docs/lab.md` has the picture.

#![forbid(unsafe_code)]

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

pub use error::LabError;
