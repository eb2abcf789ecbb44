//! YCSB's Zipfian popularity.
//!
//! The generator is that of Gray et al. ("Quickly generating billion-record synthetic databases", 1994),
//! which YCSB took over: the inverse of an approximate distribution turns one uniform number into a rank.
//! YCSB's "scrambled" form draws from 10 billion ranks and hashes the rank to a key, so the hottest key's
//! share does not depend on the number of keys.

use crate::random::{Random, mix};

/// YCSB's Zipfian constant.
const THETA: f64 = 0.99;
/// Ranks that YCSB's scrambled generator draws from.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
/// Terms of the zeta sum that are added one by one; the rest is integrated.
const EXACT: u64 = 1000;

/// Returns the sum of `1 / rank^THETA` over `1..=ranks`.
fn zeta(ranks: u64) -> f64 {
    let exact = ranks.min(EXACT);
    let head: f64 = (1..=exact).map(|rank| (rank as f64).powf(-THETA)).sum();
    let power = |rank: f64| rank.powf(1.0 - THETA) / (1.0 - THETA);
    // The integral over each further rank's cell, from half a rank before it to half a rank behind.
    head + power(ranks as f64 + 0.5) - power(exact as f64 + 0.5)
}

/// Ranks from 0 on, the first the most popular.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    ranks: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Creates the distribution over this many ranks.
    pub fn new(ranks: u64) -> Self {
        let total = zeta(ranks);
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / total);
        Self { ranks: ranks as f64, zeta: total, eta }
    }

    /// Creates the ranks of YCSB's scrambled generator; see [`Self::key`].
    pub fn scrambled() -> Self {
        Self::new(SCRAMBLED_RANKS)
    }

    /// Draws a rank.
    #[inline]
    pub fn rank(&self, random: &mut Random) -> u64 {
        let uniform = random.unit();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1
        } else {
            (self.ranks * (self.eta * (uniform - 1.0) + 1.0).powf(1.0 / (1.0 - THETA))) as u64
        }
    }

    /// Draws a rank and hashes it to a key below `keys`.
    #[inline]
    pub fn key(&self, keys: u64, random: &mut Random) -> u64 {
        mix(self.rank(random)) % keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_which_ycsb_states_for_ten_billion_ranks() {
        assert!((zeta(SCRAMBLED_RANKS) - 26.469_028_201_783_02).abs() < 1e-4, "{}", zeta(SCRAMBLED_RANKS));
        let direct: f64 = (1..=50_000).map(|rank| f64::from(rank).powf(-THETA)).sum();
        assert!((zeta(50_000) - direct).abs() < 1e-6);
    }

    #[test]
    fn ranks_come_as_often_as_their_weight() {
        let (zipf, mut random) = (Zipf::new(1000), Random::new(1));
        let mut counts = [0u32; 1000];
        (0..1_000_000).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1);
        let share = |ranks: std::ops::Range<usize>| f64::from(counts[ranks].iter().sum::<u32>()) / 1e6;
        assert!((share(0..1) - 1.0 / zeta(1000)).abs() < 0.002);
        // The approximation is a few per cent off in the middle, as in YCSB.
        for ranks in [10, 100, 500] {
            let expected = zeta(ranks as u64) / zeta(1000);
            assert!((share(0..ranks) - expected).abs() < 0.03, "{ranks}: {} {expected}", share(0..ranks));
        }
    }

    #[test]
    fn the_hottest_of_a_hundred_thousand_scrambled_keys_gets_its_share() {
        let (zipf, mut random) = (Zipf::scrambled(), Random::new(2));
        let hottest = mix(0) % 100_000;
        let hits = (0..200_000).filter(|_| zipf.key(100_000, &mut random) == hottest).count();
        assert!((hits as f64 / 2e5 - 1.0 / 26.469).abs() < 0.002, "{hits}");
    }
}
