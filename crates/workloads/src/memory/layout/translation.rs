//! The translation of a sequential address to the object's address in another layout.

use crate::memory::{AddressSpace, Allocation};

/// Addresses are looked up by page, and on shared pages by granule.
const PAGE_SHIFT: u32 = 12;
/// Objects of the sequential address space begin on 16 bytes.
const GRANULE_SHIFT: u32 = 4;
const GRANULES: usize = 1 << (PAGE_SHIFT - GRANULE_SHIFT);
const ORIGIN: u64 = AddressSpace::BASE;

#[derive(Debug, Clone, Copy)]
enum Page {
    /// One object, by its number.
    Whole(u32),
    /// Several objects, or one and a gap: the index of the granules.
    Shared(u32),
}

/// Objects by their sequential addresses, numbered in the order of allocation.
#[derive(Debug, Default)]
pub(super) struct Translation {
    space: AddressSpace,
    /// Difference of the addresses in both layouts, by object.
    offsets: Vec<u64>,
    pages: Vec<Page>,
    /// Objects of shared pages; a gap keeps the object before it.
    granules: Vec<[u32; GRANULES]>,
}

impl Translation {
    /// Adds an object; `place` tells its address in the other layout. Returns its sequential address.
    pub(super) fn allocate(&mut self, bytes: u64, context: &'static str, place: u64) -> u64 {
        let start = self.space.allocate(bytes, context);
        let object = self.offsets.len() as u32;
        self.offsets.push(place.wrapping_sub(start));
        let end = start + bytes.max(1);
        let mut from = start;
        while from < end {
            let page_end = ((from >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
            self.cover(from, page_end.min(end), object);
            from = page_end;
        }
        start
    }

    /// Notes that `object` lies on the part of one page that is `from..to`.
    fn cover(&mut self, from: u64, to: u64, object: u32) {
        let page = ((from - ORIGIN) >> PAGE_SHIFT) as usize;
        if page >= self.pages.len() {
            debug_assert_eq!(page, self.pages.len(), "addresses are given in order");
            if to - from == 1 << PAGE_SHIFT {
                return self.pages.push(Page::Whole(object));
            }
            self.pages.push(Page::Shared(self.granules.len() as u32));
            self.granules.push([object; GRANULES]);
        }
        let Page::Shared(index) = self.pages[page] else { unreachable!("a whole page has no room") };
        let granule = (from as usize >> GRANULE_SHIFT) % GRANULES;
        self.granules[index as usize][granule..].fill(object);
    }

    #[inline]
    pub(super) fn object(&self, address: u64) -> usize {
        match self.pages[((address - ORIGIN) >> PAGE_SHIFT) as usize] {
            Page::Whole(object) => object as usize,
            Page::Shared(index) => {
                self.granules[index as usize][(address as usize >> GRANULE_SHIFT) % GRANULES] as usize
            }
        }
    }

    #[inline]
    pub(super) fn translate(&self, address: u64) -> u64 {
        address.wrapping_add(self.offsets[self.object(address)])
    }

    pub(super) fn objects(&self) -> &[Allocation] {
        self.space.allocations()
    }

    /// Returns every object by its address in the other layout, in the order of these.
    pub(super) fn into_allocations(self) -> Vec<Allocation> {
        let moved = self.space.allocations().iter().zip(&self.offsets);
        let mut moved: Vec<Allocation> = moved
            .map(|(found, offset)| Allocation { start: found.start.wrapping_add(*offset), ..*found })
            .collect();
        moved.sort_unstable_by_key(|found| found.start);
        moved
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_of_every_object_finds_its_object(sizes in prop::collection::vec(1u64..20_000, 1..100)) {
            let mut translation = Translation::default();
            let place = |number: usize| 0x7000_0000_0000 - ((number as u64) << 20);
            let starts: Vec<u64> = sizes
                .iter()
                .enumerate()
                .map(|(number, &bytes)| translation.allocate(bytes, "a", place(number)))
                .collect();
            for (number, (&start, &bytes)) in starts.iter().zip(&sizes).enumerate() {
                for offset in [0, 1, bytes / 3, bytes / 2, bytes - 1].map(|offset| offset.min(bytes - 1)) {
                    prop_assert_eq!(translation.object(start + offset), number);
                    prop_assert_eq!(translation.translate(start + offset), place(number) + offset);
                }
            }
            let mut expected: Vec<(u64, u64)> =
                sizes.iter().enumerate().map(|(number, &bytes)| (place(number), bytes)).collect();
            expected.sort_unstable();
            let found = translation.into_allocations();
            prop_assert!(found.iter().map(|found| (found.start, found.bytes)).eq(expected));
        }
    }
}
