//! The files of `damo record`.

use isotherm_trace::Rows;
use isotherm_trace::import::HeatOptions;
use proptest::prelude::*;

use crate::packing::{is_whole, rows, zlib};
use crate::{DAMON, Imported, damaged, damon, is_judged};

/// The records that [`DAMON`] is the text of, in JSON as damo writes it: in the version that it is from,
/// numbers of regions are text with commas.
const RECORDS: &str = r#"[
    {
        "kdamond_idx": null,
        "intervals": {"sample_us": "5000", "aggr_us": "100000", "ops_update_us": "1000000"},
        "target_id": 18446623438842320000,
        "scheme_filters": [],
        "snapshots": [
            {
                "start_time": "539809434100",
                "end_time": "539914033100",
                "regions": [
                    {
                        "start": "94,827,419,009,024",
                        "end": "94,827,452,162,048",
                        "nr_accesses": {"samples": 1, "percent": null},
                        "age": {"usec": null, "aggr_intervals": null}
                    },
                    {"start": 140271710769152, "end": 140271717171200, "nr_accesses": {"samples": 0}},
                    {"start": 140734916239360, "end": 140734916927488}
                ],
                "total_bytes": null
            },
            {
                "start_time": 539914033100,
                "end_time": 540018024100,
                "regions": [
                    {
                        "start": "94,827,419,009,024",
                        "end": "94,827,452,162,048",
                        "nr_accesses": {"samples": 1, "percent": null}
                    },
                    {"start": 140734916239360, "end": "140734916927488", "nr_accesses": {"samples": "5"}}
                ]
            }
        ]
    }
]
"#;

fn records(bytes: &[u8]) -> Imported {
    // Large steps, so that an absurd region makes few rows.
    damon(bytes, HeatOptions { bytes_per_access: 1 << 40, ..HeatOptions::default() })
}

#[test]
fn records_are_what_their_text_says() {
    let (text, summary) = damon(DAMON.as_bytes(), HeatOptions::default()).expect("text");
    for bytes in [RECORDS.as_bytes().to_vec(), zlib(RECORDS.as_bytes())] {
        let (rows, of_records) = damon(&bytes, HeatOptions::default()).expect("records");
        assert_eq!(rows, text);
        assert_eq!(of_records.processes, summary.processes);
        assert_eq!(of_records.lines, RECORDS.lines().count() as u64 + 1);
    }
}

#[test]
fn each_target_is_a_process_and_physical_memory_is_one() {
    let record = |target: &str| {
        let region = r#"{"start": 0, "end": 4096, "nr_accesses": {"samples": 2}}"#;
        let snapshot = format!(r#"{{"start_time": 0, "end_time": 1000, "regions": [{region}]}}"#);
        format!(r#"{{"target_id": {target}, "snapshots": [{snapshot}]}}"#)
    };
    let text = format!("[{},{},{}]", record("5"), record("null"), record("5"));
    let (Rows { process, .. }, summary) = damon(text.as_bytes(), HeatOptions::default()).expect("records");
    assert_eq!(process, [0, 0, 1, 1, 0, 0]);
    assert_eq!(summary.processes, ["target 5", "target None"]);
    assert_eq!(damon(b"[]", HeatOptions::default()).expect("no record").0.len(), 0);
}

#[test]
fn records_that_are_cut_off_or_wrong_are_refused_with_their_place() {
    let end = RECORDS.trim_end().len();
    is_whole(records, &RECORDS.as_bytes()[..end]);
    is_whole(records, &zlib(RECORDS.as_bytes()));
    let refused = |from: &str, to: &str| {
        assert!(RECORDS.contains(from), "{from}");
        records(RECORDS.replacen(from, to, 1).as_bytes()).expect_err(to).to_string()
    };
    let expected =
        "expected damo's records: target_id before snapshots, each with start_time, end_time and regions";
    assert_eq!(
        refused("94,827,419,009,024", "94 TiB"),
        format!("line 13: 'column 41: 94 TiB is not a whole number from 0'; {expected}")
    );
    for (from, to, problem) in [
        (r#""target_id": 18446623438842320000,"#, "", "snapshots without target_id"),
        ("18446623438842320000", "{}", "a target_id that is no number"),
        (r#""samples": 1, "#, r#""samples": null, "#, "invalid type: null"),
        (r#""samples": 0"#, r#""samples": -1"#, "invalid type: integer `-1`"),
        (r#""samples": 0"#, r#""samples": 1e3"#, "invalid type: floating point"),
        (r#""end_time": "539914033100","#, "", "missing field `end_time`"),
        ("\"94,827,419,009,024\"", "94827452162048", "a region from 94827452162048 to 94827452162048"),
        (r#""samples": 1"#, r#""samples": 99999999999"#, "too many accesses; fewer accesses"),
        ("    }\n]\n", "    }\n]]", "trailing characters"),
    ] {
        let message = refused(from, to);
        assert!(message.starts_with("line ") && message.contains(problem), "{to}: {message}");
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn a_few_bytes_that_unpack_to_much_are_refused() {
    let much = 65 << 20;
    for (start, filler) in [
        ("[{\"target_id\": \"", "a"),
        ("[{\"target_id\": 1, \"snapshots\": [{\"regions\": [{}", ","),
        ("[{\"other\": ", "["),
        ("[{\"target_id\": ", "1"),
        ("[", " "),
    ] {
        let packed = zlib(format!("{start}{}", filler.repeat(much)).as_bytes());
        assert!(packed.len() < 1 << 20);
        let message = records(&packed).expect_err("too much").to_string();
        assert!(message.starts_with("line ") && !message.contains('\n'), "{message}");
    }
    let packed = zlib(format!("[{{\"target_id\": \"{}", "a".repeat(much)).as_bytes());
    let message = records(&packed).expect_err("too much").to_string();
    assert!(message.contains("a snapshot of more than 64 MiB; expected "), "{message}");
}

#[test]
fn many_snapshots_are_more_than_one_of_them_may_be() {
    let snapshot = format!(r#"{{"start_time":0,"end_time":0,"regions":[]{}}}"#, " ".repeat(1 << 20));
    let snapshots = vec![snapshot; 80].join(",");
    let packed = zlib(format!(r#"[{{"target_id":1,"snapshots":[{snapshots}]}}]"#).as_bytes());
    assert!(rows(records(&packed)).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damage_gives_rows_or_an_error(
        bytes in prop_oneof![damaged(RECORDS.into()), damaged(zlib(RECORDS.as_bytes()))]
    ) {
        is_judged(records, &bytes)?;
    }
}
