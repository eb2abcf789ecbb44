//! Chooses a context's region: of two that its hash names, the one with fewer contexts so far.
//!
//! About ten contexts of a program matter. With one choice among 32 regions, two of ten share a region in
//! four programs of five; with two choices that is rare. All threads share the choices in a table without
//! locks, which a signal handler or a fork can find in any state.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::regions;

/// Contexts remembered; further ones get their first choice.
const SLOTS: usize = 4096;
const PROBES: usize = 8;

static PLACING: Placing = Placing::new();

/// Returns the region of the context with this hash, the same for the life of the process.
pub(crate) fn region(hash: u64) -> usize {
    PLACING.region(hash, regions::count())
}

/// Contexts with their regions; all zeros is the valid empty table.
struct Placing {
    /// Hash with the region in its lowest byte, or 0.
    slots: [AtomicU64; SLOTS],
    contexts: [AtomicU32; regions::MAX],
}

impl Placing {
    const fn new() -> Self {
        const { assert!(regions::MAX <= 256, "a region fits a byte") };
        Self {
            slots: [const { AtomicU64::new(0) }; SLOTS],
            contexts: [const { AtomicU32::new(0) }; regions::MAX],
        }
    }

    fn region(&self, hash: u64, count: usize) -> usize {
        // The highest bit distinguishes a tag from an empty slot.
        let tag = hash & !0xff | 1 << 63;
        for probe in 0..PROBES {
            let slot = &self.slots[((hash >> 40) as usize + probe) % SLOTS];
            let mut entry = slot.load(Acquire);
            if entry == 0 {
                let region = self.emptier(hash, count);
                match slot.compare_exchange(0, tag | region as u64, AcqRel, Acquire) {
                    Ok(_) => {
                        self.contexts[region].fetch_add(1, Relaxed);
                        return region;
                    }
                    Err(other) => entry = other,
                }
            }
            if entry & !0xff == tag {
                return (entry & 0xff) as usize;
            }
        }
        choices(hash, count)[0]
    }

    fn emptier(&self, hash: u64, count: usize) -> usize {
        let [first, second] = choices(hash, count);
        let contexts = |region: usize| self.contexts[region].load(Relaxed);
        if contexts(second) < contexts(first) { second } else { first }
    }
}

/// Returns the regions that a hash names: by its upper half, and by the upper half of its product.
fn choices(hash: u64, count: usize) -> [usize; 2] {
    [hash, hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)].map(|hash| ((hash >> 32) as usize * count) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(seed: u64, count: u64) -> Vec<u64> {
        let mix = |index: u64| {
            let mut hash = (seed << 32 | index).wrapping_mul(0x517c_c1b7_2722_0a95);
            hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            hash ^ hash >> 32
        };
        (1..=count).map(mix).collect()
    }

    fn placing() -> Box<Placing> {
        // SAFETY: all zeros are a valid `Placing`.
        unsafe { Box::<Placing>::new_zeroed().assume_init() }
    }

    /// Returns how many of `count` contexts share their region with another, averaged over many programs.
    fn shared(count: u64, region: impl Fn(&Placing, u64) -> usize) -> f64 {
        let programs = 200;
        let meeting = |seed| {
            let placing = placing();
            let mut regions: Vec<usize> =
                hashes(seed, count).into_iter().map(|hash| region(&placing, hash)).collect();
            regions.sort_unstable();
            regions.dedup();
            count as usize - regions.len()
        };
        (0..programs).map(meeting).sum::<usize>() as f64 / programs as f64
    }

    #[test]
    fn contexts_of_a_program_seldom_meet() {
        let two = shared(10, |placing, hash| placing.region(hash, 32));
        let one = shared(10, |_, hash| choices(hash, 32)[0]);
        assert!(one > 1.0 && two < 0.4, "of ten contexts {two} meet, with one choice {one}");
    }

    #[test]
    fn a_context_keeps_its_region_also_when_the_table_is_full() {
        let placing = placing();
        let hashes = hashes(7, 4 * SLOTS as u64);
        for count in [1, 32, 256] {
            let placing = if count == 32 { &placing } else { &*self::placing() };
            let first: Vec<usize> = hashes.iter().map(|&hash| placing.region(hash, count)).collect();
            let again: Vec<usize> = hashes.iter().map(|&hash| placing.region(hash, count)).collect();
            assert_eq!(first, again);
            assert!(first.iter().all(|&region| region < count));
        }
    }

    #[test]
    fn threads_that_meet_a_context_at_once_get_the_same_region() {
        let placing = placing();
        let hashes = hashes(3, 3000);
        let of = |hashes: Vec<u64>| {
            let mut found: Vec<(u64, usize)> =
                hashes.iter().map(|&hash| (hash, placing.region(hash, 32))).collect();
            found.sort_unstable();
            found
        };
        let backwards: Vec<u64> = hashes.iter().rev().copied().collect();
        let [one, other] = std::thread::scope(|scope| {
            [hashes.clone(), backwards]
                .map(|hashes| scope.spawn(|| of(hashes)))
                .map(|thread| thread.join().expect("it ends"))
        });
        assert_eq!(one, other);
    }
}
