//! The last-level cache that all threads of a process share.
//!
//! It sees the misses of the threads' filters ([`crate::filter`]). A thread locks a set by writing a value
//! that is no tag in the place of its most recent tag, which begins a cache line of the real machine: threads
//! that use different sets do not disturb each other. While the process has one thread, no lock is taken. A
//! forked child continues with its own copy.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use isotherm_core::cache::Geometry;

/// Stands in place of the most recent tag while the set is locked; no line has this tag.
const LOCKED: u64 = u64::MAX;
const BLOCK: usize = 8;

/// Tags that share a cache line of the real machine.
#[repr(C, align(64))]
struct Block {
    /// The tag of the most recent line in a set's first block, or [`LOCKED`].
    recent: AtomicU64,
    others: UnsafeCell<[u64; BLOCK - 1]>,
}

/// Set-associative cache with least-recently-used replacement.
pub(crate) struct SharedCache {
    geometry: Geometry,
    blocks: Box<[Block]>,
    threaded: AtomicBool,
}

// SAFETY: a set's `others` are touched only under its lock, or while the process has one thread; the rest is
// atomic.
unsafe impl Sync for SharedCache {}

impl SharedCache {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let blocks = geometry.sets as usize * blocks_of(geometry);
        let empty = || Block { recent: AtomicU64::new(0), others: UnsafeCell::new([0; BLOCK - 1]) };
        Self { geometry, blocks: (0..blocks).map(|_| empty()).collect(), threaded: AtomicBool::new(false) }
    }

    /// Takes locks from now on. Called by the thread that creates the second one.
    pub(crate) fn set_threaded(&self) {
        self.threaded.store(true, Ordering::SeqCst);
    }

    /// Drops the locks of threads that a forked child does not have: it has one thread.
    pub(crate) fn reset_threads(&self) {
        self.threaded.store(false, Ordering::SeqCst);
        for block in self.blocks.iter().step_by(blocks_of(self.geometry)) {
            if block.recent.load(Ordering::Relaxed) == LOCKED {
                block.recent.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Touches a line (address >> 6) and returns whether it hit.
    #[inline(never)]
    pub(crate) fn touch(&self, line: u64) -> bool {
        let (blocks, tag) = (blocks_of(self.geometry), line + 1);
        let set = self.geometry.set_of(line) * blocks;
        let set = &self.blocks[set..set + blocks];
        let recent = &set[0].recent;
        let mut front = recent.load(Ordering::Relaxed);
        if self.threaded.load(Ordering::Relaxed) {
            front = lock(recent);
        }
        // SAFETY: `Block` is laid out as its tags are and `set` has room for all ways. The set is this
        // thread's: by the lock above, or because there is no other thread.
        let others = unsafe {
            let tags = set.as_ptr().cast::<u64>().cast_mut();
            std::slice::from_raw_parts_mut(tags.add(1), self.geometry.ways as usize - 1)
        };
        let hit = front == tag || bring(others, tag, front);
        recent.store(tag, Ordering::Release);
        hit
    }
}

fn blocks_of(geometry: Geometry) -> usize {
    (geometry.ways as usize).div_ceil(BLOCK)
}

fn lock(recent: &AtomicU64) -> u64 {
    loop {
        let front = recent.swap(LOCKED, Ordering::Acquire);
        if front != LOCKED {
            return front;
        }
        while recent.load(Ordering::Relaxed) == LOCKED {
            std::hint::spin_loop();
        }
    }
}

/// Moves `tag` out of `others`, or the least recent tag, and puts `front` before the rest. Returns whether
/// `tag` was there.
fn bring(others: &mut [u64], tag: u64, front: u64) -> bool {
    let mut carried = front;
    for way in others {
        let found = std::mem::replace(way, carried);
        if found == tag {
            return true;
        }
        carried = found;
    }
    false
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
