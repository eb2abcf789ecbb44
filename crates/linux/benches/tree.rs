//! The cost of a poll of the process tree for a process with 200 threads: while nothing is forked, and when
//! every thread's children are looked for after a thread was started and joined (whose own cost is printed
//! beside it).

use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

use criterion::{Criterion, criterion_group, criterion_main};
use isotherm_linux::process::tree::Tree;
use isotherm_linux::process::{Pid, ProcRoot};

const THREADS: usize = 200;

fn poll(criterion: &mut Criterion) {
    let ends: Vec<mpsc::Sender<()>> = (0..THREADS)
        .map(|_| {
            let (end, wait) = mpsc::channel();
            thread::spawn(move || wait.recv());
            end
        })
        .collect();
    let mut tree = Tree::follow(ProcRoot::default(), Pid(std::process::id()), None).expect("followed");
    let mut events = Vec::new();
    let mut poll = || {
        events.clear();
        tree.poll(&mut events).expect("polled");
        black_box(events.len())
    };
    let mut group = criterion.benchmark_group("tree/200-threads");
    group.sample_size(20);
    group.bench_function("idle", |bencher| bencher.iter(&mut poll));
    let start = || drop(thread::spawn(|| {}).join());
    group.bench_function("thread-alone", |bencher| bencher.iter(start));
    group.bench_function("thread-and-scan", |bencher| {
        bencher.iter(|| {
            start();
            poll()
        });
    });
    group.finish();
    drop(ends);
}

criterion_group!(benches, poll);
criterion_main!(benches);
