//! Transparent huge pages on a real kernel: units of both sizes in one process.

use std::process::Command;

use serde_json::Value;

use crate::support::{Lab, ok, root, target};
use crate::tiering::moves;

/// An eighth of the pages is hot, some in each 2 MiB.
const PROGRAM: [&str; 9] =
    ["planted", "--size", "128M", "--hot", "12.5%", "--share", "90%", "--operations", "8000000"];

/// Runs the program on a machine whose kernel gives huge pages wherever it can.
fn run(lab: &Lab, tiering: &[&str]) -> Value {
    let text = std::fs::read_to_string(root().join("lab/machines/two-tier.toml")).expect("the machine");
    let folder = lab.new_folder();
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("huge.toml");
    let always = text.replace("huge_pages = \"never\"", "huge_pages = \"always\"");
    assert_ne!(always, text);
    std::fs::write(&file, always).expect("written");
    let options = ["--machine", file.to_str().expect("UTF-8"), "--fast", "32M", "--start", "slow", "--json"];
    let target = target();
    let program = [&[target.as_str()], &PROGRAM[..]].concat();
    let guest = lab.run(&[&options[..], &["--time-limit", "8min"], tiering].concat(), &program);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    assert_eq!(guest.out, ok(Command::new(&target).args(PROGRAM)), "what it prints outside");
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = result["runs"][0].clone();
    let (counts, traffic) = (&run["counts"], &run["engine"]["traffic"]);
    eprintln!(
        "{}: {} huge pages moved; {traffic}; vmstat {}; hits {}",
        run["tiering"],
        counts["huge_moved"],
        counts["vmstat"]["thp_split_page"],
        run["measured"]["hit_ratio"]
    );
    run
}

#[test]
fn a_policy_of_base_pages_moves_huge_ones_whole_and_counts_their_pages() {
    let Some(lab) = Lab::find_all() else { return };
    let run = run(&lab, &["--policy", "lru"]);
    let (engine, kernel) = moves(&run);
    let huge = run["counts"]["huge_moved"].as_u64().expect("a count");
    assert!(huge > 20, "{huge} huge pages moved");
    // Where a node is full the kernel splits a huge page and moves a part: a scan tells, no status.
    assert!(
        engine <= kernel && engine * 5 >= kernel * 4,
        "the engine has moved {engine}, the kernel {kernel}"
    );
}

#[test]
fn memtis_splits_huge_pages_with_few_hot_pages_and_hits_more() {
    let Some(lab) = Lab::find_all() else { return };
    let options = ["--policy", "memtis", "--scale", "60"];
    let whole = run(&lab, &options);
    let split = run(&lab, &[&options[..], &["--set", "memtis.huge_pages=true"]].concat());
    let splits = |run: &Value| run["engine"]["traffic"]["splits"].as_u64().expect("a count");
    let by_kernel = split["counts"]["vmstat"]["thp_split_page"].as_u64().expect("a count");
    assert!(splits(&whole) == 0 && splits(&split) > 10, "{} huge pages were split", splits(&split));
    assert!(by_kernel >= splits(&split), "{by_kernel} by the kernel's count");
    let hits = |run: &Value| run["measured"]["hit_ratio"].as_f64().expect("a ratio");
    assert!(hits(&split) > hits(&whole) + 0.1, "{} and {}", hits(&split), hits(&whole));
}
