//! The lab's virtual PMU as an access source: a device whose memory the QEMU plugin writes samples and counters to.
//!
//! `device.rs` finds it by its PCI id and maps its memory; `btf.rs` and `symbols.rs` find out where this kernel keeps the
//! current task, which `mailbox.rs` tells the plugin, so that it can name processes; `handle.rs` asks the plugin and
//! waits for its answer; `source.rs` is the [`crate::source::AccessSource`] over it.

mod btf;
mod device;
mod frequency;
mod handle;
mod mailbox;
mod source;
mod symbols;
#[cfg(test)]
mod tests;
mod timeline;
mod totals;

pub use device::is_present;
pub use device::memory_file;
pub use handle::{Scope, VirtualPmu};
pub use source::VirtualPmuSource;
