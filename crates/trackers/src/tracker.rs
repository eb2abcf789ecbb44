//! The tracker's interface: a saturating count per page.

/// One key's count around an increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Estimate before the increase.
    pub before: u32,
    /// Estimate after the increase.
    pub after: u32,
}

/// A saturating count per key (a page number), exact or estimated: between two ageings an estimate is never
/// below the true count, clipped to [`Tracker::maximum`]. Policies call the batch forms, whose cache misses
/// overlap.
pub trait Tracker: std::fmt::Debug + Send {
    /// Adds `amount` to the key's count.
    fn increase(&mut self, key: u32, amount: u32) -> Change;

    /// Returns the key's count, 0 for a key never seen.
    fn get(&self, key: u32) -> u32;

    /// Halves every count, rounding down.
    fn age(&mut self);

    /// Returns the count at which counters saturate.
    fn maximum(&self) -> u32;

    /// Returns the counters' size in bytes; ageing sweeps all of it.
    fn bytes(&self) -> usize;

    /// Returns the largest number of cache lines that one operation touches; a host charges for them.
    fn lines(&self) -> u32;

    /// Adds one to the key's count.
    #[inline]
    fn increment(&mut self, key: u32) -> Change {
        self.increase(key, 1)
    }

    /// Increases each `(key, amount)` in order. Sets `changes` to one entry per item.
    fn increase_batch(&mut self, items: &[(u32, u32)], changes: &mut Vec<Change>) {
        changes.clear();
        changes.extend(items.iter().map(|&(key, amount)| self.increase(key, amount)));
    }

    /// Replaces the contents of `counts` with each key's count.
    fn get_batch(&self, keys: &[u32], counts: &mut Vec<u32>) {
        counts.clear();
        counts.extend(keys.iter().map(|&key| self.get(key)));
    }
}
