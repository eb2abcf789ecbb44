//! The address space that workloads allocate from: a bump allocator that remembers who asked.

use super::PAGE;

/// The alignment of smaller ones, as `malloc` gives.
const ALIGNMENT: u64 = 16;

/// A range of addresses and the site that allocated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The allocation site.
    pub context: &'static str,
}

/// Every allocation so far, in address order; nothing is ever freed.
#[derive(Debug, Clone, Default)]
pub struct AddressSpace {
    allocations: Vec<Allocation>,
}

impl AddressSpace {
    /// First address; any constant would do, as long as runs repeat.
    pub(crate) const BASE: u64 = 0x1000_0000_0000;

    /// Reserves `bytes` (at least 1) behind the allocation before.
    pub fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        let bytes = bytes.max(1);
        let end = self.allocations.last().map_or(Self::BASE, |last| last.start + last.bytes);
        let start = end.next_multiple_of(if bytes >= PAGE { PAGE } else { ALIGNMENT });
        self.allocations.push(Allocation { start, bytes, context });
        start
    }

    /// Returns every allocation, in address order.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// Returns the allocation that `address` lies in; `None` between allocations.
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let index = self.allocations.partition_point(|allocation| allocation.start <= address);
        let allocation = &self.allocations[index.checked_sub(1)?];
        (address - allocation.start < allocation.bytes).then_some(allocation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_allocations_start_on_a_page_and_small_ones_do_not_waste_one() {
        let mut space = AddressSpace::default();
        let first = space.allocate(10, "a");
        let second = space.allocate(20, "b");
        let third = space.allocate(PAGE, "c");
        assert_eq!(second - first, 16);
        assert_eq!(third % PAGE, 0);
        assert!(third >= second + 20);
    }

    #[test]
    fn an_address_is_found_in_its_allocation_and_gaps_belong_to_none() {
        let mut space = AddressSpace::default();
        assert_eq!(space.find(AddressSpace::BASE), None);
        let start = space.allocate(10, "a");
        let next = space.allocate(5000, "b");
        assert_eq!(space.find(start + 9).map(|allocation| allocation.context), Some("a"));
        assert_eq!(space.find(start + 10), None);
        assert_eq!(space.find(next + 4999).map(|allocation| allocation.context), Some("b"));
        assert_eq!(space.find(next + 5000), None);
        assert_eq!(space.find(start - 1), None);
    }
}
