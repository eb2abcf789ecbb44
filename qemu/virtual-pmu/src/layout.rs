//! Layout of the shared memory, word by word.

use core::sync::atomic::Ordering;

use crate::Words;

pub const MAGIC: u64 = u64::from_le_bytes(*b"ISOTHPMU");
/// Version of the layout; grows with every change.
pub const VERSION: u64 = 3;
pub const USUAL_BYTES: usize = 16 << 20;
/// Smallest memory that a layout fits in, in bytes.
pub const MIN_BYTES: usize = 64 << 10;
/// Maximum number of tiers: part of the layout, and smaller than a host's until the version changes.
pub const MAX_TIERS: usize = 8;
/// Thread group ids that the filter holds.
pub const FILTER_ENTRIES: usize = 1024;
pub const RECORD_WORDS: usize = 4;

/// Indices of words. The plugin writes those from 0 to 23 and from 512 to 1023, the guest the others.
pub mod word {
    /// Written last of the identity: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const BYTES: usize = 2;
    /// Offset of the ring in bytes.
    pub const RING_OFFSET: usize = 3;
    /// Records that the ring holds, a power of two.
    pub const RING_CAPACITY: usize = 4;
    pub const TIERS: usize = 5;
    pub const VCPUS: usize = 6;
    /// [`crate::Prices`] of the modelled machine, a word for each.
    pub const PRICES: usize = 10;

    /// Last doorbell answered.
    pub const ANSWERED: usize = 8;
    pub const EPOCH: usize = 9;

    /// Records written since the start.
    pub const HEAD: usize = 16;
    /// Samples that found the ring full, since the start.
    pub const LOST: usize = 17;
    /// Samples whose process was unknown, since the start.
    pub const UNRESOLVED: usize = 18;

    /// Records read since the start.
    pub const TAIL: usize = 24;

    /// Doorbell; grows with each change below.
    pub const DOORBELL: usize = 32;
    /// Epoch to begin, which restarts the counters.
    pub const WANTED_EPOCH: usize = 33;
    pub const FLAGS: usize = 34;
    /// Misses that count towards samples, bit `2 x tier + store`.
    pub const EVENTS: usize = 35;
    /// Entries of the filter; 0 for every user process.
    pub const FILTER_COUNT: usize = 36;

    /// Offset of the current task's address from the processor's base of per-CPU data.
    pub const CURRENT_TASK: usize = 40;
    /// Offset of the thread group id in a task; 0 while the mailbox is empty.
    pub const TASK_TGID: usize = 41;
    pub const TASK_PARENT: usize = 42;
    pub const TASK_THREAD: usize = 43;
    /// Thread that is neither counted nor sampled; 0 for none.
    pub const LEFT_OUT: usize = 44;

    /// Distance between sampled misses, 0 for no samples; a word for each tier, or the first for all.
    pub const PERIODS: usize = 48;

    /// Even while the counters are consistent.
    pub const SEQUENCE: usize = 512;
    /// First counter; see [`crate::Snapshot`].
    pub const COUNTERS: usize = 513;
    pub const TIER_COUNTERS: usize = 520;
    /// Words from one tier's counters to the next one's.
    pub const TIER_STRIDE: usize = 8;

    pub const FILTER: usize = 1024;
}

/// Bits of [`word::FLAGS`].
pub mod flag {
    pub const COUNTING: u64 = 1;
    pub const EACH_TIER: u64 = 2;
    /// Periods are exact; without it, each differs by up to an eighth.
    pub const EXACT: u64 = 4;
    pub const CHILDREN: u64 = 8;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the shared memory has {bytes} bytes; expected at least {MIN_BYTES}")]
    Small { bytes: usize },
    #[error("the shared memory begins with {found:#018x}; expected \"ISOTHPMU\": the plugin did not load")]
    Magic { found: u64 },
    #[error(
        "the plugin's layout has version {found}; expected {VERSION}: use plugin and isotherm of one build"
    )]
    Version { found: u64 },
    #[error("the shared memory says that {field} is {found}, which is not possible in {bytes} bytes")]
    Field { field: &'static str, found: u64, bytes: usize },
    #[error("there are {tiers} tiers; expected 1 to {MAX_TIERS}")]
    Tiers { tiers: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPlace {
    pub(crate) first: usize,
    /// Records that fit, a power of two.
    pub(crate) capacity: u64,
}

impl RingPlace {
    /// Returns the ring in a memory of `words` words: its upper half, rounded down to a power of two.
    pub(crate) fn of(words: usize) -> Result<Self, LayoutError> {
        let bytes = words * 8;
        if bytes < MIN_BYTES {
            return Err(LayoutError::Small { bytes });
        }
        let capacity = 1u64 << (words / 2 / RECORD_WORDS).ilog2();
        Ok(Self { first: words - capacity as usize * RECORD_WORDS, capacity })
    }

    pub(crate) fn read(memory: &impl Words) -> Result<Self, LayoutError> {
        let words = memory.words();
        let bytes = words.len() * 8;
        // Refuses a memory that is too small.
        Self::of(words.len())?;
        let get = |index: usize| words[index].load(Ordering::Acquire);
        let (offset, capacity) = (get(word::RING_OFFSET), get(word::RING_CAPACITY));
        if !capacity.is_power_of_two() || capacity > words.len() as u64 {
            return Err(LayoutError::Field { field: "the ring's capacity", found: capacity, bytes });
        }
        let end = offset.checked_add(capacity * RECORD_WORDS as u64 * 8);
        let above = (word::FILTER + FILTER_ENTRIES) as u64 * 8;
        if offset % 8 != 0 || offset < above || end.is_none_or(|end| end > bytes as u64) {
            return Err(LayoutError::Field { field: "the ring's offset", found: offset, bytes });
        }
        Ok(Self { first: (offset / 8) as usize, capacity })
    }
}
