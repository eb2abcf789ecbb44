//! Checks the scoreboard's pages on a made-up scoreboard.

use isotherm_core::Bytes;
use isotherm_report::{score_from_json, score_html, score_json, score_markdown, score_summary};
use isotherm_score::{
    Cell, EffectRow, EffectScore, Gain, Judged, Metric, PaperScore, Proof, Row, RunFacts, Scoreboard, Scored,
    System, Tally, Tried, Updated, Verdict,
};

fn judged(than: &str, verdict: Verdict, evidence: Option<usize>) -> Judged {
    Judged {
        better: "a".into(),
        than: than.into(),
        workload: "w".into(),
        size: "1:8".into(),
        advantage: Some(0.5),
        verdict,
        tried: vec![Tried { what: "tiering free".into(), advantage: Some(1.25) }],
        evidence,
        missing: None,
    }
}

fn cell(system: &str, paper: Option<f64>, ours: Option<f64>, missing: Option<&str>) -> Cell {
    Cell { system: system.into(), paper, about: false, ours, missing: missing.map(str::to_owned) }
}

fn system(id: &str) -> System {
    System { id: id.into(), title: id.to_uppercase(), policy: format!("policy-{id}"), why: String::new() }
}

/// One paper with one comparison, `a` against `b`, `c` and `d`.
fn board() -> Scoreboard {
    let tally = Tally { kept: 1, tie: 0, not_kept: 2, exempt: 0, not_yet: 1, ..Tally::default() };
    let evidence = Proof { text: "The tier is <full>.".into(), command: "isotherm simulate".into() };
    let run = RunFacts {
        accesses: 8_000_000,
        footprint_bytes: Bytes(64 << 20),
        fast_bytes: Bytes(8 << 20),
        scale: 4000.0,
        time_scale: 250.0,
        windows: Some(76.0),
    };
    let comparison = Scored {
        id: "p.t".into(),
        place: "Table I".into(),
        title: "speed | of <x>".into(),
        metric: Metric::Performance,
        machine: "m".into(),
        huge: false,
        after: 0.5,
        margin: 0.02,
        note: "A note.".into(),
        not_yet: None,
        updated: None,
        systems: ["a", "b", "c", "d"].map(system).to_vec(),
        rows: vec![Row {
            workload: "w".into(),
            ours: "masim".into(),
            size: "1:8".into(),
            fast: "11%".into(),
            why: "ours".into(),
            run: Some(run),
            cells: vec![
                cell("a", Some(80.0), Some(40.0), None),
                cell("b", None, Some(80.0), None),
                cell("c", Some(60.0), None, Some("policy pact")),
                cell("d", None, None, Some("too large")),
            ],
        }],
        gains: vec![Gain {
            words: "a over b".into(),
            unit: "% better".into(),
            paper: 10.0,
            about: true,
            ours: Some(-50.0),
            cases: (1, 2),
        }],
        orderings: vec![
            judged("b", Verdict::NotKept, Some(0)),
            judged("e", Verdict::NotKept, None),
            judged("c", Verdict::NotYet, None),
            judged("d", Verdict::Kept, None),
        ],
        evidence: vec![evidence],
        tally,
    };
    let row = EffectRow { system: "a".into(), with: Some(40.0), without: Some(70.0), missing: None };
    let effect = EffectScore {
        id: "p.e".into(),
        title: "No costs".into(),
        what: "What costs.".into(),
        case: "w at 1:8".into(),
        switched: "machine.costs.sample=0ns".into(),
        updated: Some(Updated { version: "0.2.0".into(), date: "2026-11-22".into(), seed: 1 }),
        metric: Metric::Performance,
        rows: vec![row],
    };
    let paper = PaperScore {
        name: "p".into(),
        title: "Paper".into(),
        machine: "m".into(),
        sizes: "Shares.".into(),
        after: 0.5,
        after_why: "warm-up".into(),
        tally,
        noise: vec![(Metric::Performance, 0.02)],
        comparisons: vec![comparison],
        effects: vec![effect],
    };
    Scoreboard { version: "1".into(), quick: true, partial: false, seed: 1, tally, papers: vec![paper] }
}

#[test]
fn the_page_holds_both_figures_the_order_and_the_evidence() {
    let page = score_markdown(&board());
    for expected in [
        "1 of 3 orderings kept",
        "quick run",
        "| Paper | 4 | 1 | 0 | 2 | 0 | 1 |",
        "80.0 → 40.0 (0.50)",
        "60.0 → not yet |",
        "failed: too large",
        "8.00M, 64M, 4.00k (250), 76.0",
        "1 kept, 2 not kept, 1 not yet",
        "- The tier is <full>. `isotherm simulate`\n  - A > B: w 1:8 (0.50; tiering free 1.25)\n",
        "- No evidence yet.\n  - A > e: w 1:8 (0.50; tiering free 1.25)\n",
        "| a over b | ~10.0 % better | -50.0 % better | -5.00 | 1 of 2 |",
        "| a | 40.0 | 70.0 | +30.0 |",
        "within 2.0 %",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

#[test]
fn the_html_is_one_file_marked_and_escaped() {
    let page = score_html(&board());
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for class in
        ["class=\"mark not-kept\"", "class=\"kept\" style=\"flex-grow:1\"", "prefers-color-scheme: dark"]
    {
        assert!(page.contains(class), "{class}");
    }
    assert!(page.contains("speed | of &lt;x&gt;") && page.contains("The tier is &lt;full&gt;."));
    for outside in ["http", "src=", "<link", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn json_and_summary_hold_the_sums() {
    let json: serde_json::Value = serde_json::from_str(&score_json(&board())).expect("JSON");
    assert_eq!(json["papers"][0]["comparisons"][0]["orderings"][0]["verdict"], "not-kept");
    assert_eq!(json["tally"]["not_yet"], 1);
    assert!(
        score_summary(&board())
            .contains("1 of 3 orderings kept, 0 ties; 1 not yet judged, 0 not comparable, 0 too short.")
    );
}

#[test]
fn json_keeps_every_digit_and_infinities() {
    let mut board = board();
    board.papers[0].comparisons[0].rows[0].cells[1].ours = Some(f64::INFINITY);
    // An inexact reader takes this number for its neighbour.
    board.papers[0].comparisons[0].orderings[0].advantage = Some(0.991_946_337_545_308_5);
    let again = score_from_json(&score_json(&board)).expect("it was just written");
    assert_eq!((score_json(&again), score_markdown(&again)), (score_json(&board), score_markdown(&board)));
    assert!(score_markdown(&again).contains("Run by itself on 2026-11-22 with Isotherm 0.2.0."));
    assert!(score_from_json("{}").is_err());
}

#[test]
fn the_documentation_holds_one_scoreboard_as_page_and_json() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/scoreboard");
    let read = |ending: &str| std::fs::read_to_string(format!("{docs}.{ending}")).expect("it is checked in");
    let board = score_from_json(&read("json")).expect("a scoreboard");
    assert_eq!(score_markdown(&board), read("md"));
    assert_eq!(score_json(&board) + "\n", read("json"));
}
