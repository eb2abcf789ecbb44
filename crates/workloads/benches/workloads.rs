//! Measures what the generators cost: accesses a second alone, and with the cache that filters them.

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isotherm_workloads::{ALL, CountingMemory, Limits, Memory, MissRecorder, TEST_PRESET, Workload};

/// Runs a workload's small form on `memory`.
fn run(workload: &Workload, memory: &mut dyn Memory) {
    let mut parameters = workload.parameters();
    parameters.set("preset", TEST_PRESET).expect("every workload has it");
    workload.build(&parameters, 1).expect("consistent defaults").run(memory);
}

fn generators(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("workloads");
    group.sample_size(10);
    for workload in ALL {
        let mut counting = CountingMemory::default();
        run(workload, &mut counting);
        group.throughput(Throughput::Elements(counting.loads + counting.stores));
        group.bench_function(format!("{}/accesses", workload.name), |bencher| {
            bencher.iter(|| {
                let mut memory = CountingMemory::default();
                run(workload, &mut memory);
                black_box(memory.checksum())
            });
        });
        let record = || {
            let cache = workload.cache(isotherm_core::Bytes(256 << 20));
            let mut memory = MissRecorder::new(cache, Limits::NONE, |rows| {
                black_box(rows.len());
                ControlFlow::Continue(())
            });
            run(workload, &mut memory);
            memory.misses()
        };
        group.throughput(Throughput::Elements(record()));
        group.bench_function(format!("{}/misses", workload.name), |bencher| bencher.iter(record));
    }
    group.finish();
}

criterion_group!(benches, generators);
criterion_main!(benches);
