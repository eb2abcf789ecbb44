//! Engine throughput on one thread: a trace in memory, a policy and simulated tiers, in accesses per second;
//! and the speed at which rows become such a stream.
//!
//! The rows are the first misses of workloads at a small size: `cachelib-cdn`, whose objects are read in
//! bursts, and `gups`, whose every access is to another page. `zipf` is the replacement algorithms' stream:
//! 20 million loads of a million pages, Zipf 0.99. The time of a run is its `wall_s`, without the bounds and
//! without TLB look-ups, which all policies of a simulation share; `look-ups` is the time of the latter.

#![allow(missing_docs, reason = "criterion's macros")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use isotherm_core::PageSize;
use isotherm_core::parameters::Scale;
use isotherm_machine::{Footprint, Profile, Translator, Triggers};
use isotherm_sim::{Access, Experiment, FastSize, INTERVALS, Input, Stream, StreamBuilder, simulate};
use isotherm_trace::Rows;
use isotherm_trackers::testing;
use isotherm_workloads::{Limits, MissRecorder};

/// Accesses of a stream.
const ACCESSES: u64 = 8_000_000;
/// Footprint of FreqTier's workload in bytes (Table I), for which the policy's defaults are made.
const REFERENCE_FOOTPRINT: f64 = 267e9;
/// Its threads (section VI-C).
const REFERENCE_THREADS: f64 = 16.0;

/// Returns the first misses of a workload, in chunks.
fn misses(name: &str) -> Vec<Rows> {
    let workload = isotherm_workloads::find(name).expect("a known workload");
    let parameters = workload.parameters();
    let program = workload.build(&parameters, 1).expect("valid parameters");
    let mut chunks = Vec::new();
    let limits = Limits { misses: ACCESSES, accesses: u64::MAX };
    let cache = workload.cache(program.footprint());
    let mut recorder = MissRecorder::new(cache, limits, |rows: &mut Rows| {
        chunks.push(std::mem::take(rows));
        ControlFlow::Continue(())
    })
    .with_factor(workload.instruction_factor(&parameters));
    program.run(&mut recorder);
    recorder.finish();
    chunks
}

fn stream(chunks: &[Rows]) -> Stream {
    let mut builder = StreamBuilder::new(PageSize::Base);
    chunks.iter().for_each(|rows| builder.append(rows));
    builder.finish("bench").expect("rows")
}

/// Returns loads of Zipf-popular pages, one per page, of one thread.
fn zipf() -> Stream {
    const PAGES: u32 = 1_000_000;
    let access = |page| Access { page, instructions: 20, thread: 0, dependence: 0, ..Access::default() };
    Stream {
        accesses: testing::zipf(PAGES, 0.99, 20_000_000, 1).into_iter().map(access).collect(),
        pages: (0..u64::from(PAGES)).map(|page| (0, page << 12)).collect(),
        threads: 1,
        ..Stream::default()
    }
}

fn input(name: &str, stream: Stream) -> Input {
    Input {
        name: name.into(),
        workload: true,
        parameters: None,
        provenance: BTreeMap::new(),
        stream,
        ranges: Vec::new(),
        mappings: Vec::new(),
    }
}

/// Looks up every page of the input once.
fn look_up(input: &Input, profile: &Profile) -> usize {
    let stream = &input.stream;
    let footprint = Footprint { pages: stream.pages.len(), page_size: stream.page_size, scale: 1.0 };
    let mut translator = Translator::new(profile, stream.threads, footprint);
    let walks = |access: &&Access| {
        let triggers = Triggers { stream: access.trigger, pair: access.pair };
        translator.look_up(access.thread, access.page, triggers).walks()
    };
    stream.accesses.iter().filter(walks).count()
}

/// Returns the time of `runs` runs of a policy at 1:8, one after another.
fn replay(input: &Input, profile: &Profile, policy: &str, runs: u64) -> Duration {
    let policy = isotherm_policies::find(policy).expect("a known policy");
    let footprint = REFERENCE_FOOTPRINT / input.stream.footprint().0 as f64;
    let experiment = Experiment {
        policies: (0..runs).map(|_| (policy, policy.parameters())).collect(),
        sizes: vec![FastSize::parse("1:8").expect("a ratio")],
        profile,
        seed: 1,
        scale: Scale { footprint, time: footprint * input.stream.threads as f64 / REFERENCE_THREADS },
        intervals: INTERVALS,
        version: "bench",
        stop: None,
    };
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let report = alone.install(|| simulate(input, &experiment, &|| ())).expect("a valid experiment");
    report.runs.iter().map(|run| Duration::from_secs_f64(run.wall_s)).sum()
}

fn engine(criterion: &mut Criterion) {
    let profile = Profile::builtin("freqtier-cxl1").expect("a built-in machine");
    for name in ["cachelib-cdn", "gups"] {
        let chunks = misses(name);
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat).sample_size(10).warm_up_time(Duration::from_millis(1));
        group.throughput(Throughput::Elements(chunks.iter().map(|rows| rows.len() as u64).sum()));
        group.bench_function("stream", |bencher| bencher.iter(|| stream(&chunks)));
        let input = input(name, stream(&chunks));
        group.bench_function("look-ups", |bencher| bencher.iter(|| look_up(&input, &profile)));
        group.bench_function("freqtier", |bencher| {
            bencher.iter_custom(|runs| replay(&input, &profile, "freqtier", runs));
        });
        group.finish();
    }
    let input = input("zipf", zipf());
    let mut group = criterion.benchmark_group("zipf");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).warm_up_time(Duration::from_millis(1));
    group.throughput(Throughput::Elements(input.stream.accesses.len() as u64));
    group.bench_function("look-ups", |bencher| bencher.iter(|| look_up(&input, &profile)));
    for policy in ["first-touch", "freqtier", "hybridtier", "memtis"] {
        group.bench_function(policy, |bencher| {
            bencher.iter_custom(|runs| replay(&input, &profile, policy, runs));
        });
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
