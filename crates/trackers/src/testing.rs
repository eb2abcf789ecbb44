//! Streams for tests and benchmarks, here and in the crates that use trackers (feature `testing`).

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws `length` pages from a Zipf distribution over `pages` pages, its ranks shuffled over the pages.
///
/// The page of rank `r` has a probability proportional to `r^-exponent`. Draws are exact: each is a search in
/// the cumulative weights. The same arguments give the same stream. Panics if `pages` is 0.
pub fn zipf(pages: u32, exponent: f64, length: usize, seed: u64) -> Vec<u32> {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut page_of_rank: Vec<u32> = (0..pages).collect();
    page_of_rank.shuffle(&mut generator);
    let mut sum = 0.0;
    let weight = |rank: u32| {
        sum += f64::from(rank).powf(-exponent);
        sum
    };
    let cumulative: Vec<f64> = (1..=pages).map(weight).collect();
    let total = cumulative[cumulative.len() - 1];
    let draw = |_| {
        let target = generator.random::<f64>() * total;
        let rank = cumulative.partition_point(|&sum| sum <= target);
        page_of_rank[rank.min(page_of_rank.len() - 1)]
    };
    (0..length).map(draw).collect()
}
