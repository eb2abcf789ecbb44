//! The trace is readable however a recording ends.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_trace::TraceReader;
use isotherm_trace::record::{RecordOptions, Stopped, record};

use crate::Bench;

/// Lines that a sweep of `misc` touches.
const LINES: usize = 1 << 17;

#[test]
fn whatever_ends_the_program_its_status_and_its_misses_are_kept() {
    let bench = Bench::new();
    let program = bench.compile("misc").display().to_string();
    let cases = [
        (vec!["segv"], 139),
        (vec!["kill"], 137),
        (vec!["status", "42"], 42),
        (vec!["close"], 0),
        (vec!["signal"], 0),
    ];
    for (arguments, status) in cases {
        let command: Vec<&str> = std::iter::once(program.as_str()).chain(arguments.iter().copied()).collect();
        let name = arguments[0];
        assert_eq!(bench.record(name, &command).status, status, "{name}");
        let stores = bench.rows(name).store.iter().filter(|&&store| store == 1).count();
        assert!(stores >= LINES, "{name}: {stores} stores");
    }
}

#[test]
fn at_a_bound_the_trace_ends_and_the_program_goes_on() {
    let bench = Bench::new();
    let program = bench.compile("misc").display().to_string();
    let script = format!("{program} status 0; sleep 0.3; {program} status 0; sleep 0.3; {program} status 5");
    let command = ["/bin/sh", "-c", &script];
    let bytes = RecordOptions { max_bytes: Some(1), dependence: false, ..bench.options("bytes", &command) };
    let time = RecordOptions {
        max_time: Some(Duration::ZERO),
        dependence: false,
        ..bench.options("time", &command)
    };
    for (options, reason, name) in [(bytes, Stopped::Bytes, "bytes"), (time, Stopped::Time, "time")] {
        let summary = Bench::try_record(&options).expect("it records");
        assert_eq!((summary.status, summary.stopped), (5, Some(reason)));
        assert!(bench.rows(name).len() < 3 * LINES);
    }
}

#[test]
fn the_stop_flag_finishes_the_trace_and_ends_the_program() {
    let bench = Bench::new();
    let program = bench.compile("misc").display().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let options = RecordOptions { stop: Arc::clone(&stop), ..bench.options("trace", &[&program, "sleep"]) };
    let summary =
        record(&options, &mut |progress| stop.store(progress.rows >= LINES as u64, Ordering::Relaxed));
    let summary = summary.expect("it records");
    assert_eq!((summary.status, summary.stopped), (128 + 15, Some(Stopped::Asked)));
    assert!(bench.rows("trace").len() >= LINES);
}

/// Set when the tests below start themselves as the recorder that meets its end.
const INNER: &str = "ISOTHERM_TEST_DIRECTORY";

fn is_inner() -> Option<String> {
    std::env::var(INNER).ok()
}

/// Starts the test `name` again, in a user namespace and under `prefix`, as the inner one.
fn start_inner(prefix: &str, name: &str, bench: &Bench) -> std::process::Child {
    let test = std::env::current_exe().expect("this test").display().to_string();
    let script = format!("{prefix} {test} --exact --nocapture endings::{name}");
    let mut command = Command::new("unshare");
    command.args(["-Urm", "/bin/sh", "-c", &script]).env(INNER, bench.directory.path());
    command.spawn().expect("unshare is missing: apt-get install util-linux")
}

#[test]
fn a_full_disk_leaves_what_fitted() {
    if let Some(directory) = is_inner() {
        return record_until_the_disk_is_full(&directory);
    }
    let bench = Bench::new();
    bench.compile("patterns");
    let directory = bench.path("small").display().to_string();
    std::fs::create_dir(&directory).expect("a directory");
    let prefix = format!("mount -t tmpfs -o size=20m small {directory} && exec");
    let status = start_inner(&prefix, "a_full_disk_leaves_what_fitted", &bench).wait().expect("it ends");
    assert!(status.success(), "the test inside a user namespace with a small disk failed");
}

fn record_until_the_disk_is_full(directory: &str) {
    let script = format!("for i in $(seq 32); do {directory}/patterns chase; done");
    let command = ["/bin/sh", "-c", &script].map(Into::into).to_vec();
    let output = format!("{directory}/small/trace");
    let options = RecordOptions { dependence: false, ..RecordOptions::new(command, &output) };
    let error = record(&options, &mut |_| {}).expect_err("the disk is full");
    assert_eq!(error.exit_code(), 1);
    println!("{error}");
    let reader = TraceReader::open(&output).expect("the finished parts can be read");
    assert!(reader.rows() >= 1 << 20, "{} rows", reader.rows());
}

#[test]
fn a_recorder_that_is_killed_leaves_the_finished_parts() {
    if let Some(directory) = is_inner() {
        return record_without_end(&directory);
    }
    let bench = Bench::new();
    bench.compile("patterns");
    let mut child = start_inner("exec", "a_recorder_that_is_killed_leaves_the_finished_parts", &bench);
    let part = bench.path("trace/part-00000.parquet");
    while !part.exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    std::fs::write(bench.path("finish"), "").expect("a file");
    assert!(bench.rows("trace").len() > 100_000);
}

fn record_without_end(directory: &str) {
    let script = format!("until [ -e {directory}/finish ]; do {directory}/patterns chase || exit 0; done");
    let command = ["/bin/sh", "-c", &script].map(Into::into).to_vec();
    let options =
        RecordOptions { dependence: false, ..RecordOptions::new(command, format!("{directory}/trace")) };
    let _ = record(&options, &mut |_| {});
}
