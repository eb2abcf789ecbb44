//! A memory that reports nothing: the algorithm runs on its own values, as an ordinary program.

use super::address_space::{AddressSpace, Allocation};
use crate::{Memory, Token};

/// Runs an algorithm natively, on its own values, and keeps each backed allocation's real address, so that a
/// recording of the process can be compared with the instrumented run.
#[derive(Debug, Clone, Default)]
pub struct NativeMemory {
    space: AddressSpace,
    real: Vec<(u64, u64)>,
}

impl NativeMemory {
    /// Returns every backed allocation and the real address of its values, in the order of allocation.
    pub fn allocations(&self) -> impl Iterator<Item = (&Allocation, u64)> {
        self.real.iter().filter_map(|&(start, real)| Some((self.space.find(start)?, real)))
    }
}

impl Memory for NativeMemory {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.space.allocate(bytes, context)
    }

    fn backed_by(&mut self, start: u64, real: u64) {
        self.real.push((start, real));
    }

    #[inline]
    fn load(&mut self, _address: u64, _after: Token) -> Token {
        Token::NONE
    }

    #[inline]
    fn store(&mut self, _address: u64, _after: Token) {}

    fn load_range(&mut self, _address: u64, _bytes: u64, _after: Token) -> Token {
        Token::NONE
    }

    fn store_range(&mut self, _address: u64, _bytes: u64, _after: Token) {}

    fn reads_ahead(&self) -> bool {
        false
    }
}
