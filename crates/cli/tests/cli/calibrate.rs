//! `calibrate` on this machine, whatever it has.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, RunStats, SMALL_CACHE, isotherm};

/// Returns the value of a number in the table.
fn value<'a>(table: &'a str, number: &str) -> Option<&'a str> {
    let row = table.lines().find(|line| line.trim_start().starts_with(number))?;
    row.split_whitespace().nth(1)
}

/// A busy machine's memory may seem slower than the profile's second tier, which is not measured here; the
/// profile would be refused.
fn base(folder: &Folder) -> String {
    let pact = include_str!("../../../../machines/pact.toml");
    assert!(pact.contains("\"190ns\""), "the second tier's latency");
    folder.file("base.toml", pact.replace("\"190ns\"", "\"100us\""))
}

fn calibrate(base: &str, size: &str, output: &str) -> RunStats {
    isotherm(&["calibrate", "--machine", base, "--size", size, "--output", output])
}

#[test]
fn what_is_steady_is_written_over_the_base_and_anything_else_refused_in_one_line() {
    let folder = Folder::new();
    let (base, mine) = (base(&folder), folder.at("mine.toml"));
    let memory = calibrate(&base, "256M", &mine);
    assert!(memory.out.lines().all(|line| line.chars().count() <= 80), "{}", memory.out);
    // Other tests run beside this one.
    if memory.code == Some(1) {
        let last = memory.err.lines().last().unwrap_or_default();
        assert!(last.starts_with("isotherm: not measured ") && last.contains("expected"), "{last}");
        let nothing = last.contains("nothing is written");
        assert_eq!(Path::new(&mine).exists(), !nothing, "{last}");
        if nothing {
            return;
        }
    } else {
        memory.ok();
    }
    // The written file is a profile that names the source of each number, and its base.
    let text = std::fs::read_to_string(&mine).expect("it was written");
    assert!(text.starts_with("base = \"/") && text.contains("base.toml\""), "{text}");
    let measured: Vec<_> =
        text.lines().filter(|line| line.contains("measured: isotherm calibrate, 20")).collect();
    assert!(!measured.is_empty(), "{text}");
    assert!(
        measured.iter().all(|line| line.contains(" repetitions ") && line.contains(" within ")),
        "{text}"
    );
    let mut arguments =
        vec!["simulate", "--workload", "cachelib-cdn", "--policy", "all-slow", "--machine", &mine];
    arguments.extend(SMALL_CACHE);
    isotherm(&arguments).ok();
}

/// It wrote 991 ns where an idle machine had 175.
#[test]
fn nothing_is_written_beside_load() {
    let folder = Folder::new();
    let (base, mine) = (base(&folder), folder.at("mine.toml"));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut load: Vec<_> = (0..processors)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
        .collect();
    let refused = calibrate(&base, "64M", &mine);
    for child in &mut load {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let last = refused.err.lines().last().unwrap_or_default();
    let start = "isotherm: not measured alone, nothing is written: other programs kept ";
    assert!(last.starts_with(start) && last.ends_with("try again on a quiet machine"), "{last}");
    assert!(!Path::new(&mine).exists());
    assert!(value(&refused.out, "tier.0.latency").is_some(), "shown all the same: {}", refused.out);
}

#[test]
fn memory_that_fits_a_cache_is_faster() {
    let folder = Folder::new();
    let latency = |size: &str| {
        let out = isotherm(&["calibrate", "--machine", &base(&folder), "--size", size]).out;
        let text = value(&out, "tier.0.latency").map(|text| text.trim_end_matches("ns").parse::<f64>());
        text.unwrap_or_else(|| panic!("{out}"))
    };
    // What is not steady has no value.
    if let (Ok(cached), Ok(memory)) = (latency("64K"), latency("256M")) {
        assert!((2.0..2000.0).contains(&memory), "{memory}");
        assert!(cached * 1.5 < memory, "{cached} ns in the cache, {memory} ns in memory");
    }
}

#[test]
fn a_request_that_cannot_be_is_refused_before_anything_is_measured() {
    assert!(isotherm(&["calibrate", "--tiers", "99"]).refused(2).contains("99"));
    assert!(isotherm(&["calibrate", "--machine", "nowhere"]).refused(2).contains("nowhere"));
}
