//! The benchmark's allocator of nodes and records: slabs of 1 MiB, with a list of free objects through them.

use crate::{Heap, Memory, NULL, Token, WORD};

pub(super) const SLAB: u64 = 1 << 20;

pub(super) struct Slab {
    object: u64,
    context: &'static str,
    /// The next free object; its last word points to the one after.
    free: u64,
}

impl Slab {
    pub(super) fn new(object: u64, context: &'static str) -> Self {
        Self { object, context, free: NULL }
    }

    /// Returns a zeroed object. A new slab is handed out from its end, because its list grows forwards.
    pub(super) fn allocate(&mut self, heap: &mut Heap, memory: &mut dyn Memory) -> u64 {
        if self.free == NULL {
            self.grow(heap, memory);
        }
        let found = self.free;
        let link = found + self.object - WORD;
        self.free = heap.load(memory, link, Token::NONE).0;
        heap.set_word(link, 0);
        found
    }

    fn grow(&mut self, heap: &mut Heap, memory: &mut dyn Memory) {
        let slab = heap.allocate(memory, SLAB, self.context);
        for index in 0..SLAB / self.object {
            let object = slab + index * self.object;
            heap.set_word(object + self.object - WORD, self.free);
            self.free = object;
        }
        memory.store_range(slab, SLAB, Token::NONE);
    }
}
