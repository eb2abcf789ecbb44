//! The seeded randomness of workloads.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A generator whose numbers depend only on its seed.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Seeds a generator.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number of at least 0 and below 1, uniform in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a whole number below `bound`, uniform but for a bias below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns whether an event of this probability happens.
    #[inline]
    pub fn chance(&mut self, probability: Probability) -> bool {
        (self.bits() >> 1) < probability.0
    }
}

/// A probability, ready to be compared with 63 random bits: 1 is reached exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probability(u64);

impl Probability {
    /// Converts a number of 0 to 1; clamps others.
    pub fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * (1u64 << 63) as f64) as u64)
    }
}

/// Scatters the bits of `value` (the finaliser of SplitMix64): a hash for keys and derived seeds.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_events_always_happen_and_impossible_ones_never() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.chance(Probability::new(1.0))));
        assert!((0..1000).all(|_| !random.chance(Probability::new(0.0))));
        let often = (0..100_000).filter(|_| random.chance(Probability::new(0.9))).count();
        assert!((89_000..91_000).contains(&often), "{often}");
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(2);
        let mut seen = [false; 7];
        (0..1000).for_each(|_| seen[random.below(7) as usize] = true);
        assert!(seen.iter().all(|&seen| seen));
    }
}
