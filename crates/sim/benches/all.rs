//! `isotherm simulate --policy all` at three sizes, from an input in memory to a report, on all cores: in
//! accesses x policies x sizes per second; and the memory that it took at most, on standard error.
//!
//! The input is the first misses of `cachelib-social`: 4 million, or as many as `ISOTHERM_BENCH_MISSES` says.

#![allow(missing_docs, reason = "criterion's macros")]

use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, INTERVALS, load_workload, simulate};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: isotherm_linux::HugePagesOrEnd = isotherm_linux::HugePagesOrEnd;

/// Returns the bytes of memory that this process had at most.
fn most_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn all(criterion: &mut Criterion) {
    let misses = std::env::var("ISOTHERM_BENCH_MISSES").map_or(4_000_000, |misses| {
        isotherm_core::parse_count(&misses).expect("ISOTHERM_BENCH_MISSES: a number of misses")
    });
    let workload = isotherm_workloads::find("cachelib-social").expect("a known workload");
    let mut go_on = |_| ControlFlow::Continue(());
    let loaded = load_workload(workload, workload.parameters(), PageSize::Base, 1, misses, &mut go_on)
        .expect("the workload runs");
    let experiment = Experiment {
        policies: isotherm_policies::ALL.iter().map(|entry| (entry, entry.parameters())).collect(),
        sizes: ["1:4", "1:8", "1:16"].map(|size| FastSize::parse(size).expect("a ratio")).to_vec(),
        profile: &Profile::builtin("sapphire-rapids").expect("a built-in machine"),
        seed: 1,
        scale: loaded.scale,
        intervals: INTERVALS,
        version: "bench",
        stop: None,
    };
    let runs = (experiment.policies.len() * experiment.sizes.len()) as u64;
    let mut group = criterion.benchmark_group("all");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).warm_up_time(Duration::from_millis(1));
    group.throughput(Throughput::Elements(misses * runs));
    group.bench_function("three-sizes", |bencher| {
        bencher.iter(|| simulate(&loaded.input, &experiment, &|| ()).expect("a valid experiment"));
    });
    group.finish();
    let most = most_memory().unwrap_or(0) as f64 / misses as f64;
    eprintln!("{runs} runs of {misses} accesses; at most {most:.1} bytes an access");
}

criterion_group!(benches, all);
criterion_main!(benches);
