//! DAMON as the source of accesses, on a real kernel.

use serde_json::Value;

use crate::support::{BINARY, Lab, root, target};

#[test]
fn damon_finds_hot_memory_has_one_user_at_a_time_and_is_left_as_it_was() {
    let Some(lab) = Lab::find_all() else { return };
    let script = root().join("crates/cli/tests/lab/damon.sh");
    let options = ["--machine", "small", "--kernel-tiering", "none", "--quiet"];
    let guest = lab.run(&options, &["sh", script.to_str().expect("UTF-8"), BINARY, &target()]);
    let facts = String::from_utf8_lossy(&guest.out).into_owned();
    assert_eq!(guest.code, Some(0), "{facts}{}", guest.err);
    let all = |name: &str| -> Vec<&str> {
        facts.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
    };
    let long = |line: &&str| line.starts_with("summary ") || line.starts_with("chosen ");
    let told: Vec<&str> = facts.lines().filter(|line| !long(line)).collect();
    let json = |name: &str| -> Value { serde_json::from_str(all(name)[0]).expect("JSON") };
    let summary = json("summary");
    assert_eq!(summary["sources"][0]["name"], "damon");
    let shares = summary["hot_set"]["shares"].as_array().expect("shares");
    let most = shares.iter().find(|share| share["accesses"] == 0.5).expect("a half");
    let bytes = most["bytes"].as_u64().expect("a number");
    eprintln!("damon: half of the accesses to {bytes} bytes, hit ratio {}", summary["hit_ratio"]);
    // Uniform heat would give 16 MiB.
    assert!((1 << 20..8 << 20).contains(&bytes), "4 MiB of 32 MiB are hot, found {bytes}");
    assert!(all("alone").is_empty(), "{told:#?}");
    assert_eq!((all("left_alone"), all("observed")), (vec!["0"], vec!["on", "off"]), "{told:#?}");
    let (chosen, why) =
        (json("chosen"), "it found 90.0 % of a planted hot set for 0.4 % of the program's time");
    assert_eq!(chosen["sources"][0]["name"], "damon", "{told:#?}");
    let option = chosen["manifest"]["options"]["source_choice"].as_str();
    assert!(option.is_some_and(|text| text.contains(why)), "{option:?}");
    assert!(
        all("by_figures").iter().any(|line| line.contains("accesses are learned from damon (measured here"))
    );
    let stopped = "kdamond0 was stopped by another user of DAMON";
    assert!(
        all("taken_status") == ["0"] && all("taken").iter().any(|line| line.contains(stopped)),
        "{told:#?}"
    );
    let refused = all("refused");
    assert!(all("refused_status") == ["2"] && refused.len() == 1, "{told:#?}");
    assert!(refused[0].contains("another user's kdamond0 runs"), "{told:#?}");
    assert_eq!(all("others"), ["on"], "{told:#?}");
}
