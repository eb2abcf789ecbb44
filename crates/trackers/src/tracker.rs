//! Defines the interface of a tracker: a saturating count for each page.

/// What an increase did to one key's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// The estimate before.
    pub before: u32,
    /// The estimate after.
    pub after: u32,
}

/// A saturating count for each key, exact or estimated.
///
/// Keys are page numbers; a tracker hashes them where it needs to. Between two ageings an estimate is never below the
/// true count, clipped to [`Tracker::maximum`]. Policies call the batch forms, whose cache misses overlap.
pub trait Tracker: std::fmt::Debug + Send {
    /// Adds `amount` to the key's count.
    fn increase(&mut self, key: u32, amount: u32) -> Change;

    /// The key's count; 0 for a key never seen.
    fn get(&self, key: u32) -> u32;

    /// Halves every count, rounding down.
    fn age(&mut self);

    /// The count at which counters saturate.
    fn maximum(&self) -> u32;

    /// The memory that the counters occupy, in bytes; ageing sweeps as much.
    fn bytes(&self) -> usize;

    /// The cache lines that one operation touches, at most: what a host charges for it.
    fn lines(&self) -> u32;

    /// Adds one to the key's count.
    #[inline]
    fn increment(&mut self, key: u32) -> Change {
        self.increase(key, 1)
    }

    /// Increases each `(key, amount)` in order. `changes` is emptied first; then it has one entry for each item.
    fn increase_batch(&mut self, items: &[(u32, u32)], changes: &mut Vec<Change>) {
        changes.clear();
        changes.extend(items.iter().map(|&(key, amount)| self.increase(key, amount)));
    }

    /// Looks each key up. `counts` is emptied first; then it has one entry for each key.
    fn get_batch(&self, keys: &[u32], counts: &mut Vec<u32>) {
        counts.clear();
        counts.extend(keys.iter().map(|&key| self.get(key)));
    }
}
