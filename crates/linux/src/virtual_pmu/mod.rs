//! Access source over the lab's virtual PMU, a device to which the QEMU plugin writes samples and counters.
//!
//! `device.rs` finds it by its PCI id and maps its memory. `btf.rs` and `symbols.rs` find where this kernel
//! keeps the current task, and `mailbox.rs` tells the plugin, so that it can name processes. `handle.rs`
//! sends requests to the plugin; `source.rs` is the [`crate::source::AccessSource`] over it, and `shared.rs`
//! one of which several engines have parts.

mod btf;
mod device;
mod frequency;
mod handle;
mod mailbox;
mod shared;
mod source;
mod symbols;
#[cfg(test)]
mod tests;
mod timeline;
mod totals;

#[cfg(fuzzing)]
pub use btf::fuzz as fuzz_btf;
pub use device::{is_present, memory_file};
pub use handle::VirtualPmu;
pub use shared::SharedVirtualPmu;
pub use source::VirtualPmuSource;
#[cfg(fuzzing)]
pub use symbols::fuzz as fuzz_symbols;
