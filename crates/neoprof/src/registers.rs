//! The register map: Table I of the paper, and further registers at offsets that it leaves free.
//!
//! Registers are 64 bits wide. Other offsets read as 0 and ignore writes.

/// Read: [`IDENTITY_VALUE`]; all ones where no device answers.
pub const IDENTITY: u64 = 0x000;
/// Read: the sizes; see [`Parameters::to_word`](crate::Parameters::to_word).
pub const PARAMETERS: u64 = 0x008;
/// Read: the seed of the hash functions.
pub const SEED: u64 = 0x010;
/// Write 1: forgets everything counted, buffered and captured; threshold and mode stay.
pub const RESET: u64 = 0x100;
/// Read and write: the threshold that a hot page's estimate exceeds. A value that counters cannot reach
/// becomes the greatest count, which no estimate exceeds; that is also the value after power-on.
pub const SET_THRESHOLD: u64 = 0x200;
/// Read: the number of pages in the hot-page buffer.
pub const GET_NR_HOT_PAGE: u64 = 0x300;
/// Read: removes the oldest page from the hot-page buffer; [`EMPTY`] if there is none.
pub const GET_HOT_PAGE: u64 = 0x400;
/// Read: cycles of the memory controller since the last reset.
pub const GET_NR_SAMPLE: u64 = 0x500;
/// Read: read requests since the last reset.
pub const GET_RD_CNT: u64 = 0x600;
/// Read: write requests since the last reset.
pub const GET_WR_CNT: u64 = 0x700;
/// Write 1: captures the histogram of the first lane's counters.
pub const SET_HIST_EN: u64 = 0x800;
/// Read: the number of unread bins of the captured histogram.
pub const GET_NR_HIST_BIN: u64 = 0x900;
/// Read: removes the next bin, from the lowest counts up; [`EMPTY`] if there is none.
pub const GET_HIST: u64 = 0xa00;
/// Read and write: [`MODE_WRITES`] or 0.
pub const MODE: u64 = 0xb00;
/// Read: [`STATUS_BUSY`], [`STATUS_CLEARING`].
pub const STATUS: u64 = 0xc00;
/// Read: accesses since the last reset to a hot page that found no room; the next one with room reports it.
pub const HOT_REFUSED: u64 = 0xd00;
/// Read: accesses since the last reset that were lost because the core's input buffer was full.
pub const ACCESSES_DROPPED: u64 = 0xd08;

/// Identity of version 1: "NEOPROF" and the version.
pub const IDENTITY_VALUE: u64 = 0x4e45_4f50_524f_4601;
/// Value read from an empty buffer.
pub const EMPTY: u64 = u64::MAX;
/// Bit of [`MODE`]: the sketch counts writes as well as reads.
pub const MODE_WRITES: u64 = 1;
/// Bit of [`STATUS`]: accesses are still in the pipeline.
pub const STATUS_BUSY: u64 = 1;
/// Bit of [`STATUS`]: the last reset's valid bits are being cleared. Counting continues; a reset waits.
pub const STATUS_CLEARING: u64 = 2;
/// Greatest value of the counters of cycles, requests and losses, which saturate.
pub const COUNTER_MAX: u64 = (1 << 48) - 1;
/// Size of the register block in bytes.
pub const BYTES: u64 = 0x1000;
