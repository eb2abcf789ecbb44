//! Checks the table for the terminal.

mod support;

use isotherm_report::{Advice, html, json, simulated, table};

#[test]
fn the_table_is_unchanged() {
    let expected = include_str!("table.txt");
    let shown = table(&support::report());
    assert_eq!(shown, expected, "\nIf the change is wanted, put this into tests/table.txt:\n{shown}");
}

#[test]
fn it_is_narrow_enough_for_a_terminal_and_has_no_colours() {
    let shown = table(&support::report());
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?} columns");
    assert!(!shown.contains('\u{1b}'), "escape sequences");
}

#[test]
fn a_policy_above_the_oracle_is_marked_and_explained() {
    let mut report = support::report();
    report.runs.retain(|run| run.policy == "lru");
    assert!(table(&report).contains("More hits than the interval oracle: lru 1:16 (79.0 % against 78.0 %)"));
    report.runs.retain(|run| !run.beats_oracle);
    assert!(!table(&report).contains("interval oracle"));
}

#[test]
fn a_footprint_that_fits_and_failed_moves_are_told() {
    let mut report = support::report();
    report.runs.retain(|run| run.policy == "freqtier");
    report.runs.truncate(1);
    report.runs[0].fast_bytes = report.runs[0].footprint_bytes;
    let shown = table(&report);
    assert!(shown.contains("fits the fast tier at 1:4"), "{shown}");
    assert!(shown.contains("Moves that failed: freqtier 1:4 (busy 31)"), "{shown}");
}

#[test]
fn a_report_without_runs_says_so() {
    let mut report = support::report();
    report.runs.clear();
    assert!(table(&report).ends_with("no run\n"));
}

#[test]
fn a_long_run_says_first_how_fast_it_gets_and_when_it_pays_back() {
    let mut report = support::long_report();
    let shown = table(&report);
    let told = shown.replace("\n  ", " ");
    let answer = "Use freqtier: with 1/9 of the memory fast the program runs 1.45 times as fast as without tiering \
                  (80.3 % of full speed, was 55.6 %), ahead from 40s on. Sure: its rounds no longer change.";
    assert!(shown.replace('\n', " ").starts_with(answer), "{shown}");
    let row = |policy: &str| {
        let row = shown.lines().find(|line| line.starts_with(&format!("{policy} ")) && line.contains("1:8"));
        row.expect("a row").split_whitespace().skip(3).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("freqtier")[1], "40s");
    assert_eq!((row("lru")[1].as_str(), row("first-touch")[1].as_str()), ("never", "-"));
    for note in [
        "100 rounds replayed with state and placement kept: hits",
        "tell of the 3 simulated",
        "from which the others are extrapolated",
        "so less certain: lru 1:4, lru 1:8 and lru 1:16.",
        "freqtier by 2.0, to 30s",
    ] {
        assert!(told.contains(note), "{note}: {shown}");
    }
    let rounds = shown.split("freqtier 1:8\n").nth(1).expect("the answer's run");
    let numbers: Vec<&str> =
        rounds.lines().skip(2).take(3).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers, ["1", "2", "3"], "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let verdict = simulated(&report).expect("runs");
    assert_eq!(
        (verdict.policy.as_deref(), verdict.pays_back_ns.map(isotherm_core::Nanos::as_seconds)),
        (Some("freqtier"), Some(40.0))
    );
    report.runs.retain(|run| run.policy == "lru");
    let verdict = simulated(&report).expect("runs");
    assert_eq!((verdict.advice, verdict.policy), (Advice::DoNotTier, None));
    assert!(!verdict.sentence.contains("lru"), "a loser is named: {}", verdict.sentence);
    assert!(table(&report).starts_with("Do not tier this program: "), "{}", table(&report));
}

#[test]
fn the_verdict_names_only_what_a_machine_can_run() {
    let mut report = support::report();
    let verdict = simulated(&report).expect("runs");
    assert_eq!((verdict.advice, verdict.policy.as_deref()), (Advice::Tier, Some("freqtier")));
    assert!(table(&report).replace('\n', " ").starts_with(&verdict.sentence));
    assert!(verdict.sure.contains("one replay"), "{}", verdict.sure);
    let value: serde_json::Value = serde_json::from_str(&json(&report)).expect("JSON");
    assert_eq!(value["verdict"]["sentence"], verdict.sentence.as_str());
    let page = html(&report);
    assert!(page.contains("Use freqtier: with 1/9 of the memory fast"), "the page says the same");
    // Nomad needs a kernel that is not released.
    for run in report.runs.iter_mut().filter(|run| run.policy == "freqtier") {
        run.policy = "nomad".into();
    }
    assert_eq!(simulated(&report).expect("runs").policy.as_deref(), Some("lru"));
    report.runs.retain(|run| run.policy != "first-touch");
    let verdict = simulated(&report).expect("runs");
    assert!(
        verdict.advice == Advice::Unknown && verdict.sentence.contains("add it to --policy"),
        "{verdict:?}"
    );
    report.runs.retain(|run| run.policy == "belady");
    assert_eq!(simulated(&report).expect("runs").advice, Advice::Unknown);
}
