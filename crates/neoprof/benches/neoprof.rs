//! Measures the model on one thread at the paper's sizes, 1M requests per iteration, in the thread's CPU
//! time, so that other programs disturb it through the caches only.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isotherm_neoprof::registers::{RESET, SET_THRESHOLD};
use isotherm_neoprof::{Device, Model, Parameters, Registers, Request};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const BATCH: u64 = 1_000_000;

/// Returns requests of which 90 % go to the first tenth of 4M pages (16 GiB), as in the paper's GUPS.
fn gups() -> Vec<Request> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut page = || {
        let span = if random.random_bool(0.9) { 4 << 17 } else { 4 << 20 };
        random.random_range(0..span)
    };
    (0..BATCH).map(|_| Request { page: page(), write: false }).collect()
}

fn uniform() -> Vec<Request> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    (0..BATCH).map(|_| Request { page: random.random_range(0..1 << 32), write: false }).collect()
}

/// Returns this thread's CPU time: the first field of its schedstat.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstat");
    let field = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(field.expect("nanoseconds"))
}

fn accesses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    group.throughput(Throughput::Elements(BATCH));
    let same: Vec<Request> = (0..BATCH).map(|_| Request { page: 42, write: false }).collect();
    for (name, requests) in [("gups", gups()), ("uniform", uniform()), ("same page", same)] {
        let mut model = Model::new(Parameters::default()).expect("the paper's sizes");
        model.write(SET_THRESHOLD, 100);
        let mut batches = 0;
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let start = cpu_time();
                for _ in 0..iterations {
                    batches += 1;
                    if batches % 64 == 0 {
                        model.write(RESET, 1);
                    }
                    model.accesses(black_box(&requests));
                }
                cpu_time() - start
            });
        });
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
