//! `isotherm run --policy jenga --alloc context`: smooth tracking live on objects of the context-based
//! allocator.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::{Folder, hint_faults_work, plain, read, shadow};

/// Default size of the allocator's regions in bytes.
const REGION: u64 = 256 << 30;

/// Compiles the allocator's B-tree and returns its path.
fn btree(folder: &Folder) -> String {
    let (program, source) =
        (folder.at("btree"), concat!(env!("CARGO_MANIFEST_DIR"), "/../alloc/programs/btree.c"));
    let status = Command::new("cc").args(["-O2", "-o", &program, source]).status();
    assert!(status.expect("cc is missing: run `make setup`").success());
    program
}

/// Returns the program's output without its times.
fn checksum(output: &str) -> &str {
    output.split_whitespace().last().expect("a checksum")
}

#[test]
fn jenga_tracks_the_objects_of_its_allocator() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let program = btree(&folder);
    let summary = folder.at("summary.json");
    let options = ["--policy", "jenga", "--alloc", "context", "--overhead", "10%", "--fast", "25%"];
    // A busy machine gives fewer samples a second: runs longer until they suffice.
    for reads in ["6000000", "20000000", "80000000"] {
        let program = [program.as_str(), "200000", reads];
        let ran = shadow(&summary, &options, &program);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(checksum(&ran.out), checksum(&plain(&program).out), "the program's own result");
        let result = read(&summary);
        assert_eq!(result["policy"], "jenga");
        let ranges = result["hot_set"]["hot"]["ranges"].as_array().expect("ranges");
        let regions: BTreeSet<u64> =
            ranges.iter().map(|range| range["start"].as_u64().expect("an address") / REGION).collect();
        // Too few samples give no figure.
        let hits = result["final_hit_ratio"].as_f64().unwrap_or(0.0);
        println!(
            "{} samples, {hits} of accesses to the fast quarter, hot pages in {regions:?}",
            result["samples"]
        );
        // Random pages would get a quarter.
        if hits > 0.4 && regions.len() > 1 {
            return;
        }
    }
    panic!("the hot pages were not found");
}
