//! The models of allocators, which place each next object. Like the workloads, they never free.

use std::collections::BTreeMap;

use super::super::PAGE;
use super::size_classes::{class_of, is_small, slab_of};

/// First address of the models' heaps; any constant would do, as long as runs repeat.
const BASE: u64 = 0x2000_0000_0000;
/// Addresses that one context's region may have.
const REGION: u64 = 1 << 38;

pub(super) trait Allocator {
    /// Returns the address of the next object, of `bytes` (at least 1), which the site `context` asks for.
    fn place(&mut self, bytes: u64, context: &'static str) -> u64;
}

/// glibc's `malloc` without frees: chunks in the order of allocation, with a header of 8 bytes, in multiples
/// of 16 from 32 on. From 128 KiB on it uses mappings with 16 bytes in front (malloc.c: MINSIZE, SIZE_SZ,
/// DEFAULT_MMAP_THRESHOLD).
pub(super) struct Glibc {
    top: u64,
    mapped: u64,
}

impl Default for Glibc {
    fn default() -> Self {
        Self { top: BASE, mapped: BASE + REGION }
    }
}

impl Glibc {
    const HEADER: u64 = 8;
    const MIN_CHUNK: u64 = 32;
    const MAPPED_FROM: u64 = 128 << 10;
}

impl Allocator for Glibc {
    fn place(&mut self, bytes: u64, _context: &'static str) -> u64 {
        let (top, length) = if bytes >= Self::MAPPED_FROM {
            (&mut self.mapped, (bytes + 2 * Self::HEADER).next_multiple_of(PAGE))
        } else {
            (&mut self.top, (bytes + Self::HEADER).next_multiple_of(16).max(Self::MIN_CHUNK))
        };
        let chunk = *top;
        *top += length;
        chunk + 2 * Self::HEADER
    }
}

/// Rest of a size class' last slab.
#[derive(Debug, Clone, Copy)]
struct Slab {
    next: u64,
    end: u64,
}

/// An arena of jemalloc without frees: slabs of one size class each, and large objects in their own pages, in
/// the order of need. It leaves out the random offset in a large object's first page (`cache_oblivious`).
pub(super) struct Jemalloc {
    top: u64,
    slabs: BTreeMap<u64, Slab>,
}

impl Default for Jemalloc {
    fn default() -> Self {
        Self::from(BASE)
    }
}

impl Jemalloc {
    fn from(base: u64) -> Self {
        Self { top: base, slabs: BTreeMap::new() }
    }

    fn extend(&mut self, bytes: u64) -> u64 {
        let start = self.top;
        self.top += bytes;
        start
    }
}

impl Allocator for Jemalloc {
    fn place(&mut self, bytes: u64, _context: &'static str) -> u64 {
        let class = class_of(bytes);
        if !is_small(class) {
            return self.extend(class);
        }
        let mut slab = self.slabs.get(&class).copied().unwrap_or(Slab { next: 0, end: 0 });
        if slab.next == slab.end {
            let start = self.extend(slab_of(class));
            slab = Slab { next: start, end: start + slab_of(class) };
        }
        let address = slab.next;
        self.slabs.insert(class, Slab { next: address + class, ..slab });
        address
    }
}

/// Jenga's allocator (section 4.3), which hashes the calling context to a region, an arena of jemalloc.
pub(super) struct ContextRegions {
    regions: Vec<Jemalloc>,
}

impl ContextRegions {
    pub(super) fn new(regions: u64) -> Self {
        Self { regions: (0..regions).map(|region| Jemalloc::from(BASE + region * REGION)).collect() }
    }

    /// Returns the region of a context: FNV-1a of its name, which represents the return addresses.
    fn region_of(&self, context: &str) -> usize {
        let hash = context.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash % self.regions.len() as u64) as usize
    }
}

impl Allocator for ContextRegions {
    fn place(&mut self, bytes: u64, context: &'static str) -> u64 {
        let region = self.region_of(context);
        self.regions[region].place(bytes, context)
    }
}

pub(super) struct Ordered {
    addresses: std::vec::IntoIter<u64>,
}

impl Ordered {
    /// Places objects of these sizes back to back in the order of `ranked`, which numbers them by allocation.
    pub(super) fn new((ranked, bytes): (Vec<usize>, Vec<u64>)) -> Self {
        let mut addresses = vec![0; bytes.len()];
        let mut top = BASE;
        for object in ranked {
            addresses[object] = top;
            top += bytes[object].next_multiple_of(16);
        }
        Self { addresses: addresses.into_iter() }
    }
}

impl Allocator for Ordered {
    fn place(&mut self, _bytes: u64, _context: &'static str) -> u64 {
        self.addresses.next().unwrap_or_else(|| unreachable!("the run before allocated as much"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::layout::size_classes;

    const CONTEXTS: [&str; 3] = ["a", "b", "c"];

    fn models() -> Vec<Box<dyn Allocator>> {
        vec![Box::<Glibc>::default(), Box::<Jemalloc>::default(), Box::new(ContextRegions::new(32))]
    }

    proptest! {
        #[test]
        fn objects_never_overlap_and_are_aligned(
            objects in prop::collection::vec((1u64..300_000, 0usize..3), 1..200)
        ) {
            for mut model in models() {
                let mut placed: Vec<(u64, u64)> = objects
                    .iter()
                    .map(|&(bytes, context)| (model.place(bytes, CONTEXTS[context]), bytes))
                    .collect();
                placed.sort_unstable();
                prop_assert!(placed.iter().all(|&(start, _)| start % 16 == 0));
                prop_assert!(placed.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            }
        }

        /// Purpose of the context allocator: a page holds objects of one context only.
        #[test]
        fn no_two_contexts_share_a_page(objects in prop::collection::vec((1u64..5000, 0usize..3), 1..200)) {
            let mut model = ContextRegions::new(32);
            let regions = CONTEXTS.map(|context| model.region_of(context));
            prop_assert!(regions[0] != regions[1] && regions[1] != regions[2] && regions[0] != regions[2]);
            let mut owner = BTreeMap::new();
            for (bytes, context) in objects {
                let start = model.place(bytes, CONTEXTS[context]);
                for page in start / PAGE..=(start + bytes - 1) / PAGE {
                    prop_assert_eq!(*owner.entry(page).or_insert(context), context);
                }
            }
        }
    }

    #[test]
    fn glibc_keeps_the_order_of_allocation_and_jemalloc_that_of_sizes() {
        let (mut glibc, mut jemalloc) = (Glibc::default(), Jemalloc::default());
        let sizes = [24, 100, 24, 100];
        let of = |model: &mut dyn Allocator| sizes.map(|bytes| model.place(bytes, "a"));
        let by_time = of(&mut glibc);
        assert_eq!([1, 2, 3].map(|n| by_time[n] - by_time[n - 1]), [32, 112, 32]);
        let by_size = of(&mut jemalloc);
        assert_eq!((by_size[2] - by_size[0], by_size[3] - by_size[1]), (32, 112));
        assert_eq!(by_size[1] - by_size[0], size_classes::slab_of(32), "slabs follow each other");
    }

    #[test]
    fn what_is_ordered_in_advance_lies_in_that_order() {
        let mut ordered = Ordered::new((vec![2, 0, 1], vec![100, 20, 16]));
        let placed = [100, 20, 16].map(|bytes| ordered.place(bytes, "a"));
        assert_eq!((placed[0] - placed[2], placed[1] - placed[0]), (16, 112));
    }
}
