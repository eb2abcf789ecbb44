//! The bins of delta-stepping: growing vectors of vertices for each thread, on a heap that reuses memory.

use crate::{Memory, Token};

const VERTEX: u64 = 4;

/// Freed vectors by the logarithm of their capacity.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    free: [Vec<u64>; 32],
}

impl Heap {
    fn allocate(&mut self, memory: &mut dyn Memory, capacity: usize) -> u64 {
        let reused = self.free[capacity.ilog2() as usize].pop();
        reused.unwrap_or_else(|| memory.allocate(capacity as u64 * VERTEX, "sssp bins"))
    }

    fn release(&mut self, start: u64, capacity: usize) {
        if capacity > 0 {
            self.free[capacity.ilog2() as usize].push(start);
        }
    }
}

/// A vector of vertices; its capacity doubles when it is full.
#[derive(Debug, Default)]
pub(crate) struct Bin {
    start: u64,
    capacity: usize,
    vertices: Vec<u32>,
}

impl Bin {
    pub(crate) fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.vertices.len()
    }

    pub(crate) fn push(&mut self, memory: &mut dyn Memory, heap: &mut Heap, vertex: u32) {
        if self.vertices.len() == self.capacity {
            let capacity = (self.capacity * 2).max(1);
            let start = heap.allocate(memory, capacity);
            let bytes = self.capacity as u64 * VERTEX;
            if bytes > 0 {
                memory.load_range(self.start, bytes, Token::NONE);
                memory.store_range(start, bytes, Token::NONE);
            }
            heap.release(self.start, self.capacity);
            (self.start, self.capacity) = (start, capacity);
        }
        memory.store(self.start + self.vertices.len() as u64 * VERTEX, Token::NONE);
        self.vertices.push(vertex);
    }

    /// Reads all vertices and empties the vector; it keeps its memory.
    pub(crate) fn take(&mut self, memory: &mut dyn Memory) -> Vec<u32> {
        memory.load_range(self.start, self.vertices.len() as u64 * VERTEX, Token::NONE);
        std::mem::take(&mut self.vertices)
    }

    pub(crate) fn release(&mut self, heap: &mut Heap) {
        heap.release(self.start, self.capacity);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn a_bin_grows_by_doubling_and_its_memory_is_used_again() {
        let (mut memory, mut heap) = (CountingMemory::default(), Heap::default());
        let mut bin = Bin::default();
        (0..100).for_each(|vertex| bin.push(&mut memory, &mut heap, vertex));
        assert_eq!((bin.len(), bin.capacity), (100, 128));
        assert_eq!(bin.take(&mut memory), (0..100).collect::<Vec<_>>());
        assert!(bin.is_empty());
        bin.release(&mut heap);
        let allocated = memory.allocations().len();
        let mut other = Bin::default();
        (0..100).for_each(|vertex| other.push(&mut memory, &mut heap, vertex));
        assert_eq!(memory.allocations().len(), allocated);
    }
}
