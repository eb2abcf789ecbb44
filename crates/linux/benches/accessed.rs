//! Cost of accessed bits to the scanning thread and to the program.
//!
//! `scan/` measures the halves of a `ClearRefs` scan and all of it, per present page; `mappings/` the same
//! with many mappings; `program/` the time to touch each page once, after a flush and after clearing and a
//! flush: the difference is `WALK`.
#![allow(unsafe_code)]

use std::fs;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isotherm_linux::accessed_bits::{ClearRefs, Found, Resolution, Scanner};
use isotherm_linux::process::Pid;

const PAGE: u64 = 4096;

/// An anonymous mapping of base pages, all of them present.
struct Mapping(Range<u64>);

impl Mapping {
    fn new(bytes: u64) -> Self {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: the mapping just made.
        unsafe { libc::madvise(start, bytes as usize, libc::MADV_NOHUGEPAGE) };
        let this = Self(start as u64..start as u64 + bytes);
        this.touch();
        this
    }

    fn pages(&self) -> u64 {
        (self.0.end - self.0.start) / PAGE
    }

    /// Gives advice about every other `grain` bytes, which splits the mapping if it changes a flag.
    fn advise_every_other(&self, grain: u64, advice: i32) {
        for start in self.0.clone().step_by(2 * grain as usize) {
            // SAFETY: the range lies in the mapping, and the advice changes no contents.
            assert_eq!(unsafe { libc::madvise(start as *mut _, grain as usize, advice) }, 0);
        }
    }

    fn touch(&self) {
        for page in self.0.clone().step_by(PAGE as usize) {
            // SAFETY: the page lies in the mapping, which is writable and reached through this pointer alone.
            unsafe { (page as *mut u64).write_volatile(page) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and nothing refers to it.
        unsafe { libc::munmap(self.0.start as *mut _, (self.0.end - self.0.start) as usize) };
    }
}

fn clear(digit: &str) {
    fs::write("/proc/self/clear_refs", digit).unwrap();
}

fn scan(criterion: &mut Criterion) {
    let mapping = Mapping::new(1 << 30);
    let scanner = ClearRefs::new(Resolution::default()).unwrap();
    let (mut target, mut found) = (scanner.open(Pid(std::process::id())).unwrap(), Found::default());
    let mut group = criterion.benchmark_group("scan");
    group.throughput(Throughput::Elements(mapping.pages()));
    group.bench_function("clear", |bencher| bencher.iter(|| clear("1")));
    group.bench_function("flush", |bencher| bencher.iter(|| clear("4")));
    group.bench_function("smaps", |bencher| bencher.iter(|| fs::read("/proc/self/smaps").unwrap().len()));
    group.bench_function("whole", |bencher| {
        bencher.iter(|| {
            found.clear();
            scanner.scan(&mut target, &mut found).unwrap();
            black_box(found.walked)
        });
    });
    group.finish();
}

fn mappings(criterion: &mut Criterion) {
    let mapping = Mapping::new(1 << 30);
    let scanner = ClearRefs::new(Resolution::default()).unwrap();
    let (mut target, mut found) = (scanner.open(Pid(std::process::id())).unwrap(), Found::default());
    let mut group = criterion.benchmark_group("mappings");
    group.sample_size(10);
    for grain in [2 << 20, 64 << 10] {
        mapping.advise_every_other(grain, libc::MADV_DONTDUMP);
        group.throughput(Throughput::Elements((mapping.0.end - mapping.0.start) / grain));
        group.bench_function(format!("{} KiB", grain >> 10), |bencher| {
            bencher.iter(|| {
                found.clear();
                scanner.scan(&mut target, &mut found).unwrap();
            });
        });
        mapping.advise_every_other(grain, libc::MADV_DODUMP);
    }
    group.finish();
}

fn program(criterion: &mut Criterion) {
    let mapping = Mapping::new(256 << 20);
    let mut group = criterion.benchmark_group("program");
    group.throughput(Throughput::Elements(mapping.pages()));
    for (name, digits) in [("flushed", &["4"][..]), ("cleared and flushed", &["1", "4"][..])] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    digits.iter().for_each(|digit| clear(digit));
                    let start = Instant::now();
                    mapping.touch();
                    total += start.elapsed();
                }
                total
            });
        });
    }
    group.finish();
}

criterion_group!(benches, scan, mappings, program);
criterion_main!(benches);
