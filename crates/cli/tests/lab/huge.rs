//! Transparent huge pages on a real kernel: units of both sizes in one process.

use std::process::Command;

use isotherm_lab::measured::Measured;
use serde_json::Value;

use crate::support::{Lab, ok, root, target};
use crate::tiering::check_moves_of;

/// An eighth of the pages is hot, some in each 2 MiB. It asks for huge pages: on the slow node the
/// kernel makes others only later, if at all.
const PROGRAM: [&str; 11] = [
    "planted",
    "--size",
    "128M",
    "--hot",
    "12.5%",
    "--share",
    "90%",
    "--pages",
    "huge",
    "--operations",
    "8000000",
];
/// Ten pages are hot in each of 128 huge pages.
const SKEWED: [&str; 11] = [
    "planted",
    "--size",
    "256M",
    "--hot",
    "2%",
    "--share",
    "90%",
    "--pages",
    "huge",
    "--operations",
    "30000000",
];

/// Runs a program on a machine with huge pages; returns the run, in which the engine has counted what the
/// kernel has moved.
fn run(lab: &Lab, options: &[&str], program: &[&str]) -> Value {
    let text = std::fs::read_to_string(root().join("lab/machines/two-tier.toml")).expect("the machine");
    let folder = lab.new_folder();
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("huge.toml");
    let always = text.replace("huge_pages = \"never\"", "huge_pages = \"always\"");
    assert_ne!(always, text);
    std::fs::write(&file, always).expect("written");
    let machine = ["--machine", file.to_str().expect("UTF-8"), "--start", "slow"];
    let result = ["--json", "--time-limit", "8min"];
    let target = target();
    let guest = lab.run(&[&machine, options, &result].concat(), &[&[target.as_str()], program].concat());
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    assert_eq!(guest.out, ok(Command::new(&target).args(program)), "what it prints outside");
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = result["runs"][0].clone();
    check_moves_of(&run, 0, 512);
    run
}

#[test]
fn a_policy_of_base_pages_moves_huge_ones_whole_and_counts_their_pages() {
    let Some(lab) = Lab::find_all() else { return };
    let run = run(&lab, &["--policy", "lru", "--fast", "32M"], &PROGRAM);
    let huge = run["counts"]["huge_moved"].as_u64().expect("a count");
    assert!(huge > 20, "{huge} huge pages moved");
}

#[test]
fn memtis_splits_huge_pages_with_few_hot_pages_and_these_move_apart() {
    let Some(lab) = Lab::find_all() else { return };
    // It cools as often as with 16 GiB. The fast node has room for 8 of the huge pages, or for all hot pages.
    let policy = ["--policy", "memtis", "--set", "memtis.huge_pages=true", "--scale", "64", "--fast", "16M"];
    let run = run(&lab, &policy, &SKEWED);
    let splits = run["engine"]["traffic"]["splits"].as_u64().expect("a number");
    let kernel = run["counts"]["vmstat"]["thp_split_page"].as_u64().unwrap_or(0);
    // The kernel splits some itself, where it cannot move them whole.
    assert!(splits >= 40 && splits <= kernel, "{splits} splits, by the kernel's count {kernel}");
    let measured: Measured = serde_json::from_value(run["measured"].clone()).expect("counted");
    // Before it checks its memory. Whole, 8 huge pages would serve a sixteenth of the misses.
    let ratio = measured.history.hit_ratio(0.65, 0.75).expect("a history");
    eprintln!("{splits} splits, by the kernel's count {kernel}; hit ratio {ratio:.3}");
    assert!(ratio > 3.0 / 16.0, "hit ratio {ratio:.3}");
}
