//! An array that lives in a [`Memory`]: its values in ordinary memory, each access to them reported.

use std::ops::{Deref, DerefMut, Range};

use prefetch_index::prefetch_index;

use super::LINE;
use crate::{Memory, Token};

/// Values whose accesses are reported at their addresses in the memory. They lie as in the original program:
/// an element takes `size_of::<T>()` bytes.
#[derive(Debug, Clone)]
pub(crate) struct Array<T> {
    start: u64,
    values: Vec<T>,
}

/// The values, unreported: for what the original keeps in registers or does before the run.
impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T: Copy> Array<T> {
    /// Allocates `length` copies of `value` at the site `context`, untouched, as `calloc` does.
    pub(crate) fn new(memory: &mut dyn Memory, length: usize, value: T, context: &'static str) -> Self {
        Self::of(memory, vec![value; length], context)
    }

    /// Creates an array of these values, already in place; nothing is reported as written.
    pub(crate) fn of(memory: &mut dyn Memory, values: Vec<T>, context: &'static str) -> Self {
        let bytes = (values.len() * size_of::<T>()) as u64;
        let start = memory.allocate(bytes, context);
        memory.backed_by(start, values.as_ptr().addr() as u64);
        Self { start, values }
    }

    /// Returns the address of an element, or of the end.
    #[inline]
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.start + (index * size_of::<T>()) as u64
    }

    /// Reads an element ahead of its use, unreported; the following instructions wait for all such reads.
    #[inline]
    pub(crate) fn read_ahead(&self, index: usize) {
        std::hint::black_box(self.values[index]);
    }

    /// Prefetches an element's line, unreported; nothing waits for it. Better than reading ahead where much
    /// work lies between, worse where the use follows at once (measured).
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch_index(&self.values, index);
    }

    /// Reads an element, whose index came with the value `after`.
    #[inline]
    pub(crate) fn load(&self, memory: &mut dyn Memory, index: usize, after: Token) -> (T, Token) {
        let value = self.values[index];
        (value, memory.load(self.address(index), after))
    }

    #[inline]
    pub(crate) fn store(&mut self, memory: &mut dyn Memory, index: usize, value: T, after: Token) {
        self.values[index] = value;
        memory.store(self.address(index), after);
    }

    /// Reads an element in a walk over neighbouring ones: only one that starts a line is reported.
    #[inline]
    pub(crate) fn load_next(&self, memory: &mut dyn Memory, index: usize) -> (T, Token) {
        if self.starts_line(index) {
            return self.load(memory, index, Token::NONE);
        }
        memory.compute(1);
        (self.values[index], Token::NONE)
    }

    /// Writes an element in a walk over neighbouring ones: only one that starts a line is reported.
    #[inline]
    pub(crate) fn store_next(&mut self, memory: &mut dyn Memory, index: usize, value: T) {
        self.values[index] = value;
        match self.starts_line(index) {
            true => memory.store(self.address(index), Token::NONE),
            false => memory.compute(1),
        }
    }

    /// Reads neighbouring elements, a line at a time.
    #[inline]
    pub(crate) fn load_run(
        &self,
        memory: &mut dyn Memory,
        range: Range<usize>,
        after: Token,
    ) -> (&[T], Token) {
        let bytes = (range.len() * size_of::<T>()) as u64;
        let token = memory.load_range(self.address(range.start), bytes, after);
        (&self.values[range], token)
    }

    /// Reports that neighbouring elements are written, a line at a time: an initialisation, a copy.
    pub(crate) fn store_run(&self, memory: &mut dyn Memory, range: Range<usize>, after: Token) {
        memory.store_range(self.address(range.start), (range.len() * size_of::<T>()) as u64, after);
    }

    /// Returns whether an element starts a line: loops over neighbours report only those.
    #[inline]
    pub(crate) fn starts_line(&self, index: usize) -> bool {
        self.address(index) % LINE < size_of::<T>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn a_run_is_read_a_line_at_a_time_and_elements_at_their_addresses() {
        let mut memory = CountingMemory::default();
        let mut array = Array::new(&mut memory, 2048, 0u32, "numbers");
        array.store(&mut memory, 16, 7, Token::NONE);
        assert_eq!(array.address(16), array.address(0) + 64);
        assert_eq!(array.load(&mut memory, 16, Token::NONE).0, 7);
        assert_eq!(array.load_run(&mut memory, 8..40, Token::NONE).0.len(), 32);
        assert_eq!((memory.loads, memory.stores), (1 + 3, 1));
        let starts = (0..64).filter(|&index| array.starts_line(index)).collect::<Vec<_>>();
        assert_eq!(starts, [0, 16, 32, 48]);
    }
}
