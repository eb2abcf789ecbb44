//! `calibrate` on this machine: latencies in any case, `k` if the processor counts it.

use std::path::Path;

use crate::support::{Folder, isotherm};

/// Returns the latency of tier 0 from the table in nanoseconds.
fn latency(table: &str) -> f64 {
    let row = table.lines().find(|line| line.trim_start().starts_with("0 ")).expect("a row of tier 0");
    let words: Vec<&str> = row.split_whitespace().collect();
    words[2].parse().expect("nanoseconds")
}

#[test]
fn what_is_steady_is_written_over_the_base_and_anything_else_refused_in_one_line() {
    let folder = Folder::new();
    let (large, small, base) = (folder.at("large.toml"), folder.at("small.toml"), folder.at("base.toml"));
    // A busy machine's memory may seem slower than the profile's second tier, which is not measured here; the
    // profile would be refused.
    let pact = include_str!("../../../../machines/pact.toml");
    assert!(pact.contains("\"190ns\""), "the second tier's latency");
    std::fs::write(&base, pact.replace("\"190ns\"", "\"100us\"")).expect("it is writable");
    let run = |size: &str, output: &str| {
        isotherm(&["calibrate", "--machine", &base, "--size", size, "--output", output])
    };
    let memory = run("256M", &large);
    let last = memory.err.lines().last().unwrap_or_default();
    match memory.code {
        Some(0) => assert!(memory.out.contains("+-"), "{}", memory.out),
        Some(2) => {
            assert!(last.starts_with("isotherm: k is not calibrated, only latency: "), "{last}");
            assert!(memory.out.contains("not measured"), "{}", memory.out);
        }
        // Other tests run beside this one.
        Some(1) => {
            let start = "isotherm: not measured steadily, nothing is written: latency of tier 0: ";
            assert!(last.starts_with(start) && last.contains("expected"), "{last}");
        }
        _ => panic!("{memory:?}"),
    }
    let found = latency(&memory.out);
    assert!((2.0..2000.0).contains(&found), "{}", memory.out);
    // Memory that fits a cache must be faster.
    let cached = latency(&run("64K", &small).out);
    assert!(cached * 1.5 < found, "{cached} ns in the cache, {found} ns in memory");
    assert_eq!(Path::new(&large).exists(), memory.code != Some(1));
    if memory.code == Some(1) {
        return;
    }
    // The written file is a profile that names the source of its number, and its base.
    let text = std::fs::read_to_string(&large).expect("it was written");
    assert!(text.starts_with("base = \"/") && text.contains("base.toml\""), "{text}");
    let shown = isotherm(&["machines", &large]).ok();
    let (_, row) = shown.split_once("tier.0.latency").expect("the number");
    let row: Vec<&str> = row.split_whitespace().skip(1).take(4).collect();
    assert!(row.join(" ").starts_with("measured: isotherm calibrate, 20"), "{row:?}");
}

#[test]
fn a_request_that_cannot_be_is_refused_before_anything_is_measured() {
    assert!(isotherm(&["calibrate", "--tiers", "99"]).refused(2).contains("99"));
    assert!(isotherm(&["calibrate", "--machine", "nowhere"]).refused(2).contains("nowhere"));
}
