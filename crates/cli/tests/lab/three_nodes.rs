//! Policies for two tiers on a guest with three nodes: pages move between both pairs, as the kernel counts.

use isotherm_lab::measured::Measured;
use serde_json::Value;

use crate::support::{Lab, target};
use crate::tiering::check_moves;

/// More memory than the first two nodes have for it: the fast one is limited, and 128 MiB are on the second.
const PROGRAM: [&str; 7] = ["planted", "--size", "256M", "--hot", "12.5%", "--share", "90%"];

/// Fast memory and operations of a run in which policies find the hot pages.
const LONG: [&str; 2] = ["64M", "20000000"];

/// Runs the program; returns the nodes' shares of the first and the last tenth of its misses, and the run.
fn run(lab: &Lab, tiering: &[&str], [fast, operations]: [&str; 2]) -> (Vec<f64>, Vec<f64>, Value) {
    let options = ["--machine", "three-tier", "--fast", fast, "--quiet", "--json", "--time-limit", "8min"];
    let target = target();
    let program = [&[target.as_str()], &PROGRAM[..], &["--operations", operations]].concat();
    let guest = lab.run(&[tiering, &options].concat(), &program);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = result["runs"][0].clone();
    let measured: Measured =
        serde_json::from_value(run["measured"].clone()).expect("what the plugin counted");
    assert_eq!(measured.tiers.len(), 3);
    let points = &measured.history.points;
    let shares = |from: usize, to: usize| {
        let counts: Vec<u64> = points[to].1.iter().zip(&points[from].1).map(|(to, from)| to - from).collect();
        let all = counts.iter().sum::<u64>().max(1) as f64;
        counts.iter().map(|&count| count as f64 / all).collect::<Vec<f64>>()
    };
    // It fills its memory first and checks it at the end.
    let (early, late) = (
        shares(points.len() * 2 / 10, points.len() * 3 / 10),
        shares(points.len() * 7 / 10, points.len() * 8 / 10),
    );
    eprintln!("{:?}: {early:.3?} at first, {late:.3?} at the end", run["tiering"]);
    (early, late, run)
}

#[test]
fn four_policies_move_pages_over_three_nodes() {
    let Some(lab) = Lab::find_all() else { return };
    let (_, untouched, _) = run(&lab, &["--kernel-tiering", "none"], LONG);
    assert!(untouched.iter().all(|&share| share > 0.1), "each node serves a part: {untouched:?}");
    for policy in ["lru", "freqtier", "hybridtier", "memtis"] {
        // HybridTier would stop sampling before it has counted three samples of many pages.
        let set =
            if policy == "hybridtier" { &["--set", "hybridtier.plateau_start=1000000"][..] } else { &[] };
        let (_, late, run) = run(&lab, &[&["--policy", policy], set].concat(), LONG);
        check_moves(&run, 1000);
        // What the two faster nodes hold is hotter than what lies there without tiering.
        assert!(late[0] > untouched[0] + 0.05, "{policy}: {late:?}, without it {untouched:?}");
        assert!(late[2] < untouched[2] - 0.1, "{policy}: {late:?}, without it {untouched:?}");
        let fullest = fullest(&run);
        assert!(fullest.len() == 3 && fullest.iter().all(|&bytes| bytes > 32 << 20), "{policy}: {fullest:?}");
    }
}

/// Returns the bytes on each node when the program had most.
pub(crate) fn fullest(run: &Value) -> Vec<u64> {
    let moments = run["residence"].as_array().expect("moments").iter();
    let nodes = |moment: &Value| -> Vec<u64> {
        moment["node_bytes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    moments.map(nodes).max_by_key(|nodes| nodes.iter().sum::<u64>()).expect("one")
}

#[test]
fn parts_of_the_programs_memory_are_what_each_node_has_for_it() {
    let Some(lab) = Lab::find_all() else { return };
    for tiering in [["--kernel-tiering", "none"], ["--policy", "lru"]] {
        let (.., run) = run(&lab, &tiering, ["1:2:5", "1000000"]);
        let share = |bytes: u64| bytes as f64 / f64::from(256 << 20);
        let fullest: Vec<f64> = fullest(&run).into_iter().map(share).collect();
        for (share, part) in fullest.iter().zip([0.125, 0.25, 0.625]) {
            assert!((share - part).abs() < 0.03, "{tiering:?}: {fullest:?}");
        }
    }
}
