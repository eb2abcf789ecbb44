//! A random-looking permutation of the numbers below a bound that needs no memory.
//!
//! Storing the order of a pointer chase over a terabyte would need the terabyte. Instead the order is
//! computed: a few rounds of multiplication and folding are a bijection on the next power of two, and results
//! beyond the bound go through it again (cycle walking, less than two rounds on average).

use crate::random::mix;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
}

impl Permutation {
    /// Creates the permutation of `seed`; `len` is at least 1 and at most 2^63.
    pub(crate) fn new(len: u64, seed: u64) -> Self {
        let bits = len.next_power_of_two().trailing_zeros().max(2);
        let keys = [1, 2, 3].map(|round| mix(seed ^ mix(round)));
        Self { len, mask: (1 << bits) - 1, shift: bits.div_ceil(2), keys }
    }

    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut value = self.scatter(index);
        while value >= self.len {
            value = self.scatter(value);
        }
        value
    }

    #[inline]
    fn scatter(&self, mut value: u64) -> u64 {
        for key in self.keys {
            // Odd multiplier, addition and a fold by at least half the width can each be undone.
            value = value.wrapping_mul(key | 1).wrapping_add(key >> 32) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_appears_once() {
        for len in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            for seed in 0..8 {
                let permutation = Permutation::new(len, seed);
                let mut seen = vec![false; len as usize];
                (0..len).for_each(|index| seen[permutation.at(index) as usize] = true);
                assert!(seen.iter().all(|&seen| seen), "length {len}, seed {seed}");
            }
        }
    }

    #[test]
    fn neighbours_do_not_stay_together() {
        let permutation = Permutation::new(1 << 16, 7);
        let near =
            (1..1u64 << 16).filter(|&i| permutation.at(i).abs_diff(permutation.at(i - 1)) < 64).count();
        assert!(near < 1000, "of 65,535 steps {near} stay within 64, at random about 128");
    }
}
