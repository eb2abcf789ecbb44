//! The counters, which the plugin publishes and the guest reads as a consistent whole.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::layout::{MAX_TIERS, word};

/// Attempts of a reader while the plugin writes.
const TRIES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierCount {
    pub load_misses: u64,
    pub store_misses: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Nanoseconds for which retirement stood still for it.
    pub stall: u64,
    /// In-flight requests integrated over time, in request-nanoseconds.
    pub occupancy: u64,
    /// Nanoseconds with at least one request in flight.
    pub busy: u64,
}

/// All counters of the epoch at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    pub epoch: u64,
    /// Modelled time since it began, in nanoseconds.
    pub time: u64,
    pub accesses: u64,
    pub instructions: u64,
    /// Misses at addresses of no tier, such as a device's.
    pub elsewhere: u64,
    /// Counters of each tier, fastest first; those of missing tiers stay 0.
    pub tiers: [TierCount; MAX_TIERS],
}

const GLOBAL: usize = 5;
const TIER: usize = 7;

impl Snapshot {
    /// Writes the first `tiers` tiers and the rest. One writer at a time.
    pub(crate) fn write(&self, words: &[AtomicU64], tiers: usize) {
        let before = words[word::SEQUENCE].load(Ordering::Relaxed);
        words[word::SEQUENCE].store(before | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let global = [self.epoch, self.time, self.accesses, self.instructions, self.elsewhere];
        store(&words[word::COUNTERS..], global);
        for (index, tier) in self.tiers.iter().enumerate().take(tiers) {
            store(&words[word::TIER_COUNTERS + index * word::TIER_STRIDE..], tier.words());
        }
        words[word::SEQUENCE].store((before | 1).wrapping_add(1), Ordering::Release);
    }

    /// Reads all counters; `None` if the plugin does not stop writing.
    pub(crate) fn read(words: &[AtomicU64], tiers: usize) -> Option<Self> {
        (0..TRIES).find_map(|_| {
            let before = words[word::SEQUENCE].load(Ordering::Acquire);
            let snapshot = Self::read_once(words, tiers);
            fence(Ordering::Acquire);
            let after = words[word::SEQUENCE].load(Ordering::Relaxed);
            (before == after && before & 1 == 0).then_some(snapshot)
        })
    }

    fn read_once(words: &[AtomicU64], tiers: usize) -> Self {
        let [epoch, time, accesses, instructions, elsewhere]: [u64; GLOBAL] = load(&words[word::COUNTERS..]);
        let mut snapshot = Self { epoch, time, accesses, instructions, elsewhere, ..Self::default() };
        for (index, tier) in snapshot.tiers.iter_mut().enumerate().take(tiers) {
            *tier = TierCount::of(load(&words[word::TIER_COUNTERS + index * word::TIER_STRIDE..]));
        }
        snapshot
    }
}

impl TierCount {
    fn words(&self) -> [u64; TIER] {
        let Self { load_misses, store_misses, bytes_read, bytes_written, stall, occupancy, busy } = *self;
        [load_misses, store_misses, bytes_read, bytes_written, stall, occupancy, busy]
    }

    fn of(
        [load_misses, store_misses, bytes_read, bytes_written, stall, occupancy, busy]: [u64; TIER],
    ) -> Self {
        Self { load_misses, store_misses, bytes_read, bytes_written, stall, occupancy, busy }
    }
}

fn store<const N: usize>(words: &[AtomicU64], values: [u64; N]) {
    words.iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
}

fn load<const N: usize>(words: &[AtomicU64]) -> [u64; N] {
    core::array::from_fn(|index| words[index].load(Ordering::Relaxed))
}
