//! Checks the memory that workloads announce against their peak.
//!
//! A peak belongs to a whole process, so each run is this test's binary again, with the run in its
//! environment.

use std::ops::ControlFlow;
use std::process::Command;

use isotherm_workloads::{ALL, Layout, Limits, MissRecorder, find};

const RUN: &str = "ISOTHERM_TEST_RUN";
/// Memory in MiB of a run beside the workload: the program, rows, the cache's model.
const BESIDE: f64 = 16.0;

/// Returns `VmHWM` of this process in MiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

fn settings(name: &str, allocator: &str) -> isotherm_core::parameters::Parameters {
    let mut parameters = find(name).expect("it exists").parameters();
    parameters.set("preset", "test").expect("every workload has it");
    parameters.set("allocator", allocator).expect("every workload has it");
    // Graphs have a scale, social-network its users and posts.
    let sized = [("footprint", "64M"), ("scale", "19"), ("operations", "12k")];
    sized.iter().find(|(key, size)| parameters.set(key, size).is_ok()).expect("a size");
    parameters
}

/// The run of another process; does nothing by itself.
#[test]
fn measured() {
    let Ok(run) = std::env::var(RUN) else { return };
    let (name, allocator) = run.split_once(' ').expect("two words");
    let workload = find(name).expect("it exists");
    let parameters = settings(name, allocator);
    let build = || workload.build(&parameters, 1);
    let footprint = build().expect("consistent").footprint();
    let cache = workload.cache(footprint);
    let limits = Limits { misses: 20_000_000, ..Limits::NONE };
    let mut recorder = MissRecorder::new(cache, limits, |_rows| ControlFlow::Continue(()));
    Layout::of(&parameters).run(&mut recorder, cache, build).expect("consistent");
    let said = workload.memory(&parameters, footprint).0 as f64 / f64::from(1 << 20);
    println!("RESULT {} {} {said}", footprint.0 as f64 / f64::from(1 << 20), peak());
}

/// Returns footprint, peak and what is said, in MiB.
fn measure(name: &str, allocator: &str) -> [f64; 3] {
    let own = std::env::current_exe().expect("this binary");
    let output = Command::new(own)
        .args(["--exact", "measured", "--nocapture"])
        .env(RUN, format!("{name} {allocator}"))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("RESULT ")).expect("a result").1;
    let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
    numbers.try_into().expect("three numbers")
}

#[test]
fn no_workload_takes_more_memory_than_is_said_or_less_than_a_third() {
    for workload in ALL {
        let [footprint, peak, said] = measure(workload.name, "sequential");
        println!("{}: footprint {footprint:.0}, peak {peak:.0}, said {said:.0}", workload.name);
        assert!(peak <= said + BESIDE, "{}: {peak:.0} MiB of {said:.0}", workload.name);
        assert!(said <= 3.0 * peak, "{}: {peak:.0} MiB of {said:.0}", workload.name);
    }
}

#[test]
fn another_layout_takes_no_more_than_is_said() {
    for name in ["btree", "redis", "silo", "social-network", "xgboost", "gapbs-cc-kron"] {
        let [_, peak, said] = measure(name, "context");
        println!("{name}: peak {peak:.0}, said {said:.0}");
        assert!(peak <= said + BESIDE, "{name}: {peak:.0} MiB of {said:.0}");
    }
}
