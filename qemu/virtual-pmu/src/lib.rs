//! The lab's virtual PMU: what the QEMU plugin and the guest say to each other through shared memory.
//!
//! The memory is BAR 2 of an `ivshmem-plain` device ([`PCI_VENDOR`], [`PCI_DEVICE`]), a file that the plugin maps too.
//! It is plain memory to both: nothing traps, and every word is an [`AtomicU64`] in little-endian order.
//!
//! | bytes | what | written by |
//! |---|---|---|
//! | 0.. | identity, state, ring positions, control, mailbox: [`layout::word`] | see there |
//! | 4 KiB.. | counters, behind a sequence number: [`Snapshot`] | plugin |
//! | 8 KiB.. | filter: thread group ids, at most [`layout::FILTER_ENTRIES`] | guest |
//! | upper half | ring of [`Record`]s of 32 bytes | plugin |
//!
//! The plugin's side is [`Device`], the guest's [`Driver`]. **Guest to plugin**: the guest changes control words, then rings
//! the doorbell; the plugin looks at it with every access of user-mode code that it models, takes everything over at once
//! and echoes the doorbell's value. So a guest that waits for the echo needs no more than to read it. **Plugin to guest**:
//! samples through the ring, which drops what does not fit and counts it; counters as a whole, as of the end of a block
//! of misses or of the last doorbell.
//!
//! Neither side trusts the other's words: a position or a size that cannot be is taken as a full or an empty ring.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod control;
mod counters;
mod device;
mod driver;
pub mod layout;
mod record;
mod ring;

use core::sync::atomic::AtomicU64;

pub use control::{Control, Mailbox};
pub use counters::{Snapshot, TierCount};
pub use device::{Device, Identity};
pub use driver::Driver;
pub use layout::LayoutError;
pub use record::{Process, Record};

/// PCI vendor of the device.
pub const PCI_VENDOR: u16 = 0x1af4;
/// PCI device number of the device.
pub const PCI_DEVICE: u16 = 0x1110;

/// The shared memory, as words.
pub trait Words {
    /// All of its words; the same at each call.
    fn words(&self) -> &[AtomicU64];
}

impl Words for [AtomicU64] {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

impl<W: Words + ?Sized> Words for &W {
    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }
}
