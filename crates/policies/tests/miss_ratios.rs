//! Miss ratios of the replacement algorithms on a generated stream, against those of an independent
//! implementation.
//!
//! The reference is libCacheSim (github.com/1a1a11a/libCacheSim) on the same distribution: 20 million
//! requests to a million objects of equal size, Zipf 0.99, an empty cache at the start. Its CLOCK has one
//! reference bit; its 2Q is the full version with `Kin` a quarter and `Kout` half of the capacity.

use std::sync::LazyLock;

use isotherm_core::PageId;
use isotherm_policies::replacement::{Arc, Clock, Fifo, Lru, Replacement, TwoQ};
use isotherm_trackers::testing;

const PAGES: u32 = 1_000_000;
const REQUESTS: usize = 20_000_000;
/// Largest deviation of a miss ratio, as a share of its reference.
const TOLERANCE: f64 = 0.01;

static STREAM: LazyLock<Vec<u32>> = LazyLock::new(|| testing::zipf(PAGES, 0.99, REQUESTS, 1));

fn holds(name: &str, mut algorithm: impl Replacement, reference: f64) {
    let missed = STREAM.iter().filter(|&&page| !algorithm.access(PageId(page)).is_hit()).count();
    let ratio = missed as f64 / REQUESTS as f64;
    println!("{name} {}: {ratio:.4}, reference {reference}", algorithm.capacity());
    assert!((ratio / reference - 1.0).abs() < TOLERANCE, "{name}: {ratio:.4} for {reference}");
}

/// References in the order LRU, ARC, 2Q, CLOCK, FIFO.
fn all_hold(capacity: usize, [lru, arc, twoq, clock, fifo]: [f64; 5]) {
    let pages = PAGES as usize;
    holds("lru", Lru::new(pages, capacity), lru);
    holds("arc", Arc::new(pages, capacity), arc);
    holds("2q", TwoQ::new(pages, capacity, TwoQ::KIN, TwoQ::KOUT), twoq);
    holds("clock", Clock::new(pages, capacity), clock);
    holds("fifo", Fifo::new(pages, capacity), fifo);
}

#[test]
fn a_cache_of_a_hundredth_of_the_objects_misses_as_the_reference_does() {
    all_hold(10_000, [0.4339, 0.3561, 0.3675, 0.4241, 0.4690]);
}

#[test]
fn a_cache_of_a_tenth_of_the_objects_misses_as_the_reference_does() {
    all_hold(100_000, [0.2349, 0.1980, 0.2054, 0.2277, 0.2659]);
}
