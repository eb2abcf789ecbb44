//! `isotherm simulate --policy all` at three sizes, as a user waits for it: from rows in memory to a report,
//! on all cores, in accesses x policies x sizes per second; and the memory that it took at most, on standard
//! error.
//!
//! The rows are the first misses of `cachelib-social`: 4 million, or as many as `ISOTHERM_BENCH_MISSES` says.

#![allow(missing_docs, reason = "criterion's macros")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use isotherm_core::PageSize;
use isotherm_core::parameters::Scale;
use isotherm_machine::Profile;
use isotherm_sim::{Experiment, FastSize, INTERVALS, Input, StreamBuilder, simulate};
use isotherm_trace::Rows;
use isotherm_workloads::{Limits, MissRecorder};

/// Footprint of HybridTier's workload in bytes, for which the policies' defaults are made.
const REFERENCE_FOOTPRINT: f64 = 267e9;

/// Returns the first misses of the workload, in chunks.
fn misses(count: u64) -> Vec<Rows> {
    let workload = isotherm_workloads::find("cachelib-social").expect("a known workload");
    let parameters = workload.parameters();
    let program = workload.build(&parameters, 1).expect("valid parameters");
    let mut chunks = Vec::new();
    let cache = workload.cache(program.footprint());
    let limits = Limits { misses: count, accesses: u64::MAX };
    let mut recorder = MissRecorder::new(cache, limits, |rows: &mut Rows| {
        chunks.push(std::mem::take(rows));
        ControlFlow::Continue(())
    });
    program.run(&mut recorder);
    recorder.finish();
    chunks
}

fn input(chunks: &[Rows]) -> Input {
    let mut builder = StreamBuilder::new(PageSize::Base);
    chunks.iter().for_each(|rows| builder.append(rows));
    Input {
        name: "cachelib-social".into(),
        workload: true,
        parameters: None,
        provenance: BTreeMap::new(),
        stream: builder.finish("bench").expect("rows"),
        ranges: Vec::new(),
        mappings: Vec::new(),
    }
}

/// Returns the bytes of memory that this process had at most.
fn most_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn all(criterion: &mut Criterion) {
    let misses = misses(
        std::env::var("ISOTHERM_BENCH_MISSES")
            .map_or(4_000_000, |count| count.parse().expect("ISOTHERM_BENCH_MISSES: a number of misses")),
    );
    let profile = Profile::builtin("sapphire-rapids").expect("a built-in machine");
    let accesses = misses.iter().map(|rows| rows.len() as u64).sum::<u64>();
    let sizes = ["1:4", "1:8", "1:16"].map(|size| FastSize::parse(size).expect("a ratio"));
    let runs = isotherm_policies::ALL.len() as u64 * sizes.len() as u64;
    let mut group = criterion.benchmark_group("all");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).warm_up_time(Duration::from_millis(1));
    group.throughput(Throughput::Elements(accesses * runs));
    group.bench_function("three-sizes", |bencher| {
        bencher.iter(|| {
            let input = input(&misses);
            let factor = REFERENCE_FOOTPRINT / input.stream.footprint().0 as f64;
            let experiment = Experiment {
                policies: isotherm_policies::ALL.iter().map(|entry| (entry, entry.parameters())).collect(),
                sizes: sizes.to_vec(),
                profile: &profile,
                seed: 1,
                scale: Scale { footprint: factor, time: factor },
                intervals: INTERVALS,
                version: "bench",
                stop: None,
            };
            simulate(&input, &experiment, &|| ()).expect("a valid experiment")
        });
    });
    group.finish();
    let most = most_memory().unwrap_or(0) / accesses;
    eprintln!("{runs} runs of {accesses} accesses; at most {most} bytes an access, the rows' 22 included");
}

criterion_group!(benches, all);
criterion_main!(benches);
