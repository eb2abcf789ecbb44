//! Checks the JSON output against its schema, and the schema's documentation against the schema.

mod support;

use isotherm_report::json;
use serde_json::Value;
use support::documented::{Documented, names};

const DOCUMENTED: Documented = Documented {
    schema: include_str!("../../../docs/reference/result.schema.json"),
    document: include_str!("../../../docs/reference/result-schema.md"),
    path: "docs/reference/result-schema.md",
    test: "schema",
    objects: &[
        "report",
        "verdict",
        "manifest",
        "plan",
        "input",
        "heatmap",
        "held",
        "region",
        "machine",
        "number",
        "run",
        "long_run",
        "round",
        "parts",
        "failed_moves",
        "charges",
        "interval",
    ],
};

fn problems(value: &Value) -> Vec<String> {
    support::validator::problems(&DOCUMENTED.schema(), value)
}

fn serialised() -> Value {
    serde_json::from_str(&json(&support::report())).expect("the output is JSON")
}

#[test]
fn the_output_fits_its_schema() {
    assert_eq!(problems(&serialised()), Vec::<String>::new());
}

#[test]
fn a_long_run_fits_its_schema() {
    let value = serde_json::from_str(&json(&support::long_report())).expect("the output is JSON");
    assert_eq!(problems(&value), Vec::<String>::new());
}

#[test]
fn mismatches_are_found() {
    let mut value = serialised();
    value["runs"][0]["surprise"] = 1.into();
    value["runs"][1]["slowdown"] = "slow".into();
    value["runs"][2]["hit_ratio"] = 1.5.into();
    value["input"]["kind"] = "guess".into();
    value["input"].as_object_mut().expect("an object").remove("seed");
    let expected = [
        "report.input.kind is not one of the words",
        "report.input.seed is not present",
        "report.runs[0].surprise is not documented",
        "report.runs[1].slowdown is not of type \"number\"",
        "report.runs[2].hit_ratio is not at most the maximum",
    ];
    assert_eq!(problems(&value), expected);
}

/// Other programs rely on these names.
#[test]
fn promised_fields_are_in_every_run() {
    let promised = [
        "policy",
        "parameters",
        "workload",
        "trace",
        "machine",
        "seed",
        "version",
        "footprint_bytes",
        "fast_bytes",
        "accesses",
        "hit_ratio",
        "oracle_hit_ratio",
        "belady_hit_ratio",
        "slowdown",
        "modelled_ns",
        "stall_ns",
        "promotions",
        "demotions",
        "failed_moves",
        "bytes_moved",
        "samples",
        "samples_lost",
        "metadata_bytes",
        "tiering_cpu_ns",
        "wall_s",
    ];
    for run in serialised()["runs"].as_array().expect("runs") {
        for name in promised {
            assert!(run.get(name).is_some(), "{name}");
        }
    }
}

#[test]
fn fields_are_in_the_documented_order() {
    let text = json(&support::report());
    let mut rest = text.split_once("\"runs\":[").expect("runs").1;
    for name in names(&DOCUMENTED.schema()["$defs"]["run"]) {
        let (_, after) =
            rest.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} is not in its place"));
        rest = after;
    }
}

#[test]
fn every_field_is_documented() {
    DOCUMENTED.check();
}
