//! A deterministic machine gives the same bytes whatever else the host does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::{Lab, target};

/// Fields of a result that depend on the host: wall time and paths.
const OF_THE_HOST: [&str; 2] = ["elapsed_seconds", "folder"];

/// Runs a program; returns its output, its result and what its guest left, by name.
fn run(lab: &Lab, tiering: &[&str], program: &[&str]) -> (Vec<u8>, Value, BTreeMap<String, Vec<u8>>) {
    let options = ["--machine", "deterministic", "--start", "slow", "--fast", "8M", "--json"];
    let guest = lab.run(&[tiering, &options].concat(), program);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: Value =
        serde_json::from_str(guest.err.lines().last().unwrap_or_default()).expect("our result");
    let mut run = result["runs"][0].clone();
    let fields = run.as_object_mut().expect("a run");
    let [_, folder] = OF_THE_HOST.map(|field| fields.remove(field).expect("a field of the host"));
    let mut files = BTreeMap::new();
    let folder = Path::new(folder.as_str().expect("a path"));
    collect(&folder.join("share"), &mut files);
    let measured = std::fs::read(folder.join("measured.json")).expect("what the plugin counted");
    files.insert("measured.json".into(), measured);
    (guest.out, run, files)
}

fn collect(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the run") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let name = path.file_name().expect("a name").to_string_lossy();
            let parent = folder.file_name().expect("a name").to_string_lossy();
            files.insert(format!("{parent}/{name}"), std::fs::read(&path).expect("a file of the run"));
        }
    }
}

/// Does something while twice as many threads as the host has processors do nothing but compute.
fn beside_busy_threads<T>(what: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        for _ in 0..2 * processors {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = what();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Checks that two runs are one: their outputs, results and files.
#[track_caller]
fn same(
    first: &(Vec<u8>, Value, BTreeMap<String, Vec<u8>>),
    second: &(Vec<u8>, Value, BTreeMap<String, Vec<u8>>),
) {
    assert!(
        first.0 == second.0,
        "{}\n{}",
        String::from_utf8_lossy(&first.0),
        String::from_utf8_lossy(&second.0)
    );
    for (field, value) in first.1.as_object().expect("a run") {
        assert_eq!(value, &second.1[field], "{field}");
    }
    assert_eq!(first.2.keys().collect::<Vec<_>>(), second.2.keys().collect::<Vec<_>>());
    for (name, bytes) in &first.2 {
        assert!(bytes == &second.2[name], "{name}");
    }
}

#[test]
fn a_deterministic_machine_does_not_notice_what_runs_beside_it() {
    let Some(lab) = Lab::find_all() else { return };
    let options = ["--policy", "lru", "--set", "lru.sampling_period=16"];
    let target = target();
    let program = [&target, "planted", "--size", "16M", "--operations", "1000000"];
    let alone = run(&lab, &options, &program);
    let beside = beside_busy_threads(|| run(&lab, &options, &program));
    same(&alone, &beside);
    let moved = alone.1["engine"]["traffic"]["promotions"].as_u64().unwrap_or(0);
    assert!(moved > 1000 && !alone.0.is_empty(), "{moved}");
    assert!(alone.1["measured"]["accesses"].as_u64().is_some_and(|accesses| accesses > 1_000_000));
}

#[test]
fn its_clock_is_the_same_to_the_nanosecond_beside_other_work() {
    let Some(lab) = Lab::find_all() else { return };
    let read = || run(&lab, &["--kernel-tiering", "none"], &["cat", "/proc/timer_list", "/proc/interrupts"]);
    let alone = read();
    assert!(String::from_utf8_lossy(&alone.0).contains("now at "), "the clock is there");
    same(&alone, &beside_busy_threads(read));
}

/// Compares three tierings, so many guests side by side; returns the output and each run's result.
fn compare(jobs: &str) -> (String, Vec<Value>) {
    let options = ["--machine", "deterministic", "--kernel", "none,numab", "--policies", "lru"];
    let shape = ["--start", "slow", "--fast", "8M", "--json", "--jobs", jobs];
    let target = target();
    let program = [&target, "planted", "--size", "16M", "--operations", "300000"];
    let guests = Lab::verb("compare", &[&options[..], &shape].concat(), &program, &[]);
    assert_eq!(guests.code, Some(0), "{}", guests.err);
    let (said, result) = guests.err.trim_end().rsplit_once('\n').expect("progress before the result");
    let mut result: Value = serde_json::from_str(result).expect("our result");
    let runs = result["runs"].as_array_mut().expect("runs");
    for run in runs.iter_mut() {
        let fields = run.as_object_mut().expect("a run");
        OF_THE_HOST.iter().for_each(|&field| drop(fields.remove(field).expect("a field of the host")));
    }
    (said.to_owned(), runs.clone())
}

#[test]
fn guests_side_by_side_give_what_they_give_one_after_the_other() {
    let Some(_) = Lab::find() else { return };
    let ((said, alone), (beside_said, beside)) = (compare("1"), compare("3"));
    assert_eq!(alone.len(), 3);
    for (alone, beside) in alone.iter().zip(&beside) {
        for (field, value) in alone.as_object().expect("a run") {
            assert_eq!(value, &beside[field], "{}: {field}", alone["tiering"]);
        }
    }
    // Side by side, any guest may be the first to begin.
    let mut lines = vec!["isotherm: none (1 of 3)", "isotherm: numab (2 of 3)", "isotherm: lru (3 of 3)"];
    let mut began: Vec<_> = beside_said.lines().collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);
    began.sort_unstable();
    lines.sort_unstable();
    assert_eq!(began, lines);
}
