//! Measures the trackers on one thread, on a Zipf 0.9 stream over 8,388,608 pages whose ranks are shuffled.
//!
//! The filter that SPECIFICATION.md names has its own type, so its single calls are inlined as in any program
//! that names the type; "boxed" filters are called through `dyn Tracker`, as by policies, which choose the
//! shape at run time.
//!
//! Every iteration is a batch of 100,000 keys from another part of the stream: 1 ms is 10 ns per key.
//! Benchmarks that increase counters age them once per pass of the stream, outside the measured time, so that
//! counters neither stay at zero nor all saturate.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use isotherm_trackers::{
    Blocked, Coalescer, Cooling, DenseTable, Filter, FilterShape, Layout, PacTable, Tracker, testing,
};

const PAGES: u32 = 8_388_608;
const BATCH: usize = 100_000;
const BATCHES: usize = 40;

/// Runs `body` on one batch after another.
fn batches<T: Tracker + ?Sized>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    tracker: &mut T,
    mut body: impl FnMut(&mut T, usize),
) {
    let mut batch = 0;
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                batch = (batch + 1) % BATCHES;
                if batch == 0 && !name.starts_with("get") {
                    tracker.age();
                }
                let start = Instant::now();
                body(tracker, batch);
                time += start.elapsed();
            }
            time
        });
    });
}

/// Measures every operation of one tracker.
fn measure<T: Tracker + ?Sized>(criterion: &mut Criterion, name: &str, tracker: &mut T, stream: &[u32]) {
    let items: Vec<(u32, u32)> = stream.iter().map(|&key| (key, 1)).collect();
    let (keys, items) =
        (|batch: usize| &stream[batch * BATCH..][..BATCH], |batch: usize| &items[batch * BATCH..][..BATCH]);
    let (mut changes, mut counts, mut coalescer) = (Vec::new(), Vec::new(), Coalescer::default());
    (0..BATCHES).for_each(|batch| tracker.increase_batch(items(batch), &mut changes));

    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH as u64));
    batches(&mut group, "increment", tracker, |tracker, batch| {
        keys(batch).iter().for_each(|&key| {
            black_box(tracker.increment(key));
        });
    });
    batches(&mut group, "increment-batch", tracker, |tracker, batch| {
        tracker.increase_batch(items(batch), &mut changes);
    });
    batches(&mut group, "coalesced-batch", tracker, |tracker, batch| {
        tracker.increase_batch(coalescer.coalesce(keys(batch).iter().copied()), &mut changes);
    });
    batches(&mut group, "get", tracker, |tracker, batch| {
        keys(batch).iter().for_each(|&key| {
            black_box(tracker.get(key));
        });
    });
    batches(&mut group, "get-batch", tracker, |tracker, batch| tracker.get_batch(keys(batch), &mut counts));
    group.finish();
}

/// Measures ageing: a pass over all counters.
fn measure_ageing(criterion: &mut Criterion, name: &str, tracker: &mut dyn Tracker) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(tracker.bytes() as u64));
    group.bench_function("age", |bencher| bencher.iter(|| tracker.age()));
    group.finish();
}

fn measure_coalescing(criterion: &mut Criterion, stream: &[u32]) {
    let mut coalescer = Coalescer::default();
    let mut group = criterion.benchmark_group("coalescer");
    group.throughput(Throughput::Elements(BATCH as u64));
    batches(&mut group, "coalesce", &mut DenseTable::<u8>::new(0), |_, batch| {
        black_box(coalescer.coalesce(stream[batch * BATCH..][..BATCH].iter().copied()));
    });
    group.finish();
}

/// Measures PACT's updates: a stall added to each page's value, in batches as at a window's end.
fn measure_pac(criterion: &mut Criterion, stream: &[u32]) {
    let mut table = PacTable::new(PAGES as usize, usize::MAX, Cooling::OFF);
    let mut values = Vec::new();
    let first: Vec<(u32, f32)> = (0..PAGES).map(|page| (page, 1.0)).collect();
    table.add_batch(&first, &mut values);
    println!(
        "pac-table: {:.1} bytes a page at {} pages",
        table.bytes() as f64 / table.len() as f64,
        table.len()
    );
    let updates: Vec<(u32, f32)> = stream.iter().map(|&page| (page, 100.0)).collect();
    let mut group = criterion.benchmark_group("pac-table");
    group.throughput(Throughput::Elements(BATCH as u64));
    batches(&mut group, "update-batch", &mut DenseTable::<u8>::new(0), |_, batch| {
        table.add_batch(&updates[batch * BATCH..][..BATCH], &mut values);
    });
    group.finish();
}

/// Measures the machine's lower bound for a batch in a filter of this size: independent reads of one word of
/// a random line each, with the lines' numbers known beforehand.
fn measure_floor(criterion: &mut Criterion, mebibytes: usize, stream: &[u32]) {
    let lines = vec![[1_u64; 8]; mebibytes << 14];
    // The product's upper half gives each page another random line.
    let line = |key: &u32| ((u64::from(key.wrapping_mul(0x9E37_79B1)) * lines.len() as u64) >> 32) as u32;
    let numbers: Vec<u32> = stream.iter().map(line).collect();
    let mut group = criterion.benchmark_group(format!("floor-{mebibytes}MiB"));
    group.throughput(Throughput::Elements(BATCH as u64));
    batches(&mut group, "read", &mut DenseTable::<u8>::new(0), |_, batch| {
        let (groups, _) = numbers[batch * BATCH..][..BATCH].as_chunks::<8>();
        let read = |sum, &number: &u32| sum ^ lines[number as usize][0];
        black_box(groups.iter().fold(0, |sum, group| group.iter().fold(sum, read)));
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args();
    let stream = testing::zipf(PAGES, 0.9, BATCH * BATCHES, 1);

    for mebibytes in [1_u64, 128] {
        measure_floor(&mut criterion, mebibytes as usize, &stream);
        let name = |kind: &str| format!("{kind}-{mebibytes}MiB");
        let shape = |hashes| FilterShape::with_bytes(mebibytes << 20, 4, hashes).expect("a valid shape");
        let mut filter = Filter::<Blocked, 4, 4>::new(shape(4)).expect("memory for a filter");
        measure(&mut criterion, &name("blocked-4bit-k4"), &mut filter, &stream);
        measure_ageing(&mut criterion, &name("blocked-4bit-k4"), &mut filter);
        let boxed = [
            (Layout::Blocked, 4, "boxed-blocked-4bit-k4"),
            (Layout::Blocked, 3, "boxed-blocked-4bit-k3"),
            (Layout::Standard, 4, "boxed-standard-4bit-k4"),
        ];
        for (layout, hashes, kind) in boxed {
            let mut filter = shape(hashes).build(layout).expect("memory for a filter");
            measure(&mut criterion, &name(kind), &mut *filter, &stream);
        }
    }
    measure(&mut criterion, "dense-u8-8MiB", &mut DenseTable::<u8>::new(PAGES as usize), &stream);
    measure_pac(&mut criterion, &stream);
    measure_coalescing(&mut criterion, &stream);
    criterion.final_summary();
}
