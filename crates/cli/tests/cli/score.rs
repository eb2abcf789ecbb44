//! `isotherm score` from end to end, on its smallest comparison.

use crate::support::{Folder, isotherm};

/// A stream of a few million accesses and four systems, some of which may not exist yet.
const SMALL: [&str; 5] = ["score", "--quick", "--only", "neomem.fig16.converged", "--quiet"];

#[test]
fn a_comparison_is_run_judged_and_written_the_same_each_time() {
    let folder = Folder::new();
    let run = |name: &str| {
        let (output, report) = (folder.at(name), folder.at(&format!("{name}.html")));
        let mut arguments = SMALL.to_vec();
        arguments.extend(["--output", &output, "--report", &report]);
        let summary = isotherm(&arguments).ok();
        let read = |path: String| std::fs::read_to_string(path).expect("it was written");
        let written = ["scoreboard.md", "scoreboard.json"].map(|file| read(format!("{output}/{file}")));
        (summary, written, read(report))
    };
    let (summary, [page, json], html) = run("one");
    assert!(summary.contains("NeoMem") && summary.contains("orderings kept"), "{summary}");
    assert!(page.contains("`neomem.fig16.converged`") && page.contains("quick run"), "{page}");
    assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("http"), "one file without a network");
    let board: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let comparison = &board["papers"][0]["comparisons"][0];
    assert_eq!(comparison["id"], "neomem.fig16.converged");
    let cells = comparison["rows"][0]["cells"].as_array().expect("cells");
    let ours =
        |system: &str| cells.iter().find(|cell| cell["system"] == system).expect(system)["ours"].as_f64();
    assert!(ours("pebs").is_some_and(|percent| (1.0..=101.0).contains(&percent)), "{cells:?}");
    assert_eq!(comparison["orderings"].as_array().map(Vec::len), Some(3));
    assert_eq!(run("two"), (summary, [page, json], html), "to the byte");
}

#[test]
fn a_part_is_put_into_a_scoreboard_that_is_there() {
    let folder = Folder::new();
    let output = folder.at("board");
    let written = |file: &str| std::fs::read_to_string(format!("{output}/{file}")).expect("it was written");
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    isotherm(&[&SMALL[..], &["--output", &output]].concat()).ok();
    let before = json(written("scoreboard.json"));
    isotherm(&[&SMALL[..], &["--output", &output, "--update"]].concat()).ok();
    let after = json(written("scoreboard.json"));
    let comparison = |board: &serde_json::Value| board["papers"][0]["comparisons"][0].clone();
    assert_eq!(comparison(&before)["rows"], comparison(&after)["rows"]);
    // An update measures the noise over seeds, within which a kept order is a tie.
    let judged = |board: &serde_json::Value| -> Option<u64> {
        board["tally"].as_object()?.values().map(serde_json::Value::as_u64).sum()
    };
    assert_eq!((judged(&before), judged(&after)), (Some(3), Some(3)));
    assert_eq!(comparison(&before)["updated"], serde_json::Value::Null);
    let date = comparison(&after)["updated"]["date"].as_str().expect("a day").to_owned();
    assert!(written("scoreboard.md").contains(&format!("Run by itself on {date}")), "{date}");
    let other_seed = [&SMALL[..], &["--output", &output, "--update", "--seed", "2"]].concat();
    assert!(isotherm(&other_seed).refused(2).contains("seed 2"));
    let none = folder.at("none");
    assert!(
        isotherm(&[&SMALL[..], &["--output", &none, "--update"]].concat())
            .refused(2)
            .contains("scoreboard.json")
    );
    std::fs::write(format!("{output}/scoreboard.json"), "{}").expect("it is writable");
    let garbage = isotherm(&[&SMALL[..], &["--output", &output, "--update"]].concat()).refused(2);
    assert!(garbage.contains("not a scoreboard"), "{garbage}");
}

#[test]
fn what_does_not_exist_yet_is_listed_and_no_error() {
    let list = isotherm(&["score", "--list"]).ok();
    for id in [
        "freqtier.table2",
        "hybridtier.table3",
        "jenga.fig7.graph",
        "neomem.fig11",
        "pact.table2",
        "pact.latency",
    ] {
        assert!(list.lines().any(|line| line.trim_start().starts_with(id)), "{id}: {list}");
    }
    let board =
        isotherm(&["score", "--quick", "--only", "freqtier.table2.latency", "--json", "--quiet"]).json();
    assert_eq!(board["tally"]["not_yet"], 1, "{board}");
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    assert!(isotherm(&["score", "freqteir"]).refused(2).contains("freqtier"));
    assert!(isotherm(&["score", "--only", "pact.tabel2"]).refused(2).contains("pact.table2"));
    let folder = Folder::new();
    let file = folder.file("plain", "no folder");
    assert!(isotherm(&["score", "--only", "pact.fig4", "--output", &file]).refused(2).contains("plain"));
}
