//! The allocation classes: memory in slabs, each cut into chunks of one size.
//!
//! As in CacheLib, a slab stays with its class (the benchmark's configuration turns rebalancing off), and a
//! slab's chunks are handed out in address order.

use super::item::NIL;

/// The smallest chunk (CacheLib's benchmark: 64 B).
const MIN_CHUNK: u64 = 64;
/// Each class is larger than the one before by this (CacheLib's benchmark: 1.5), in halves.
const GROWTH_HALVES: u64 = 3;
/// Bounds of the slab's size: CacheLib's 4 MiB, and one chunk of the largest class. A smaller cache has
/// smaller slabs, so that classes keep their shares of memory instead of one slab each.
const SLAB_BOUNDS: (u64, u64) = (512 << 10, 4 << 20);
/// Slabs that a scaled cache has at least, but for the bounds.
const SLABS: u64 = 2048;

#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub chunk: u64,
    pub head: u32,
    pub tail: u32,
    next_chunk: u64,
    chunks_left: u64,
}

pub(super) struct Slabs {
    pub classes: Vec<Class>,
    slab: u64,
    next_slab: u64,
    end: u64,
}

impl Slabs {
    pub(super) fn slab_bytes(bytes: u64) -> u64 {
        (bytes / SLABS).next_power_of_two().clamp(SLAB_BOUNDS.0, SLAB_BOUNDS.1)
    }

    /// Divides the memory from `start` on into whole slabs, within `bytes`.
    pub(super) fn new(start: u64, bytes: u64) -> Self {
        let slab = Self::slab_bytes(bytes);
        let next = |chunk: &u64| Some((chunk * GROWTH_HALVES / 2).next_multiple_of(8));
        let class = |chunk| Class { chunk, head: NIL, tail: NIL, next_chunk: 0, chunks_left: 0 };
        let classes = std::iter::successors(Some(MIN_CHUNK), next)
            .take_while(|&chunk| chunk <= slab)
            .map(class)
            .collect();
        Self { classes, slab, next_slab: start, end: start + bytes / slab * slab }
    }

    pub(super) fn class_of(&self, bytes: u64) -> Option<usize> {
        let class = self.classes.partition_point(|class| class.chunk < bytes);
        (class < self.classes.len()).then_some(class)
    }

    /// Returns a fresh chunk, or `None` if an item must be evicted: the class is full and no slab is left.
    pub(super) fn take(&mut self, class: usize) -> Option<u64> {
        let (slab, chunk) = (self.slab, self.classes[class].chunk);
        if self.classes[class].chunks_left == 0 {
            if self.next_slab == self.end {
                return None;
            }
            self.classes[class].next_chunk = self.next_slab;
            self.classes[class].chunks_left = slab / chunk;
            self.next_slab += slab;
        }
        let class = &mut self.classes[class];
        let address = class.next_chunk;
        class.next_chunk += chunk;
        class.chunks_left -= 1;
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_what_is_asked_for_and_never_overlap() {
        let mut slabs = Slabs::new(1 << 30, 8 << 20);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for bytes in (40..400_000).step_by(997).cycle().take(3000) {
            let class = slabs.class_of(bytes).expect("a class for every size");
            assert!(slabs.classes[class].chunk >= bytes);
            if let Some(address) = slabs.take(class) {
                taken.push((address, address + slabs.classes[class].chunk));
            }
        }
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(taken.iter().all(|chunk| chunk.0 >= 1 << 30 && chunk.1 <= (1 << 30) + (8 << 20)));
        assert_eq!(slabs.class_of(1 << 20), None);
    }
}
