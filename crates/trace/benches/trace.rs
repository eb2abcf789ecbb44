//! Reading and writing a trace, in rows a second; and its size, in bytes a row, on stderr.
//!
//! The rows are made to compress like a real program's: streams, a hot set and some random lines. To measure
//! a recorded trace, name it in `ISOTHERM_BENCH_TRACE`.

#![allow(missing_docs, reason = "criterion's macros")]

use std::path::{Path, PathBuf};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use isotherm_trace::{Provenance, Row, Rows, TraceReader, TraceWriter};

const ROWS: u64 = 4_000_000;

/// Rows of a program of two threads, each of which walks arrays and looks things up.
fn synthetic() -> Rows {
    let mut rows = Rows::default();
    let mut state = 1_u64;
    for index in 0..ROWS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = state >> 40;
        let walks = random % 16 < 10;
        let line = if walks { 0x5_5580_0000 + index / 2 } else { 0x1_fc00_0000 + random * random % 300_000 };
        rows.push(Row {
            process: 0,
            thread: (index >> 12) as u32 & 1,
            instructions: if walks { 14 } else { 20 + (random % 60) as u32 },
            line,
            store: random.is_multiple_of(32),
            dependence: u8::from(!walks),
        });
    }
    rows
}

fn write(path: &Path, rows: &Rows) -> u64 {
    let mut writer = TraceWriter::create(path, Provenance::new("bench")).expect("a new trace");
    writer.append(rows).expect("rows are written");
    writer.finish().expect("the trace is finished").bytes
}

fn read_all(path: &Path) -> u64 {
    let mut reader = TraceReader::open(path).expect("a trace");
    let mut rows = Rows::default();
    let mut sum = 0_u64;
    while reader.next(&mut rows).expect("rows") {
        sum = sum.wrapping_add(rows.line[rows.len() - 1]);
    }
    sum
}

fn trace(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let named = std::env::var_os("ISOTHERM_BENCH_TRACE").map(PathBuf::from);
    let path = named.unwrap_or_else(|| {
        let path = directory.path().join("synthetic.trace");
        write(&path, &synthetic());
        path
    });
    let mut reader = TraceReader::open(&path).expect("a trace");
    let (mut rows, mut chunk) = (Rows::default(), Rows::default());
    while (rows.len() as u64) < ROWS && reader.next(&mut chunk).expect("rows") {
        rows.extend_from(&chunk, 0..chunk.len());
    }
    eprintln!("{:.2} bytes a row", reader.bytes_on_disk() as f64 / reader.rows() as f64);

    let mut group = criterion.benchmark_group("trace");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.throughput(Throughput::Elements(reader.rows()));
    group.bench_function("read", |bencher| bencher.iter(|| read_all(&path)));
    group.throughput(Throughput::Elements(rows.len() as u64));
    let mut number = 0;
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            number += 1;
            write(&directory.path().join(format!("{number}.trace")), &rows)
        });
    });
    group.finish();
}

criterion_group!(benches, trace);
criterion_main!(benches);
