//! The speed of decoding samples on one thread: from the memory of a ring to accesses.
//!
//! Each iteration reads 128 KiB of records (100,000 samples per second for 30 ms), in two parts as in a ring
//! that wraps, into a reused vector.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use isotherm_core::TierId;
use isotherm_linux::perf::data_source::{Memory, TierMap};
use isotherm_linux::perf::decode::{Decoded, Decoder};
use isotherm_linux::perf::events::{EventSpec, Format};
use isotherm_linux::perf::record::{Content, SAMPLE, for_each};
use isotherm_linux::source::Access;

/// Bytes of a ring.
const RING: usize = 1 << 17;

/// Returns the body of one of 100,000 samples per second, its address spread over 4 GiB.
fn body(format: Format, frequency: bool, number: u64) -> Vec<u8> {
    let task = 4_242u64 | 4_243 << 32;
    let address = 0x7f00_0000_0000 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
    let mut words = vec![task, 10_000 * number, address];
    words.extend(frequency.then_some(199));
    match format {
        Format::Plain => {}
        // 400 cycles; a load that hit DRAM or CXL memory.
        Format::DataSource => words.extend([400, 2 | 2 << 5 | if number & 1 == 0 { 0xd } else { 0x9 } << 33]),
        Format::Ibs => {
            let (data2, data3) = (3 | (number & 1) << 4, 1 | 1 << 7 | 1 << 17 | 1 << 20 | 400 << 32);
            words.push(60 | 1 << 11 << 32);
            words.extend([0, 0, 0, data2, data3, address, 0]);
        }
    }
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns a ring full of samples, and their number.
fn ring(format: Format, frequency: bool) -> (Vec<u8>, u64) {
    let mut memory = Vec::with_capacity(RING);
    let mut count = 0;
    loop {
        let body = body(format, frequency, count);
        if memory.len() + 8 + body.len() > RING {
            return (memory, count);
        }
        memory.extend(SAMPLE.to_ne_bytes());
        memory.extend(2u16.to_ne_bytes());
        memory.extend((8 + body.len() as u16).to_ne_bytes());
        memory.extend(body);
        count += 1;
    }
}

fn read(memory: &[u8], decoder: &Decoder, scratch: &mut Vec<u8>, accesses: &mut Vec<Access>) {
    // Not at a record's end: one record is joined from both parts.
    let (first, second) = memory.split_at(memory.len() / 3 / 8 * 8 + 8);
    for_each(first, second, scratch, |record| {
        if let Content::Sample(body) = record.content()
            && let Decoded::Access(access) = decoder.decode(body)
        {
            accesses.push(access);
        }
    });
}

fn measure(criterion: &mut Criterion, name: &str, format: Format, frequency: bool) {
    let spec = EventSpec { format, tier: Some(TierId(1)), ..EventSpec::page_faults() };
    let tiers = TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::LocalCxl, TierId(1));
    let period = if frequency { None } else { Some(199) };
    let decoder = Decoder::new(&spec, period, tiers, 2_400).expect("known fields");
    let (memory, count) = ring(format, frequency);
    let (mut scratch, mut accesses) = (Vec::new(), Vec::with_capacity(count as usize));
    read(&memory, &decoder, &mut scratch, &mut accesses);
    assert_eq!(accesses.len() as u64, count, "every record is a sample of memory");
    let mut group = criterion.benchmark_group("perf-decode");
    group.throughput(Throughput::Elements(count));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            accesses.clear();
            read(black_box(&memory), &decoder, &mut scratch, &mut accesses);
            black_box(accesses.len())
        });
    });
    group.finish();
}

/// Times what a drain adds: ordering by time over the rings of 16 processors.
fn sorting(criterion: &mut Criterion) {
    let spec = EventSpec::page_faults();
    let decoder = Decoder::new(&spec, Some(1), TierMap::default(), 0).expect("known fields");
    let (memory, count) = ring(Format::Plain, false);
    let mut accesses = Vec::new();
    read(&memory, &decoder, &mut Vec::new(), &mut accesses);
    let rings = 16;
    let mut mixed: Vec<Access> = Vec::with_capacity(accesses.len());
    (0..rings).for_each(|ring| mixed.extend(accesses.iter().skip(ring).step_by(rings)));
    let mut group = criterion.benchmark_group("perf-decode");
    group.throughput(Throughput::Elements(count));
    group.bench_function("order of 16 rings", |bencher| {
        bencher.iter_batched_ref(
            || mixed.clone(),
            |mixed| mixed.sort_by_key(|access| access.time),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1000))
        .configure_from_args();
    measure(&mut criterion, "fixed period", Format::Plain, false);
    measure(&mut criterion, "frequency", Format::Plain, true);
    measure(&mut criterion, "latency and data source", Format::DataSource, true);
    measure(&mut criterion, "ibs", Format::Ibs, true);
    sorting(&mut criterion);
    criterion.final_summary();
}
