//! The line that was read last, so that a walk with repeats reports each line once.

use super::Array;
use crate::{Memory, Token};

#[derive(Debug, Default)]
pub(crate) struct LastLine(u64);

impl LastLine {
    /// Returns whether an address lies on another line than the one before.
    #[inline]
    pub(crate) fn moves_to(&mut self, address: u64) -> bool {
        std::mem::replace(&mut self.0, address >> 6) != address >> 6
    }

    /// Reads an element, reported where it lies on another line than the one before.
    #[inline]
    pub(crate) fn load<T: Copy>(
        &mut self,
        array: &Array<T>,
        index: usize,
        memory: &mut dyn Memory,
        after: Token,
    ) -> T {
        if self.moves_to(array.address(index)) {
            memory.load(array.address(index), after);
        }
        array[index]
    }
}
