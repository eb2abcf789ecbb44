//! CXL's hotness monitoring unit (CHMU; CXL 3.2, section 8.2.8): its registers, and a model of one instance.
//!
//! The specification defines the registers and leaves the counting open. This model has a counter for each
//! unit of memory, as QEMU's emulation has ("hw/cxl: Initial CXL Hotness Monitoring Unit Emulation",
//! J. Cameron, RFC v2, 2025); hardware may have fewer. It lacks interrupts, confidential memory, randomized
//! down-sampling and postponed insertion, and says so in its capabilities.
//!
//! ```
//! use isotherm_chmu::{Block, Model, Sizes, registers as at};
//! use isotherm_neoprof::{Registers, Request};
//!
//! let mut unit = Model::new(Sizes::of_memory(512 << 20))?;
//! let base = at::FIRST_INSTANCE;
//! unit.write(base + at::RANGE_BITMAP_AT, u64::MAX);
//! unit.write(base + at::UNIT_AND_EPOCH, 12 | at::MODE_ALWAYS_ON);
//! unit.write(base + at::CONFIGURATION, at::READS_AND_WRITES | at::ENABLE | 2 << 32);
//! unit.accesses(&[Request { page: 42, write: false }; 3]);
//! assert_eq!(unit.read_half(base + at::TAIL), 1, "its third access exceeded the threshold");
//! # Ok::<(), isotherm_chmu::SizeError>(())
//! ```

#![forbid(unsafe_code)]

mod model;
pub mod registers;

pub use model::{Model, SizeError, Sizes};

/// Registers of 16 bits beside those of 64, by their offset in bytes from the block's beginning.
pub trait Block: isotherm_neoprof::Registers {
    /// Reads the register of 16 bits at `offset` bytes.
    fn read_half(&mut self, offset: u64) -> u16;

    /// Writes the register of 16 bits at `offset` bytes.
    fn write_half(&mut self, offset: u64, value: u16);
}
