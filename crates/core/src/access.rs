//! A host's reports about memory: pages, tiers, samples and counters.

use std::fmt;

#[cfg(feature = "host")]
use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanos};

/// A page: a dense index in address order, of the run's one [`PageSize`]. 32 bits reach 16 TiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PageId(pub u32);

impl PageId {
    /// Returns the index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The granularity at which a run tracks and moves memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "host", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Base,
    /// 2 MiB.
    Huge,
}

impl PageSize {
    /// Returns the size as a power of two: 12 or 21.
    pub const fn shift(self) -> u32 {
        match self {
            Self::Base => 12,
            Self::Huge => 21,
        }
    }

    /// Returns the size in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(1 << self.shift())
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Base => "base",
            Self::Huge => "huge",
        })
    }
}

/// The most tiers that a machine may have.
pub const MAX_TIERS: usize = 16;

/// A memory tier; 0 is the fastest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "host", derive(Serialize, Deserialize), serde(transparent))]
#[repr(transparent)]
pub struct TierId(pub u8);

impl TierId {
    /// The fastest tier.
    pub const FAST: Self = Self(0);

    /// Returns the index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the next slower tier, whether or not the host has it.
    #[must_use]
    pub fn slower(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
}

/// One sampled access that missed the last-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    /// The time of the access.
    pub time: Nanos,
    /// The page it touched.
    pub page: PageId,
    /// The accesses that it stands for: the sampling period in force.
    pub weight: u32,
    /// Its latency in nanoseconds; 0 where the source does not tell.
    pub latency: u32,
    /// The part of its latency that nothing hid, in nanoseconds: the time that retirement stalled for it
    /// (Intel's "retire latency"); 0 without [`crate::Signal::ExposedLatency`].
    pub exposed: u32,
    /// The tier that served it.
    pub tier: TierId,
    /// Load or store.
    pub operation: Operation,
}

/// One access to an armed page ([`crate::Plan::arm`]): it faulted, and the page is armed no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct HintFault {
    /// The time of the access.
    pub time: Nanos,
    /// The page it touched.
    pub page: PageId,
    /// Time since the page was armed.
    pub latency: Nanos,
    /// The tier that holds it.
    pub tier: TierId,
    /// Load or store.
    pub operation: Operation,
}

/// PMU counters of one tier, since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "host", derive(Serialize))]
#[repr(C)]
pub struct TierCounters {
    /// Loads served here after a miss in the last-level cache, without those of prefetched lines.
    pub load_misses: u64,
    /// Stores served here after a miss in the last-level cache, without those to prefetched lines.
    pub store_misses: u64,
    /// Time that retirement stalled for a miss served here, summed over threads.
    pub stall: Nanos,
    /// Queue occupancy: in-flight misses integrated over time, in request-nanoseconds (PACT's T1).
    pub occupancy: u64,
    /// Time with at least one request in flight, summed over threads, in nanoseconds (PACT's T2).
    pub busy: u64,
    /// As [`Self::occupancy`], of loads alone: the TOR's count for demand reads.
    pub load_occupancy: u64,
    /// As [`Self::busy`], of loads alone.
    pub load_busy: u64,
    /// Bytes read from the tier, migrations included.
    pub bytes_read: Bytes,
    /// Bytes written to the tier, migrations included.
    pub bytes_written: Bytes,
}

/// Counters of every tier, fastest first; empty where the host has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "host", derive(Serialize))]
pub struct Counters {
    /// One entry a tier.
    pub tiers: Vec<TierCounters>,
    /// Whether events had to share counters, so that some values are extrapolated from a part of the time.
    pub multiplexed: bool,
}

impl Counters {
    /// Returns the load misses served by the fast tier and by all tiers.
    pub fn load_hits(&self) -> (u64, u64) {
        let fast = self.tiers.first().map_or(0, |tier| tier.load_misses);
        (fast, self.tiers.iter().map(|tier| tier.load_misses).sum())
    }
}
