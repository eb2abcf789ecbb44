//! The speed of finding present pages, against the raw read of the same part of `/proc/PID/pagemap`.
//!
//! Both are measured in one run, in pages per second; a last line gives the ratio of the medians of
//! interleaved pairs. "dense": all pages present; "holes": every other page.

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isotherm_linux::memory::pagemap::{Method, PageRun, Pagemap};
use isotherm_linux::process::{Pid, ProcRoot};

const PAGE: usize = 4096;
const PAGES: usize = 128 << 10;
const PAIRS: usize = 15;

/// Returns 512 MiB of which one page in `every` is present.
fn memory(every: usize) -> (Vec<u8>, Range<u64>) {
    let mut bytes: Vec<u8> = vec![0; PAGES * PAGE];
    for page in (0..PAGES).step_by(every) {
        bytes[page * PAGE + 128] = 1;
    }
    let start = bytes.as_ptr() as u64;
    (bytes, start..start + (PAGES * PAGE) as u64)
}

fn raw(file: &File, range: &Range<u64>, buffer: &mut [u8]) -> u8 {
    let bytes = PAGES * 8;
    let first = range.start / PAGE as u64 * 8;
    for offset in (0..bytes).step_by(buffer.len()) {
        file.read_exact_at(buffer, first + offset as u64).expect("the page table");
    }
    buffer[7]
}

fn ours(pagemap: &mut Pagemap, range: &Range<u64>, runs: &mut [PageRun]) -> u64 {
    let (mut next, mut pages) = (range.start, 0);
    while next < range.end {
        let scanned = pagemap.scan(next..range.end, runs).expect("scanned");
        next = scanned.next;
        pages += runs[..scanned.runs].iter().map(|run| run.pages).sum::<u64>();
    }
    pages
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn scan(criterion: &mut Criterion) {
    let file = File::open("/proc/self/pagemap").expect("own page table");
    let open = || Pagemap::open(&ProcRoot::default(), Pid(std::process::id())).expect("own page table");
    let mut buffer = vec![0; 512 << 10];
    let mut runs = vec![PageRun::default(); 4096];
    for (name, every) in [("dense", 1), ("holes", 2)] {
        let (bytes, range) = memory(every);
        let mut group = criterion.benchmark_group(format!("pagemap/{name}"));
        group.throughput(Throughput::Elements(PAGES as u64)).sample_size(20);
        group.bench_function("raw-read", |bencher| bencher.iter(|| raw(&file, &range, &mut buffer)));
        for (label, method) in [("scan", open().method()), ("read", Method::Read)] {
            let mut pagemap = open().with_method(method);
            group.bench_function(label, |bencher| bencher.iter(|| ours(&mut pagemap, &range, &mut runs)));
            let mut ratios: Vec<f64> = (0..PAIRS)
                .map(|_| {
                    let theirs = timed(|| _ = black_box(raw(&file, &range, &mut buffer)));
                    let own = timed(|| _ = black_box(ours(&mut pagemap, &range, &mut runs)));
                    theirs.as_secs_f64() / own.as_secs_f64()
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let ratio = ratios[PAIRS / 2] * 100.0;
            let _ = writeln!(
                std::io::stdout(),
                "pagemap/{name}: {label} ({method:?}) runs at {ratio:.0} % of the raw read's speed"
            );
        }
        group.finish();
        drop(bytes);
    }
}

criterion_group!(benches, scan);
criterion_main!(benches);
