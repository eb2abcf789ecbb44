//! Random calls from eight threads, with forks and threads that begin and end; every block is verified.

mod support;

use std::path::Path;
use std::process::Command;

use support::{example, preloaded, succeed};

const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

/// Returns the peak of memory that the program reports, in KiB.
fn peak(output: &str) -> u64 {
    assert!(output.starts_with("ok 1600000 calls"), "{output}");
    output.split_whitespace().nth(3).and_then(|text| text.parse().ok()).expect("KiB")
}

/// Returns the median of three runs' peaks: which calls meet differs from run to run.
fn median_peak(start: impl Fn() -> Command) -> u64 {
    let mut peaks = [(); 3].map(|()| peak(&succeed(start().args(["200000", "8", "4000"]))));
    peaks.sort_unstable();
    peaks[1]
}

#[test]
fn every_block_is_sound_and_memory_is_bounded() {
    let ours = median_peak(|| preloaded(example("alloc-stress")));
    if !Path::new(JEMALLOC).exists() {
        println!("skipped: {JEMALLOC} is not installed to compare memory with");
        return;
    }
    let theirs = median_peak(|| {
        let mut command = Command::new(example("alloc-stress"));
        command.env("LD_PRELOAD", JEMALLOC);
        command
    });
    println!("peak: {ours} KiB, jemalloc's {theirs} KiB");
    assert!(ours as f64 <= 1.15 * theirs as f64, "peak: {ours} KiB, jemalloc's {theirs} KiB");
}

#[test]
fn a_call_site_has_one_region() {
    let mut command = preloaded(example("alloc-stress"));
    succeed(command.args(["20000", "8", "1000"]).env("ISOTHERM_ALLOC_DEPTH", "1"));
}
