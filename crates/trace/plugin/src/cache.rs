//! Defines the last-level cache that all threads of a process share.
//!
//! Most accesses find their line most recent in its set: that is checked without a lock, in an array small enough for
//! the real core's first-level cache. The others lock their set, by a value in that array that is no tag, and the most
//! recent tag is the key: writing it unlocks. While the process has one thread, no lock is taken. A forked child goes
//! on with its own copy.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use isotherm_core::cache::{Geometry, touch};

/// What [`is_recent`] looks at: the `recent` tags of the process's cache and the number of sets less one.
static RECENT: (AtomicPtr<AtomicU64>, AtomicU32) = (AtomicPtr::new(null_mut()), AtomicU32::new(0));

/// Whether `line` is the most recent of its set in the cache that was published: touching it changes nothing then.
///
/// # Safety
/// A cache was published, see [`SharedCache::publish`].
#[inline(always)]
pub(crate) unsafe fn is_recent(line: u64) -> bool {
    let geometry = Geometry { sets: RECENT.1.load(Ordering::Relaxed) + 1, ways: 0 };
    // SAFETY: there are as many tags as sets, and they live as long as the process.
    let tag = unsafe { &*RECENT.0.load(Ordering::Relaxed).add(geometry.set_of(line)) };
    tag.load(Ordering::Relaxed) == line + 1
}

/// Stands in place of the most recent tag while the set is locked; no line has it.
const LOCKED: u64 = u64::MAX;

/// The cache.
pub(crate) struct SharedCache {
    geometry: Geometry,
    /// The tag of each set's most recent line, or [`LOCKED`].
    recent: Box<[AtomicU64]>,
    /// The tags of each set.
    tags: Box<[UnsafeCell<u64>]>,
    threaded: AtomicBool,
}

// SAFETY: `tags` of a set are touched only under its lock, or while the process has one thread; the rest is atomic.
unsafe impl Sync for SharedCache {}

impl SharedCache {
    /// An empty cache.
    pub(crate) fn new(geometry: Geometry) -> Self {
        let (sets, ways) = (geometry.sets as usize, geometry.ways as usize);
        Self {
            geometry,
            recent: (0..sets).map(|_| AtomicU64::new(0)).collect(),
            tags: (0..sets * ways).map(|_| UnsafeCell::new(0)).collect(),
            threaded: AtomicBool::new(false),
        }
    }

    /// From now on more than one thread touches. Called by the thread that creates the second.
    pub(crate) fn set_threaded(&self) {
        self.threaded.store(true, Ordering::SeqCst);
    }

    /// In a forked child, which has one thread: drops the locks of threads that are no more.
    pub(crate) fn reset_threads(&self) {
        self.threaded.store(false, Ordering::SeqCst);
        for recent in &self.recent {
            if recent.load(Ordering::Relaxed) == LOCKED {
                recent.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Makes this the cache that [`is_recent`] looks at.
    pub(crate) fn publish(&'static self) {
        RECENT.1.store(self.geometry.sets - 1, Ordering::Relaxed);
        RECENT.0.store(self.recent.as_ptr().cast_mut(), Ordering::Release);
    }

    /// Touches a line (address >> 6) and returns whether it hit.
    #[inline]
    pub(crate) fn touch(&self, line: u64) -> bool {
        let set = self.geometry.set_of(line);
        if self.recent[set].load(Ordering::Relaxed) == line + 1 {
            return true;
        }
        self.touch_set(set, line)
    }

    #[inline(never)]
    fn touch_set(&self, set: usize, line: u64) -> bool {
        let recent = &self.recent[set];
        if self.threaded.load(Ordering::Relaxed) {
            while recent.swap(LOCKED, Ordering::Acquire) == LOCKED {
                std::hint::spin_loop();
            }
        }
        let ways = self.geometry.ways as usize;
        let first = self.tags[set * ways..(set + 1) * ways].as_ptr();
        // SAFETY: the range was bounds-checked, `UnsafeCell<u64>` is laid out as u64, and the set is ours (lock above).
        let hit = touch(unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(first), ways) }, line);
        recent.store(line + 1, Ordering::Release);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::{Bytes, cache::Cache};

    #[test]
    fn one_thread_sees_what_the_plain_model_says() {
        let geometry = Geometry::new(Bytes(64 << 10), 4).expect("a valid geometry");
        let (shared, mut plain) = (SharedCache::new(geometry), Cache::new(geometry));
        let mut line = 1u64;
        for _ in 0..200_000 {
            line = line.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let near = line >> 53;
            assert_eq!(shared.touch(near), plain.touch(near));
        }
    }

    #[test]
    fn threads_lose_no_line_of_a_set_that_fits() {
        let cache = SharedCache::new(Geometry { sets: 4, ways: 8 });
        cache.set_threaded();
        let misses: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let cache = &cache;
                    scope.spawn(move || (0..100_000u64).filter(|i| !cache.touch((i + thread) % 32)).count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        let cold = (0..32u64).filter(|&line| cache.geometry.set_of(line) < 4).count();
        assert_eq!(misses, cold);
    }
}
