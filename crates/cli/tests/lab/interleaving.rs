//! Weighted interleaving on a real kernel: where it places the pages, and what is left of it after a run.

use isotherm_lab::measured::{Measured, Served};
use serde_json::Value;

use crate::support::{BINARY, Lab, root, target};
use crate::three_nodes::fullest;
use crate::tiering::moves;

/// Runs a program under these settings; returns each node's share of its memory by the kernel's account, and
/// of its misses.
fn shares(lab: &Lab, machine: &str, settings: &[&str]) -> [Vec<f64>; 2] {
    let options = ["--machine", machine, "--policy", "weighted-interleave", "--quiet", "--json"];
    // All pages are alike: no few hot ones decide where the misses are.
    let even = ["--hot", "50%", "--share", "50%", "--operations", "2000000"];
    let target = target();
    let program = [&[&target, "planted", "--size", "64M"], &even[..]].concat();
    let guest = lab.run(&[&options, settings].concat(), &program);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = &result["runs"][0];
    assert_eq!(moves(run), (0, 0), "nothing moves");
    let measured: Measured =
        serde_json::from_value(run["measured"].clone()).expect("what the plugin counted");
    let misses: Vec<u64> = measured.tiers.iter().map(Served::misses).collect();
    let shares = [fullest(run), misses].map(|counts| {
        let all = counts.iter().sum::<u64>() as f64;
        counts.iter().map(|&count| count as f64 / all).collect::<Vec<f64>>()
    });
    eprintln!("{machine} {settings:?}: memory and misses {shares:.4?}");
    shares
}

#[test]
fn pages_and_misses_are_spread_by_the_weights_that_are_set_or_follow_from_the_firmwares_bandwidths() {
    let Some(lab) = Lab::find_all() else { return };
    let set = ["--set", "weighted-interleave.tier_0=3", "--set", "weighted-interleave.tier_1=1"];
    for (machine, settings, weights) in [
        ("small", &set[..], &[3.0, 1.0][..]),
        // In the ratio of 564, 241 and 53 GB/s, which the guest's HMAT has of the profile `xeon-max`.
        ("three-tier", &[], &[21.0, 9.0, 2.0]),
    ] {
        let all: f64 = weights.iter().sum();
        for found in shares(&lab, machine, settings) {
            assert_eq!(found.len(), weights.len());
            for (share, weight) in found.iter().zip(weights) {
                assert!((share - weight / all).abs() < 0.01, "{machine}: {found:.4?}, weights {weights:?}");
            }
        }
    }
}

#[test]
fn the_kernels_weights_are_the_former_ones_after_a_run_and_after_a_signal() {
    let Some(lab) = Lab::find() else { return };
    let script = root().join("crates/cli/tests/lab/interleaving.sh");
    let options = ["--machine", "small", "--kernel-tiering", "none", "--quiet"];
    let guest = lab.run(&options, &["sh", script.to_str().expect("UTF-8"), BINARY, &target()]);
    let facts = String::from_utf8_lossy(&guest.out);
    let expected = ["status 0", "ended 7:5", "running 3:1", "signal 143", "stopped 7:5"];
    assert_eq!(facts.lines().collect::<Vec<_>>(), expected, "{}", guest.err);
}
