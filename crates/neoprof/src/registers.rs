//! Defines the register map: Table I of the paper at its offsets, and what it lacks at offsets that it leaves free.
//!
//! Registers are 64 bits wide. Reading an offset that is not listed gives 0, writing it does nothing.

/// Read: [`IDENTITY_VALUE`]. All ones where no device answers.
pub const IDENTITY: u64 = 0x000;
/// Read: the sizes, see [`Parameters::to_word`](crate::Parameters::to_word).
pub const PARAMETERS: u64 = 0x008;
/// Read: what the hash functions are drawn from.
pub const SEED: u64 = 0x010;
/// Write 1: everything counted, buffered and captured is forgotten; threshold and mode stay.
pub const RESET: u64 = 0x100;
/// Read and write: a page is hot when its estimate exceeds this. What a counter cannot reach becomes its greatest
/// value, which none exceeds; so it stands after power-on.
pub const SET_THRESHOLD: u64 = 0x200;
/// Read: the pages in the hot-page buffer.
pub const GET_NR_HOT_PAGE: u64 = 0x300;
/// Read: takes the oldest page out of the hot-page buffer; [`EMPTY`] when there is none.
pub const GET_HOT_PAGE: u64 = 0x400;
/// Read: cycles of the memory controller since the last reset.
pub const GET_NR_SAMPLE: u64 = 0x500;
/// Read: read requests since the last reset.
pub const GET_RD_CNT: u64 = 0x600;
/// Read: write requests since the last reset.
pub const GET_WR_CNT: u64 = 0x700;
/// Write 1: captures the histogram of the first lane's counters.
pub const SET_HIST_EN: u64 = 0x800;
/// Read: bins of the captured histogram that were not read yet.
pub const GET_NR_HIST_BIN: u64 = 0x900;
/// Read: takes the next bin, from the lowest counts up; [`EMPTY`] when there is none.
pub const GET_HIST: u64 = 0xa00;
/// Read and write: [`MODE_WRITES`] or 0.
pub const MODE: u64 = 0xb00;
/// Read: [`STATUS_BUSY`], [`STATUS_CLEARING`].
pub const STATUS: u64 = 0xc00;
/// Read: accesses since the last reset that found a hot page but no room for it. The page is reported at its next
/// access with room.
pub const HOT_REFUSED: u64 = 0xd00;
/// Read: accesses since the last reset that were not counted in the sketch, since the core was behind by more than
/// its input buffer holds.
pub const ACCESSES_DROPPED: u64 = 0xd08;

/// The identity of version 1: "NEOPROF" and the version.
pub const IDENTITY_VALUE: u64 = 0x4e45_4f50_524f_4601;
/// What a buffer that has nothing answers.
pub const EMPTY: u64 = u64::MAX;
/// In [`MODE`]: the sketch counts writes too, not reads alone.
pub const MODE_WRITES: u64 = 1;
/// In [`STATUS`]: accesses are still on their way through the device.
pub const STATUS_BUSY: u64 = 1;
/// In [`STATUS`]: the valid bits left behind by the last reset are being cleared. Counting goes on meanwhile; another
/// reset waits for the end.
pub const STATUS_CLEARING: u64 = 2;
/// The greatest value of the counters of cycles, requests and losses; they stay there.
pub const COUNTER_MAX: u64 = (1 << 48) - 1;
/// The bytes of the register block.
pub const BYTES: u64 = 0x1000;
