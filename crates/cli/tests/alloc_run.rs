//! `isotherm run --policy jenga --alloc context`: smooth tracking live, on the objects of the context-based allocator.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Bytes of a region, by the allocator's default.
const REGION: u64 = 256 << 30;

/// The allocator's B-tree, compiled; none without a compiler.
fn btree(folder: &Path) -> Option<std::path::PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../alloc/programs/btree.c");
    let program = folder.join("btree");
    let status = Command::new("gcc").arg("-O2").arg(source).arg("-o").arg(&program).status();
    assert!(status.ok()?.success());
    Some(program)
}

/// Whether hint faults are to be had; says so if not.
fn hint_faults_work() -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let root = read("/proc/self/status").lines().any(|line| line.starts_with("Uid:\t0\t"));
    let works = root || read("/proc/sys/vm/unprivileged_userfaultfd").trim() == "1";
    if !works {
        println!("skipped: neither root nor vm.unprivileged_userfaultfd=1");
    }
    works
}

/// What the program prints of its result, without its times.
fn checksum(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.split_whitespace().last().expect("a checksum").to_owned()
}

#[test]
fn jenga_tracks_the_objects_of_its_allocator() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = btree(folder.path()).filter(|_| hint_faults_work()) else {
        println!("skipped: gcc or hint faults are missing");
        return;
    };
    let summary = folder.path().join("summary.json");
    let run = |reads: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .args([
                "run",
                "--shadow",
                "--quiet",
                "--policy",
                "jenga",
                "--alloc",
                "context",
                "--overhead",
                "10%",
            ])
            .args(["--fast", "25%", "--summary"])
            .arg(&summary)
            .arg("--")
            .arg(&program)
            .args(["200000", reads])
            .output()
            .expect("isotherm");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = std::fs::read_to_string(&summary).expect("a summary");
        (checksum(&output.stdout), serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    // A busy machine gives fewer samples a second: longer, until there are enough to judge by.
    for reads in ["6000000", "20000000", "80000000"] {
        let plain = Command::new(&program).args(["200000", reads]).output().expect("the B-tree");
        let (sum, result) = run(reads);
        assert_eq!(sum, checksum(&plain.stdout), "the program's own result");
        assert_eq!(result["policy"], "jenga");
        let ranges = result["hot_set"]["hot"]["ranges"].as_array().expect("ranges");
        let regions: BTreeSet<u64> =
            ranges.iter().map(|range| range["start"].as_u64().expect("an address") / REGION).collect();
        let hits = result["steady_hit_ratio"].as_f64().expect("a number");
        println!(
            "{} samples, {hits} of accesses to the fast quarter, hot pages in {regions:?}",
            result["samples"]
        );
        // Pages taken by chance would get a quarter.
        if hits > 0.4 && regions.len() > 1 {
            return;
        }
    }
    panic!("the hot pages were not found");
}
