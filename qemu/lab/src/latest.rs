//! The most recent line of each set of the cache, which any thread may look at.
//!
//! Programs often go to and fro between a few lines: a stack, a table, a counter. A line that is the most
//! recent of its set already stays that, so its access changes nothing and needs no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use isotherm_core::cache::Geometry;

pub(crate) struct Latest {
    geometry: Geometry,
    /// The line and 1; 0 before the first.
    sets: Box<[AtomicU64]>,
}

impl Latest {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self { geometry, sets: (0..geometry.sets).map(|_| AtomicU64::new(0)).collect() }
    }

    #[inline(always)]
    fn of(&self, line: u64) -> Option<&AtomicU64> {
        self.sets.get(self.geometry.set_of(line))
    }

    /// Returns whether a line is its set's most recent one.
    #[inline(always)]
    pub(crate) fn is(&self, line: u64) -> bool {
        self.of(line).is_some_and(|latest| latest.load(Ordering::Relaxed) == line + 1)
    }

    /// Notes that a line is touched. Only the holder of the cache may call this.
    #[inline(always)]
    pub(crate) fn note(&self, line: u64) {
        if let Some(latest) = self.of(line) {
            latest.store(line + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::cache::Cache;

    use super::*;

    proptest::proptest! {
        /// Accesses that it lets pass hit and change nothing: the cache without them is the same.
        #[test]
        fn what_it_filters_changes_nothing(
            ways in 1u32..5,
            lines in proptest::collection::vec(0u64..24, 0..400),
        ) {
            let geometry = Geometry { sets: 4, ways };
            let (latest, mut filtered, mut whole) = (Latest::new(geometry), Cache::new(geometry), Cache::new(geometry));
            for line in lines {
                let hit = whole.touch(line);
                if latest.is(line) {
                    proptest::prop_assert!(hit);
                } else {
                    latest.note(line);
                    proptest::prop_assert_eq!(filtered.touch(line), hit);
                }
            }
        }
    }
}
