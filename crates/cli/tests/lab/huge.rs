//! Transparent huge pages on a real kernel: units of both sizes in one process.

use std::process::Command;

use serde_json::Value;

use crate::support::{Lab, ok, root, target};
use crate::tiering::moves;

/// An eighth of the pages is hot, some in each 2 MiB.
const PROGRAM: [&str; 9] =
    ["planted", "--size", "128M", "--hot", "12.5%", "--share", "90%", "--operations", "8000000"];

#[test]
fn a_policy_of_base_pages_moves_huge_ones_whole_and_counts_their_pages() {
    let Some(lab) = Lab::find_all() else { return };
    let text = std::fs::read_to_string(root().join("lab/machines/two-tier.toml")).expect("the machine");
    let folder = lab.new_folder();
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("huge.toml");
    let always = text.replace("huge_pages = \"never\"", "huge_pages = \"always\"");
    assert_ne!(always, text);
    std::fs::write(&file, always).expect("written");
    let machine = ["--machine", file.to_str().expect("UTF-8"), "--policy", "lru"];
    let options = ["--fast", "32M", "--start", "slow", "--json", "--time-limit", "8min"];
    let target = target();
    let guest = lab.run(&[&machine[..], &options].concat(), &[&[target.as_str()], &PROGRAM[..]].concat());
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    assert_eq!(guest.out, ok(Command::new(&target).args(PROGRAM)), "what it prints outside");
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = &result["runs"][0];
    let (engine, kernel) = moves(run);
    let huge = run["counts"]["huge_moved"].as_u64().expect("a count");
    assert!(huge > 20, "{huge} huge pages moved");
    // Where a node is full the kernel splits a huge page and moves a part: a scan tells, no status.
    let counted = engine <= kernel && engine * 5 >= kernel * 4;
    assert!(counted, "the engine has moved {engine}, the kernel {kernel}");
}
