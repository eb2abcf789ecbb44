//! The sketch: lanes of counters, each with a hot bit and a valid bit.
//!
//! Each lane is an array of 16-bit counters, so that those of the paper's sizes take 2 MiB and stay in a
//! core's cache; hot bits lie apart because only hot pages need them. A counter of 0 stands for a clear valid
//! bit, since valid ones are at least 1.

use crate::Parameters;

const WORD: usize = u64::BITS as usize;

#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    counters: Vec<u16>,
    hot: Vec<u64>,
    width: usize,
    counter_max: u16,
}

impl Sketch {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let width = parameters.width as usize;
        let entries = width * parameters.lanes as usize;
        Self {
            counters: vec![0; entries],
            hot: vec![0; entries.div_ceil(WORD)],
            width,
            counter_max: parameters.counter_max() as u16,
        }
    }

    /// Counts an access in all lanes. Returns the least of their counts: the page's estimate.
    #[inline]
    pub(crate) fn count<const LANES: usize>(&mut self, indices: [u32; LANES]) -> u32 {
        let mut estimate = u16::MAX;
        for (lane, index) in self.counters.chunks_exact_mut(self.width).zip(indices) {
            let counter = &mut lane[index as usize];
            // Saturates without a branch, and without overflow at 16 bits.
            *counter += u16::from(*counter < self.counter_max);
            estimate = estimate.min(*counter);
        }
        estimate.into()
    }

    /// Loads a page's counters to bring their cache lines near.
    #[inline]
    pub(crate) fn load<const LANES: usize>(&self, indices: [u32; LANES]) -> u16 {
        let lanes = self.counters.chunks_exact(self.width);
        lanes.zip(indices).fold(0, |sum, (lane, index)| sum ^ lane[index as usize])
    }

    /// Returns the word and the bit of each of the entries' hot bits.
    fn bits<const LANES: usize>(
        &self,
        indices: [u32; LANES],
    ) -> impl Iterator<Item = (usize, u64)> + use<LANES> {
        let width = self.width;
        indices.into_iter().enumerate().map(move |(lane, index)| {
            let entry = lane * width + index as usize;
            (entry / WORD, 1 << (entry % WORD))
        })
    }

    pub(crate) fn is_marked<const LANES: usize>(&self, indices: [u32; LANES]) -> bool {
        self.bits(indices).all(|(word, bit)| self.hot[word] & bit != 0)
    }

    pub(crate) fn mark<const LANES: usize>(&mut self, indices: [u32; LANES]) {
        self.bits(indices).for_each(|(word, bit)| self.hot[word] |= bit);
    }

    pub(crate) fn clear(&mut self) {
        self.counters.fill(0);
        self.hot.fill(0);
    }

    /// Returns the counts of the first lane, 0 for invalid entries.
    pub(crate) fn first_lane(&self) -> impl Iterator<Item = u32> {
        self.counters[..self.width].iter().map(|&counter| counter.into())
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
    fn clearing_forgets_counts_and_hot_bits() {
        let mut sketch = Sketch::new(&small());
        for _ in 0..3 {
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

    #[test]
    fn sixteen_bits_saturate_too() {
        let mut sketch = Sketch::new(&Parameters { width: 64, ..Parameters::default() });
        (0..70_000).for_each(|_| _ = sketch.count([1, 2]));
        assert_eq!(sketch.count([1, 2]), 65_535);
    }
}
