//! Defines where each word of the shared memory lies.

use core::sync::atomic::Ordering;

use crate::Words;

/// What the first word says: the bytes `ISOTHPMU`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ISOTHPMU");
/// Grows with every change of the layout.
pub const VERSION: u64 = 2;
/// Bytes of the memory that the lab uses.
pub const USUAL_BYTES: usize = 16 << 20;
/// The least that a layout fits in.
pub const MIN_BYTES: usize = 64 << 10;
/// The most tiers: part of the layout, so that it stays smaller than a host's 16 until the version changes.
pub const MAX_TIERS: usize = 8;
/// Thread group ids that the filter holds.
pub const FILTER_ENTRIES: usize = 1024;
/// Words of a record.
pub const RECORD_WORDS: usize = 4;

/// Words by their index. "Plugin" and "guest" say who writes them.
pub mod word {
    /// Plugin, last of the identity: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Plugin: [`super::VERSION`].
    pub const VERSION: usize = 1;
    /// Plugin: bytes of the memory.
    pub const BYTES: usize = 2;
    /// Plugin: where the ring begins, in bytes.
    pub const RING_OFFSET: usize = 3;
    /// Plugin: records that the ring holds, a power of two.
    pub const RING_CAPACITY: usize = 4;
    /// Plugin: tiers that it counts.
    pub const TIERS: usize = 5;
    /// Plugin: processors of the guest.
    pub const VCPUS: usize = 6;

    /// Plugin: the doorbell that it has answered.
    pub const ANSWERED: usize = 8;
    /// Plugin: the epoch that runs.
    pub const EPOCH: usize = 9;

    /// Plugin: records written since the start.
    pub const HEAD: usize = 16;
    /// Plugin: samples that found the ring full, since the start.
    pub const LOST: usize = 17;
    /// Plugin: samples whose process was not to be had, since the start.
    pub const UNRESOLVED: usize = 18;

    /// Guest: records read since the start.
    pub const TAIL: usize = 24;

    /// Guest: grows with each change below.
    pub const DOORBELL: usize = 32;
    /// Guest: the epoch to begin; counters start from 0 with each.
    pub const WANTED_EPOCH: usize = 33;
    /// Guest: bits of [`super::flag`].
    pub const FLAGS: usize = 34;
    /// Guest: which misses are counted towards samples, bit `2 x tier + store`.
    pub const EVENTS: usize = 35;
    /// Guest: entries of the filter; 0 for every user process.
    pub const FILTER_COUNT: usize = 36;

    /// Guest: where the current task's address lies, from the processor's base of per-CPU data.
    pub const CURRENT_TASK: usize = 40;
    /// Guest: where a task's thread group id lies in it; 0 while the mailbox is empty.
    pub const TASK_TGID: usize = 41;
    /// Guest: where the pointer to its parent lies in it.
    pub const TASK_PARENT: usize = 42;
    /// Guest: where a task's thread id lies in it.
    pub const TASK_THREAD: usize = 43;
    /// Guest: the thread that is neither counted nor sampled, whatever its process; 0 for none.
    pub const LEFT_OUT: usize = 44;

    /// Guest: every n-th miss is sampled, 0 for none; a word for each tier, or the first for all of them.
    pub const PERIODS: usize = 48;

    /// Plugin: even while the counters are whole.
    pub const SEQUENCE: usize = 512;
    /// Plugin: the first counter; see [`crate::Snapshot`].
    pub const COUNTERS: usize = 513;
    /// Plugin: the first tier's counters.
    pub const TIER_COUNTERS: usize = 520;
    /// Words from one tier's counters to the next one's.
    pub const TIER_STRIDE: usize = 8;

    /// Guest: the filter.
    pub const FILTER: usize = 1024;
}

/// Bits of [`word::FLAGS`].
pub mod flag {
    /// Accesses are counted.
    pub const COUNTING: u64 = 1;
    /// Each tier is sampled by an event of its own.
    pub const EACH_TIER: u64 = 2;
    /// Periods are exact; without it, each differs by up to an eighth.
    pub const EXACT: u64 = 4;
    /// Children of filtered processes are filtered too.
    pub const CHILDREN: u64 = 8;
}

/// Memory that holds no layout of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It is too small.
    #[error("the shared memory has {bytes} bytes; expected at least {MIN_BYTES}")]
    Small {
        /// Its size.
        bytes: usize,
    },
    /// The plugin has not written it.
    #[error("the shared memory begins with {found:#018x}; expected \"ISOTHPMU\": the plugin did not load")]
    Magic {
        /// Its first word.
        found: u64,
    },
    /// Plugin and guest are of different versions.
    #[error(
        "the plugin's layout has version {found}; expected {VERSION}: use plugin and isotherm of one build"
    )]
    Version {
        /// What the plugin writes.
        found: u64,
    },
    /// A word of the identity is not possible.
    #[error("the shared memory says that {field} is {found}, which is not possible in {bytes} bytes")]
    Field {
        /// What it is.
        field: &'static str,
        /// What the word says.
        found: u64,
        /// The memory's size.
        bytes: usize,
    },
    /// More tiers than the layout has room for.
    #[error("there are {tiers} tiers; expected 1 to {MAX_TIERS}")]
    Tiers {
        /// How many.
        tiers: usize,
    },
}

/// Where the ring lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPlace {
    /// Its first word.
    pub(crate) first: usize,
    /// Records that fit, a power of two.
    pub(crate) capacity: u64,
}

impl RingPlace {
    /// The ring of memory of so many words: its upper half, rounded down to a power of two.
    pub(crate) fn of(words: usize) -> Result<Self, LayoutError> {
        let bytes = words * 8;
        if bytes < MIN_BYTES {
            return Err(LayoutError::Small { bytes });
        }
        let capacity = 1u64 << (words / 2 / RECORD_WORDS).ilog2();
        Ok(Self { first: words - capacity as usize * RECORD_WORDS, capacity })
    }

    /// The ring that the plugin has laid out, if it can be.
    pub(crate) fn read(memory: &impl Words) -> Result<Self, LayoutError> {
        let words = memory.words();
        let bytes = words.len() * 8;
        if bytes < MIN_BYTES {
            return Err(LayoutError::Small { bytes });
        }
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
