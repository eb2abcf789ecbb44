//! A memory that only counts, to measure the cost of a generator itself.

use super::address_space::{AddressSpace, Allocation};
use crate::{Memory, Token};

/// Counts accesses and nothing else.
#[derive(Debug, Clone, Default)]
pub struct CountingMemory {
    /// Loads of a line.
    pub loads: u64,
    /// Stores to a line.
    pub stores: u64,
    /// Instructions that touched no memory.
    pub computed: u64,
    space: AddressSpace,
    folded: u64,
}

impl CountingMemory {
    /// Returns every allocation, in address order.
    pub fn allocations(&self) -> &[Allocation] {
        self.space.allocations()
    }

    /// Returns a checksum of the addresses, which also keeps accesses from being optimised away.
    pub fn checksum(&self) -> u64 {
        self.folded
    }
}

impl Memory for CountingMemory {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.space.allocate(bytes, context)
    }

    fn thread(&mut self, thread: u16) {
        self.folded = self.folded.rotate_left(1) ^ u64::from(thread);
    }

    fn compute(&mut self, instructions: u32) {
        self.computed += u64::from(instructions);
    }

    fn load(&mut self, address: u64, after: Token) -> Token {
        self.loads += 1;
        self.folded = self.folded.wrapping_mul(3).wrapping_add(address ^ after.0);
        Token::NONE
    }

    fn store(&mut self, address: u64, _after: Token) {
        self.stores += 1;
        self.folded = self.folded.wrapping_mul(3).wrapping_add(!address);
    }
}
