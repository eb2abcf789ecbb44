//! The register map: offsets in bytes from the block's beginning, then from an instance's.
//!
//! After CXL 3.2, 8.2.8. Where its text allows two readings, these are those of Linux' proposed driver ("cxl:
//! CXL Hotness Monitoring Unit perf driver", J. Cameron, RFC of 2024-11-21) and of QEMU's emulation: the
//! unit's size is configured as a power of two of bytes, and bit n of the down-sampling factors is 2^n.

/// Bits 0 to 3 the version, 8 to 15 the number of instances.
pub const CAPABILITY: u64 = 0x00;
/// Bits 0 to 15: bytes from one instance to the next.
pub const INSTANCE_LENGTH: u64 = 0x08;
/// Where the first instance begins.
pub const FIRST_INSTANCE: u64 = 0x10;

/// Bits 8 to 13 what can be counted, 16 to 31 the longest epoch, 32 to 47 the shortest, 48 to 63 entries of
/// the hot list.
pub const CAPABILITIES: u64 = 0x00;
/// Bits 0 to 31 sizes of units (bit n: 2^(n+8) bytes), 32 to 47 down-sampling factors (bit n: 2^n), then
/// [`EPOCHS`] and [`ALWAYS_ON`].
pub const UNITS: u64 = 0x08;
/// Offset of the range bitmap from the instance.
pub const RANGE_BITMAP: u64 = 0x10;
/// Offset of the hot list from the instance.
pub const HOT_LIST: u64 = 0x18;
/// Bits 0 to 7 what to count, then [`ENABLE`] and [`RESET_COUNTERS`], 32 to 63 the threshold.
pub const CONFIGURATION: u64 = 0x40;
/// Bits 0 to 31 the unit's size as a power of two of bytes, 32 to 39 the down-sampling factor's power of two,
/// 40 to 47 the reporting mode, 48 to 51 the epoch's time scale, 52 to 63 how often that.
pub const UNIT_AND_EPOCH: u64 = 0x48;
/// Bit 0 enabled, 16 to 31 the operation in progress, 32 to 39 the width of a count, then [`OVERFLOW`].
pub const STATUS: u64 = 0x60;
/// 16 bits: the oldest entry that the host has not read; the host's.
pub const HEAD: u64 = 0x68;
/// 16 bits: the entry that comes next; the unit's while it is enabled.
pub const TAIL: u64 = 0x6a;

/// The version that this map describes.
pub const VERSION: u64 = 1;
/// Counts reads of memory that is not confidential.
pub const READS: u64 = 1;
/// Counts writes of it.
pub const WRITES: u64 = 2;
/// Counts both.
pub const READS_AND_WRITES: u64 = 3;
/// Bits of [`CAPABILITIES`] for [`READS`], [`WRITES`] and [`READS_AND_WRITES`].
pub const COUNTS: [(u64, u64); 3] = [(8, READS), (9, WRITES), (10, READS_AND_WRITES)];
/// Bit of [`CONFIGURATION`].
pub const ENABLE: u64 = 1 << 16;
/// Bit of [`CONFIGURATION`]: a command.
pub const RESET_COUNTERS: u64 = 1 << 17;
/// Bit of [`UNITS`]: reporting at the end of each epoch.
pub const EPOCHS: u64 = 1 << 48;
/// Bit of [`UNITS`]: reporting at once.
pub const ALWAYS_ON: u64 = 1 << 49;
/// Bit of [`UNIT_AND_EPOCH`]: the mode that reports at once; without it, at the end of each epoch.
pub const MODE_ALWAYS_ON: u64 = 1 << 40;
/// Bit of [`STATUS`]: the hot list had no room for an entry; cleared by writing 1.
pub const OVERFLOW: u64 = 1 << 40;
/// Bytes of the smallest unit, as a power of two.
pub const SMALLEST_UNIT: u32 = 8;
/// Bytes of memory for each bit of the range bitmap.
pub const RANGE: u64 = 256 << 20;
/// Time scales in nanoseconds, by their number.
pub const TIME_SCALES: [u64; 6] = [0, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Where the model's range bitmap begins: behind the last fixed register.
pub const RANGE_BITMAP_AT: u64 = 0x70;

/// First word of the shared memory that stands for a unit in a virtual machine, which has no register
/// locator. The block begins at [`STAND_IN_BLOCK`].
pub const STAND_IN: u64 = u64::from_be_bytes(*b"CXLCHMU\x01");
/// See [`STAND_IN`].
pub const STAND_IN_BLOCK: u64 = 0x1000;
/// Bytes of that memory: a page, and the longest instance, as a power of two.
pub const STAND_IN_BYTES: u64 = 128 << 10;

/// Returns bits `low` to `high` of a word.
#[must_use]
pub const fn bits(word: u64, low: u32, high: u32) -> u64 {
    word >> low & (u64::MAX >> (63 - (high - low)))
}

/// Returns the nanoseconds of an epoch: its time scale in the lowest four bits, then how often that; 0 for a
/// reserved scale.
#[must_use]
pub const fn epoch_ns(length: u64) -> u64 {
    let scale = bits(length, 0, 3) as usize;
    if scale < TIME_SCALES.len() { TIME_SCALES[scale] * bits(length, 4, 15) } else { 0 }
}
