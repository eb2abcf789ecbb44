//! Checks the lab's JSON against its schema, and the verdict of a comparison.

mod support;

use isotherm_core::manifest::Manifest;
use isotherm_lab::counts::{Counts, Damon, Moves, Residence, Zswap};
use isotherm_lab::measured::{DeviceUses, History, Measured, Samples, Served};
use isotherm_lab::result::LabResult;
use isotherm_report::{Advice, compared, lab_json, lab_table};
use serde_json::Value;
use support::validator::problems;

/// Returns a run of this modelled time.
fn run(tiering: &str, kernel_tiering: bool, modelled_ns: u64) -> LabResult {
    let tier = Served { load_misses: 30, store_misses: 1, stall: 1_000_000 };
    LabResult {
        version: "1",
        manifest: Manifest::default(),
        machine: "small".into(),
        kernel: "6.12".into(),
        program: vec!["sort".into()],
        tiering: tiering.into(),
        kernel_tiering,
        start: "slow",
        fast_bytes: Some(64 << 20),
        exit_status: 0,
        elapsed_seconds: 4.25,
        measured: Some(Measured {
            hit_ratio: 0.5,
            modelled_ns,
            tiers: vec![tier, tier],
            samples: Samples { taken: 1, ..Samples::default() },
            device: (!kernel_tiering).then(DeviceUses::default),
            history: History { interval_ns: 1, points: vec![(1, vec![0, 0])] },
            ..Measured::default()
        }),
        counts: Counts {
            moves: [("damon".to_owned(), Moves { succeeded: 1, ..Moves::default() })].into(),
            damon: kernel_tiering.then(Damon::default),
            zswap: kernel_tiering.then(Zswap::default),
            ..Counts::default()
        },
        residence: vec![Residence {
            seconds: 1.0,
            node_bytes: vec![1 << 20, 3 << 20],
            zswapped_bytes: 4096,
            zswap_bytes: 2048,
        }],
        engine: None,
        refusal: None,
        folder: "/tmp/x".into(),
    }
}

#[test]
fn the_output_fits_its_schema() {
    let schema = include_str!("../../../docs/reference/lab.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let runs = [run("none", true, 2_000_000), run("hybridtier", false, 1_000_000)];
    for runs in [&runs[..], &runs[..1]] {
        let mut value: Value = serde_json::from_str(&lab_json(runs)).expect("the output is JSON");
        assert_eq!(problems(&schema, &value), Vec::<String>::new());
        value["runs"][0]["counts"]["surprise"] = 1.into();
        assert_eq!(problems(&schema, &value), ["report.runs[0].counts.surprise is not documented"]);
    }
}

#[test]
fn a_comparison_names_the_fastest_or_nothing() {
    let none = || run("none", true, 2_000_000);
    let verdict = |runs: &[LabResult]| compared(runs).expect("several runs");
    let (numab, ours) = (run("numab", true, 1_600_000), run("hybridtier", false, 1_000_000));
    let best = verdict(&[none(), numab, ours]);
    assert_eq!(
        (best.advice, best.policy.as_deref(), best.gain),
        (Advice::Tier, Some("hybridtier"), Some(1.0))
    );
    assert!(best.sentence.contains("hybridtier") && best.sentence.contains("2.00 times as fast"), "{best:?}");
    let lost = [none(), run("numab", true, 1_995_000), run("hybridtier", false, 3_000_000)];
    let worse = verdict(&lost);
    assert_eq!((worse.advice, worse.policy.as_deref()), (Advice::DoNotTier, None));
    assert!(
        !worse.sentence.contains("hybridtier") && !worse.sentence.contains("numab"),
        "a loser is named: {worse:?}"
    );
    assert!(lab_table(&lost).starts_with("Do not tier this program: "), "the verdict first");
    assert!(lab_table(&lost).lines().all(|line| line.chars().count() <= 80), "{}", lab_table(&lost));
    // A policy that did not run wins nothing.
    let refused = LabResult { refusal: Some("it lacks a device".into()), ..run("neomem", false, 1) };
    assert_eq!(verdict(&[none(), refused]).advice, Advice::Unknown);
    assert_eq!(verdict(&[run("numab", true, 1), run("lru", false, 2)]).advice, Advice::Unknown);
    assert!(compared(&[none()]).is_none());
}
