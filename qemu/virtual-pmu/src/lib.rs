//! The lab's virtual PMU: what the QEMU plugin and the guest tell each other through shared memory.
//!
//! The memory is BAR 2 of an `ivshmem-plain` device ([`PCI_VENDOR`], [`PCI_DEVICE`]), a file that the plugin
//! maps, too. It is plain memory to both: nothing traps, and every word is an [`AtomicU64`] in little-endian
//! order.
//!
//! | bytes | content | written by |
//! |---|---|---|
//! | 0.. | identity, state, ring positions, control, mailbox: [`layout::word`] | see there |
//! | 4 KiB.. | counters, behind a sequence number: [`Snapshot`] | plugin |
//! | 8 KiB.. | filter: thread group ids, at most [`layout::FILTER_ENTRIES`] | guest |
//! | upper half | ring of [`Record`]s of 32 bytes | plugin |
//!
//! The plugin's side is [`Device`], the guest's [`Driver`]. The guest changes control words, then rings the
//! doorbell. The plugin looks at it with every access of user-mode code that it models, applies all changes
//! at once and echoes the doorbell's value. Samples go through the ring, which drops and counts those that do
//! not fit; counters are consistent, as of the end of a block of misses or of the last doorbell.
//!
//! Neither side trusts the other's words: an impossible position or size counts as a full or an empty ring.
//!
//! ```
//! use isotherm_virtual_pmu::{Control, Device, Driver, Identity, Prices, Process, Record, layout::MIN_BYTES};
//! use std::sync::atomic::AtomicU64;
//!
//! let memory: Vec<AtomicU64> = (0..MIN_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
//! let mut plugin = Device::new(&memory[..], Identity { tiers: 2, vcpus: 1, prices: Prices::default() })?;
//! let mut guest = Driver::open(&memory[..])?;
//!
//! guest.set_control(Control { counting: true, ..Control::default() });
//! let doorbell = guest.ring();
//! assert!(plugin.control().counting);
//! plugin.answer(plugin.doorbell());
//! assert!(guest.is_answered(doorbell));
//!
//! let process = Process::Tgid(7);
//! let (address, time, tier, store) = (0x1000, 5, 1, false);
//! let miss = Record { address, process, time, tier, store, vcpu: 0, latency: 90, weight: 100 };
//! assert!(plugin.push(miss));
//! assert_eq!(guest.pop(), Some(miss));
//! # Ok::<(), isotherm_virtual_pmu::LayoutError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

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
pub use device::{Device, Identity, Prices};
pub use driver::Driver;
pub use layout::LayoutError;
pub use record::{Process, Record};

pub const PCI_VENDOR: u16 = 0x1af4;
pub const PCI_DEVICE: u16 = 0x1110;

/// Shared memory, as words.
pub trait Words {
    /// Returns all words; the same ones at each call.
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
