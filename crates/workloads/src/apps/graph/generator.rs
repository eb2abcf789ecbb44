//! The two synthetic graphs of GAPBS and Graph500, as repeatable sequences of edges.

use crate::{Permutation, Random, mix};

/// Bits of randomness for one level of the Kronecker recursion.
const LEVEL_BITS: u32 = 16;
/// Levels that a random word is enough for.
const LANES: u32 = u64::BITS / LEVEL_BITS;
/// The top bit of each lane.
const TOPS: u64 = 0x8000_8000_8000_8000;
/// Probabilities of the quadrants, in units of 2^-16 (Graph500, GAPBS): 0.57, 0.19, 0.19, the rest.
const A: u64 = 37_356;
const B: u64 = 12_452;
const C: u64 = 12_452;
const D: u64 = (1 << LEVEL_BITS) - A - B - C;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Power-law: the Kronecker graph of Graph500, vertices permuted.
    Kronecker,
    /// Every pair of vertices alike.
    Uniform,
}

/// A random graph: `2^scale` vertices, `degree` undirected edges a vertex.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Generator {
    pub(crate) shape: Shape,
    pub(crate) scale: u32,
    pub(crate) degree: u64,
    pub(crate) seed: u64,
}

impl Generator {
    pub(crate) fn vertices(&self) -> usize {
        1 << self.scale
    }

    /// Returns the number of undirected edges, with loops and duplicates.
    pub(crate) fn edges(&self) -> usize {
        self.vertices() * self.degree as usize
    }

    /// Returns every edge with a weight of 1 to 255, in a fixed order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, u8)> + use<> {
        self.pairs().zip(self.weights()).map(|((from, to), weight)| (from, to, weight))
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let mut random = Random::new(mix(self.seed ^ 0x6e0d));
        let order = Permutation::new(1 << self.scale, mix(self.seed ^ 0x1d5));
        let Self { shape, scale, .. } = *self;
        (0..self.edges()).map(move |_| {
            let (from, to) = match shape {
                Shape::Uniform => (random.below(1 << scale), random.below(1 << scale)),
                Shape::Kronecker => {
                    let (from, to) = quadrants(scale, &mut random);
                    (order.at(from), order.at(to))
                }
            };
            (from as u32, to as u32)
        })
    }

    #[inline]
    pub(crate) fn for_each_pair(&self, mut visit: impl FnMut(u32, u32)) {
        self.pairs().for_each(|(from, to)| visit(from, to));
    }

    pub(crate) fn weights(&self) -> impl Iterator<Item = u8> + use<> {
        let mut weights = Random::new(mix(self.seed ^ 0x3e16));
        (0..self.edges()).map(move |_| 1 + weights.below(255) as u8)
    }

    /// Returns the expected number of distinct undirected edges without loops.
    ///
    /// Cells of the adjacency matrix with as many levels in A, in B or C, and in D are alike, also mirrored.
    pub(crate) fn distinct_edges(&self) -> f64 {
        let (n, edges) = (f64::from(self.scale), self.edges() as f64);
        let hit = |probability: f64| -(-probability * edges).exp_m1();
        if self.shape == Shape::Uniform {
            let pairs = (2.0 * n).exp2() / 2.0;
            return pairs * hit(1.0 / pairs);
        }
        let logarithm = |share: u64| (share as f64 / f64::from(1 << LEVEL_BITS)).ln();
        let factorials: Vec<f64> = (0..=self.scale)
            .scan(0.0, |sum, n| {
                *sum += f64::from(n.max(1)).ln();
                Some(*sum)
            })
            .collect();
        let factorial = |n: u32| factorials[n as usize];
        let mut sum = 0.0;
        for a in 0..=self.scale {
            // Cells without a level off the diagonal are loops.
            for b in 1..=self.scale - a {
                let d = self.scale - a - b;
                let ways = factorial(self.scale) - factorial(a) - factorial(b) - factorial(d);
                let cells = (ways + f64::from(b) * 2f64.ln()).exp();
                let probability =
                    f64::from(a) * logarithm(A) + f64::from(b) * logarithm(B) + f64::from(d) * logarithm(D);
                sum += cells / 2.0 * hit(2.0 * probability.exp());
            }
        }
        sum
    }
}

/// Returns an edge before vertices are permuted: one quadrant of the adjacency matrix for each level.
#[inline]
fn quadrants(scale: u32, random: &mut Random) -> (u64, u64) {
    let (mut from, mut to) = (0, 0);
    for word in 0..scale.div_ceil(LANES) {
        let points = random.bits();
        // Without branches, for no processor predicts them: A is upper left, B upper right, C lower left.
        let [first, below, last] = [A, A + B, A + B + C].map(|bound| reached(points, bound));
        from |= below >> word;
        to |= (first ^ below ^ last) >> word;
    }
    (gather(from) >> (u32::BITS - scale), gather(to) >> (u32::BITS - scale))
}

/// Returns the top bits of those of a word's four points that are at least `bound`, itself at least 2^15.
#[inline]
fn reached(points: u64, bound: u64) -> u64 {
    const { assert!(A >= 1 << (LEVEL_BITS - 1)) };
    // With the top bits set no lane borrows from the next.
    ((points | TOPS) - (bound - (1 << (LEVEL_BITS - 1))) * (TOPS >> (LEVEL_BITS - 1))) & points & TOPS
}

/// Gathers the upper bytes of the lanes bit by bit, from the highest, the lowest lane's bit first.
#[inline]
fn gather(lanes: u64) -> u64 {
    let lanes = (0..LANES).map(|lane| {
        let byte = lanes >> (lane * LEVEL_BITS + LEVEL_BITS - u8::BITS) & 0xff;
        u64::from(SPREAD[byte as usize]) << (LANES - 1 - lane)
    });
    lanes.fold(0, |all, lane| all | lane)
}

/// Bits of each byte, spread [`LANES`] apart.
static SPREAD: [u32; 256] = {
    let mut spread = [0; 256];
    let mut place = 0;
    while place < 256 * u8::BITS {
        let (byte, bit) = (place / u8::BITS, place % u8::BITS);
        spread[byte as usize] |= (byte >> bit & 1) << (LANES * bit);
        place += 1;
    }
    spread
};

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn generator(shape: Shape) -> Generator {
        Generator { shape, scale: 12, degree: 8, seed: 3 }
    }

    #[test]
    fn edges_repeat_for_a_seed_and_weights_span_their_range() {
        for shape in [Shape::Kronecker, Shape::Uniform] {
            let first: Vec<_> = generator(shape).iter().collect();
            assert_eq!(first.len(), 8 << 12);
            assert!(generator(shape).iter().eq(first.iter().copied()));
            assert!(first.iter().all(|edge| edge.0 < 1 << 12 && edge.1 < 1 << 12 && edge.2 > 0));
            assert!(first.iter().any(|edge| edge.2 == 1) && first.iter().any(|edge| edge.2 == 255));
        }
    }

    #[test]
    fn the_expected_number_of_distinct_edges_is_what_comes_out() {
        for shape in [Shape::Kronecker, Shape::Uniform] {
            let generator = generator(shape);
            let distinct: HashSet<_> = generator
                .iter()
                .filter(|edge| edge.0 != edge.1)
                .map(|edge| (edge.0.min(edge.1), edge.0.max(edge.1)))
                .collect();
            let ratio = distinct.len() as f64 / generator.distinct_edges();
            assert!((0.99..1.01).contains(&ratio), "{shape:?}: {ratio}");
        }
    }

    #[test]
    fn kronecker_degrees_are_skewed_as_the_quadrants_say_and_uniform_ones_are_not() {
        let hottest = |shape| {
            let mut degrees = vec![0u32; 1 << 12];
            generator(shape).iter().for_each(|edge| degrees[edge.0 as usize] += 1);
            *degrees.iter().max().expect("vertices")
        };
        // The vertex of all-zero bits: (A + B)^12 of 32,768 edges.
        let expected = 0.76f64.powi(12) * 32_768.0;
        assert!((f64::from(hottest(Shape::Kronecker)) / expected - 1.0).abs() < 0.1);
        assert!(hottest(Shape::Uniform) < 30);
    }
}
