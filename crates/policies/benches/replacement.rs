//! The replacement algorithms' speed on one thread: replay of 20 million accesses to a million pages, Zipf
//! 0.99.
//!
//! Every iteration replays another two million accesses on the warm cache of the one before.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use isotherm_core::PageId;
use isotherm_policies::replacement::{Arc, Clock, Fifo, Lru, Replacement, TwoQ};
use isotherm_trackers::testing;

const PAGES: u32 = 1_000_000;
const REQUESTS: usize = 20_000_000;
/// Accesses an iteration.
const PART: usize = 2_000_000;

fn replay(algorithm: &mut impl Replacement, stream: &[u32]) -> usize {
    stream.iter().filter(|&&page| algorithm.access(PageId(page)).is_hit()).count()
}

fn measure(criterion: &mut Criterion, name: &str, mut algorithm: impl Replacement, stream: &[u32]) {
    replay(&mut algorithm, stream);
    let mut parts = stream.chunks(PART).cycle();
    let mut group = criterion.benchmark_group(format!("replacement-{}", algorithm.capacity()));
    group.throughput(Throughput::Elements(PART as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(replay(&mut algorithm, parts.next().unwrap_or_default())));
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_millis(2000))
        .configure_from_args();
    let stream = testing::zipf(PAGES, 0.99, REQUESTS, 1);
    let pages = PAGES as usize;
    for capacity in [10_000, 100_000] {
        measure(&mut criterion, "lru", Lru::new(pages, capacity), &stream);
        measure(&mut criterion, "arc", Arc::new(pages, capacity), &stream);
        measure(&mut criterion, "2q", TwoQ::new(pages, capacity, TwoQ::KIN, TwoQ::KOUT), &stream);
        measure(&mut criterion, "clock", Clock::new(pages, capacity), &stream);
        measure(&mut criterion, "fifo", Fifo::new(pages, capacity), &stream);
    }
    criterion.final_summary();
}
