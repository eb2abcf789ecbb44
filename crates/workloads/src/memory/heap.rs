//! A heap on a [`Memory`]: objects allocated one by one, at the addresses that the memory gives.
//!
//! Pointers between objects are those addresses. One block of ordinary memory mirrors the address space, page
//! by page and line by line, so that on a [`crate::NativeMemory`] the same source makes the same accesses.

use prefetch_index::prefetch_index;

use super::{LINE, PAGE, WORD};
use crate::{Memory, Token};

pub(crate) const NULL: u64 = 0;

#[derive(Debug, Clone)]
pub(crate) struct Heap {
    /// The page of the first object; 0 before there is one.
    base: u64,
    /// Words before the first whole page of `words`.
    skip: usize,
    words: Vec<u64>,
}

impl Heap {
    /// Creates a heap for about `bytes`. Beyond that it grows, and its values leave their reported places.
    pub(crate) fn new(bytes: u64) -> Self {
        let words = vec![0; (bytes.next_multiple_of(PAGE) + 2 * PAGE).div_ceil(WORD) as usize];
        let past_page = words.as_ptr().addr() as u64 % PAGE;
        Self { base: 0, skip: ((PAGE - past_page) % PAGE / WORD) as usize, words }
    }

    /// Reserves `bytes` at the site `context`, all zero and untouched; returns the address.
    pub(crate) fn allocate(&mut self, memory: &mut dyn Memory, bytes: u64, context: &'static str) -> u64 {
        let address = memory.allocate(bytes, context);
        if self.base == 0 {
            self.base = address & !(PAGE - 1);
        }
        let end = self.index(address + bytes.next_multiple_of(WORD));
        if end > self.words.len() {
            self.words.resize(end + end / 2, 0);
        }
        memory.backed_by(address, (&raw const self.words[self.index(address)]).addr() as u64);
        address
    }

    #[inline]
    fn index(&self, address: u64) -> usize {
        self.skip + ((address - self.base) / WORD) as usize
    }

    /// Returns the word at `address`, unreported: on a line that was just reported.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> u64 {
        self.words[self.index(address)]
    }

    /// Changes the word at `address`, unreported: on a line whose store is reported beside it.
    #[inline]
    pub(crate) fn set_word(&mut self, address: u64, value: u64) {
        let index = self.index(address);
        self.words[index] = value;
    }

    /// Reads a word of each line of `bytes` from `address` on ahead of their use, unreported.
    #[inline]
    pub(crate) fn read_ahead(&self, address: u64, bytes: u64) {
        let words = self.words(address, bytes / WORD);
        let lines = words.iter().step_by((LINE / WORD) as usize).chain(words.last());
        std::hint::black_box(lines.fold(0, |sum, word| sum ^ word));
    }

    /// Prefetches the lines of `bytes` from `address` on, unreported; nothing waits for them.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64, bytes: u64) {
        let first = self.index(address);
        let words = (bytes / WORD) as usize;
        (0..words).step_by((LINE / WORD) as usize).for_each(|word| prefetch_index(&self.words, first + word));
        prefetch_index(&self.words, first + words.saturating_sub(1));
    }

    /// Returns `count` words from `address` on, unreported.
    #[inline]
    pub(crate) fn words(&self, address: u64, count: u64) -> &[u64] {
        let index = self.index(address);
        &self.words[index..index + count as usize]
    }

    #[inline]
    pub(crate) fn words_mut(&mut self, address: u64, count: u64) -> &mut [u64] {
        let index = self.index(address);
        &mut self.words[index..index + count as usize]
    }

    #[inline]
    pub(crate) fn load(&self, memory: &mut dyn Memory, address: u64, after: Token) -> (u64, Token) {
        (self.word(address), memory.load(address, after))
    }

    /// Reads a word of each line of `bytes` from `address` on, as a prefetch or a copy does. It really reads
    /// them only if values are observed.
    #[inline]
    pub(crate) fn load_lines(
        &self,
        memory: &mut dyn Memory,
        address: u64,
        bytes: u64,
        after: Token,
    ) -> Token {
        if !memory.reads_ahead() {
            let words = self.words(address, bytes / WORD).iter().step_by((LINE / WORD) as usize);
            std::hint::black_box(words.fold(0, |sum, word| sum ^ word));
        }
        memory.load_range(address, bytes, after)
    }

    #[inline]
    pub(crate) fn store(&mut self, memory: &mut dyn Memory, address: u64, value: u64, after: Token) {
        self.set_word(address, value);
        memory.store(address, after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CountingMemory, NativeMemory};

    #[test]
    fn objects_keep_their_words_and_lie_in_real_memory_as_in_the_address_space() {
        let mut memory = NativeMemory::default();
        let mut heap = Heap::new(1 << 20);
        let objects: Vec<u64> = [24, 40, 5000, 8, 64]
            .into_iter()
            .map(|bytes| heap.allocate(&mut memory, bytes, "object"))
            .collect();
        objects.iter().for_each(|&object| heap.set_word(object, object));
        assert!(objects.iter().all(|&object| heap.word(object) == object));
        let offsets: Vec<u64> =
            memory.allocations().map(|(allocation, real)| real.wrapping_sub(allocation.start)).collect();
        assert_eq!(offsets.len(), objects.len());
        assert!(offsets.iter().all(|&offset| offset == offsets[0] && offset % 4096 == 0), "{offsets:x?}");
    }

    #[test]
    fn a_heap_grows_beyond_its_size_and_keeps_what_it_holds() {
        let mut memory = CountingMemory::default();
        let mut heap = Heap::new(0);
        let first = heap.allocate(&mut memory, 16, "object");
        heap.store(&mut memory, first, 7, Token::NONE);
        let large = heap.allocate(&mut memory, 1 << 20, "object");
        heap.set_word(large + (1 << 20) - WORD, 8);
        assert_eq!(heap.load(&mut memory, first, Token::NONE).0, 7);
        assert_eq!((memory.loads, memory.stores), (1, 1));
    }
}
