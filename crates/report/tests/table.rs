//! Checks the table for the terminal.

mod support;

use isotherm_report::table;

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
    assert!(widest <= Some(160), "{widest:?} columns");
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
fn a_long_run_says_how_fast_it_gets_and_when_it_pays_back() {
    let mut report = support::long_report();
    let shown = table(&report);
    let told = shown.replace("\n  ", " ");
    let answer = "With 1/9 of the memory fast, the program runs at 80.3 % of full speed under freqtier, 57.9 % without \
                  tiering, and is ahead of first-touch after 40s. It serves 81.2 % of misses from the fast tier";
    assert!(told.contains(answer), "{shown}");
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
    let of_answer = |line: &&str| line.split_whitespace().take(2).eq(["freqtier", "1:8"]);
    let rounds = shown.lines().filter(of_answer).filter(|line| !line.contains("(240M)")).count();
    assert_eq!(rounds, 3, "each round of the answer's run: {shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 160), "{shown}");
    report.runs.retain(|run| run.policy == "lru");
    let answer = table(&report).replace("\n  ", " ");
    assert!(
        answer.contains("under lru, and never ahead of first-touch: here tiering does not pay."),
        "{answer}"
    );
}
