//! Defines the sketch: lanes of counters, each with a hot and a valid bit.
//!
//! An entry is a word: the counter in bits 0 to 15, the hot bit in 16, above it the reset after which the entry was
//! last touched. It is valid when that is the current one: this stands for the hardware's valid bits, and clearing
//! costs nothing but every 32,767th time.

use crate::Parameters;

const HOT: u32 = 1 << 16;
const COUNT: u32 = HOT - 1;
const EPOCH_SHIFT: u32 = 17;
const LAST_EPOCH: u32 = (1 << (32 - EPOCH_SHIFT)) - 1;

/// Lanes of entries.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    entries: Vec<u32>,
    width: usize,
    counter_max: u32,
    /// The current reset's number, in the place that it has in an entry. 0 is none's.
    epoch: u32,
}

impl Sketch {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let width = parameters.width as usize;
        Self {
            entries: vec![0; width * parameters.lanes as usize],
            width,
            counter_max: parameters.counter_max(),
            epoch: 1 << EPOCH_SHIFT,
        }
    }

    /// Counts an access in all lanes and returns the least of their counts: the page's estimate.
    #[inline]
    pub(crate) fn count<const LANES: usize>(&mut self, indices: [u32; LANES]) -> u32 {
        let mut estimate = u32::MAX;
        for (lane, index) in self.entries.chunks_exact_mut(self.width).zip(indices) {
            let entry = &mut lane[index as usize];
            let valid = *entry >> EPOCH_SHIFT == self.epoch >> EPOCH_SHIFT;
            let old = if valid { *entry } else { self.epoch };
            let count = ((old & COUNT) + 1).min(self.counter_max);
            *entry = old & !COUNT | count;
            estimate = estimate.min(count);
        }
        estimate
    }

    /// Loads a page's entries, for their cache lines' sake.
    #[inline]
    pub(crate) fn load<const LANES: usize>(&self, indices: [u32; LANES]) -> u32 {
        let lanes = self.entries.chunks_exact(self.width);
        lanes.zip(indices).fold(0, |sum, (lane, index)| sum ^ lane[index as usize])
    }

    /// Whether all entries, counted just before, have their hot bit set.
    #[inline]
    pub(crate) fn is_marked<const LANES: usize>(&self, indices: [u32; LANES]) -> bool {
        let lanes = self.entries.chunks_exact(self.width);
        lanes.zip(indices).all(|(lane, index)| lane[index as usize] & HOT != 0)
    }

    /// Sets the hot bits of entries counted just before.
    pub(crate) fn mark<const LANES: usize>(&mut self, indices: [u32; LANES]) {
        let lanes = self.entries.chunks_exact_mut(self.width);
        lanes.zip(indices).for_each(|(lane, index)| lane[index as usize] |= HOT);
    }

    /// Makes all entries invalid.
    pub(crate) fn clear(&mut self) {
        if self.epoch >> EPOCH_SHIFT == LAST_EPOCH {
            self.entries.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1 << EPOCH_SHIFT;
    }

    /// The counts of the first lane, 0 for invalid entries.
    pub(crate) fn first_lane(&self) -> impl Iterator<Item = u32> {
        self.entries[..self.width]
            .iter()
            .map(|entry| if entry >> EPOCH_SHIFT == self.epoch >> EPOCH_SHIFT { entry & COUNT } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Parameters {
        Parameters { lanes: 2, width: 64, counter_bits: 4, ..Parameters::default() }
    }

    #[test]
    fn the_estimate_is_the_least_and_saturates() {
        let mut sketch = Sketch::new(&small());
        assert_eq!(sketch.count([1, 2]), 1);
        assert_eq!(sketch.count([1, 3]), 1);
        assert_eq!(sketch.count([1, 2]), 2);
        (0..20).for_each(|_| _ = sketch.count([1, 2]));
        assert_eq!(sketch.count([1, 2]), 15);
    }

    #[test]
    fn clearing_forgets_counts_and_hot_bits_also_when_epochs_wrap() {
        let mut sketch = Sketch::new(&small());
        for _ in 0..=2 * LAST_EPOCH {
            assert_eq!(sketch.count([5, 6]), 1);
            assert!(!sketch.is_marked([5, 6]));
            sketch.mark([5, 6]);
            assert!(sketch.is_marked([5, 6]));
            sketch.clear();
            assert!(sketch.first_lane().all(|count| count == 0));
        }
    }

    #[test]
    fn one_lanes_hot_bit_is_not_enough() {
        let mut sketch = Sketch::new(&small());
        sketch.count([1, 2]);
        sketch.mark([1, 2]);
        sketch.count([1, 3]);
        assert!(!sketch.is_marked([1, 3]));
    }
}
