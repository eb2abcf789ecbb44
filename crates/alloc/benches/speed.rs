//! Times `malloc` and `free`, and the loading of a B-tree, under this allocator, the C library's, jemalloc
//! and mimalloc.
//!
//! Each runs in its own program, which measures processor time. Names are `pairs_SIZE_THREADS/ALLOCATOR`,
//! with `_frame_pointers` if the calling program is compiled with them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

const RECORDS: &str = "300000";

/// Returns the installed allocators with their libraries.
fn allocators() -> Vec<(&'static str, PathBuf)> {
    let bench = std::env::current_exe().expect("a bench knows its file");
    let own = bench.parent().expect("target/release/deps").join("libisotherm_alloc.so");
    let system = Path::new("/usr/lib/x86_64-linux-gnu");
    let all = [
        ("glibc", PathBuf::new()),
        ("context", own),
        ("jemalloc", system.join("libjemalloc.so.2")),
        ("mimalloc", system.join("libmimalloc.so.2")),
    ];
    all.into_iter().filter(|(name, library)| *name == "glibc" || library.exists()).collect()
}

/// Compiles one of `programs/`, with or without frame pointers.
fn compile(folder: &Path, source: &str, frame_pointers: bool) -> PathBuf {
    let option = if frame_pointers { "-fno-omit-frame-pointer" } else { "-fomit-frame-pointer" };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source);
    let target = folder.join(format!("{}{option}", source.file_stem().expect("a name").to_string_lossy()));
    let status =
        Command::new("gcc").args(["-O2", "-pthread", option]).arg(source).arg("-o").arg(&target).status();
    assert!(status.expect("gcc").success());
    target
}

/// A running `loop.c`.
struct Loop {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Loop {
    fn start(program: &Path, library: &Path) -> Self {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", library).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output }
    }

    /// Returns the time of `pairs` pairs, scaled from whole batches.
    fn time(&mut self, size: usize, threads: usize, pairs: u64) -> Duration {
        const BATCH: u64 = 16;
        let whole = pairs.next_multiple_of(BATCH);
        writeln!(self.input, "{size} {threads} {whole}").expect("to write");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("to read");
        let nanoseconds: f64 = line.trim().parse().expect("nanoseconds");
        Duration::from_nanos((nanoseconds * pairs as f64 / whole as f64) as u64)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pairs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, frame_pointers) in [("", false), ("_frame_pointers", true)] {
        let program = compile(folder.path(), "loop.c", frame_pointers);
        for threads in [1, 2] {
            for size in [16, 64, 256, 1024, 4096] {
                let mut group = criterion.benchmark_group(format!("pairs_{size}_{threads}{kind}"));
                for (name, library) in allocators() {
                    let mut running = Loop::start(&program, &library);
                    group.bench_function(name, |bencher| {
                        bencher.iter_custom(|pairs| running.time(size, threads, pairs));
                    });
                }
            }
        }
    }
}

fn load(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "btree.c", false);
    let mut group = criterion.benchmark_group("btree_load");
    group.sample_size(10);
    for (name, library) in allocators() {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| load_once(&program, &library)).sum());
        });
    }
}

/// Returns the time of loading that the program reports.
fn load_once(program: &Path, library: &Path) -> Duration {
    let output =
        Command::new(program).args([RECORDS, "0"]).env("LD_PRELOAD", library).output().expect("btree");
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("load SECONDS");
    Duration::from_secs_f64(seconds)
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(700));
    targets = pairs, load
}
criterion_main!(benches);
