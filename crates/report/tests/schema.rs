//! Holds the JSON output to its schema, and the schema's documentation to the schema.

mod support;

use std::fmt::Write;

use isotherm_report::json;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/result.schema.json");
const DOCUMENT: &str = include_str!("../../../docs/result-schema.md");
const MARK: &str =
    "<!-- From here on written by `ISOTHERM_WRITE_DOCS=1 cargo test -p isotherm-report --test schema`. -->\n";

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

fn problems(value: &Value) -> Vec<String> {
    support::validator::problems(&schema(), value)
}

fn serialised() -> Value {
    serde_json::from_str(&json(&support::report())).expect("the output is JSON")
}

#[test]
fn the_output_fits_its_schema() {
    assert_eq!(problems(&serialised()), Vec::<String>::new());
}

#[test]
fn what_does_not_fit_is_found() {
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
        "report.runs[1].slowdown is not at least the minimum",
        "report.runs[1].slowdown is not of type \"number\"",
        "report.runs[2].hit_ratio is not at most the maximum",
    ];
    assert_eq!(problems(&value), expected);
}

/// What every run must tell; other programs rely on these names.
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
fn fields_stand_in_the_documented_order() {
    let text = json(&support::report());
    let mut rest = text.split_once("\"runs\":[").expect("runs").1;
    for name in names(&schema()["$defs"]["run"]) {
        let (_, after) =
            rest.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} is not in its place"));
        rest = after;
    }
}

fn names(definition: &Value) -> Vec<&str> {
    definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The tables of `docs/result-schema.md`: every object with its fields.
fn documentation() -> String {
    let schema = schema();
    let objects = [
        "report",
        "input",
        "heatmap",
        "region",
        "machine",
        "number",
        "run",
        "failed_moves",
        "charges",
        "interval",
    ];
    assert_eq!(
        objects.len(),
        schema["$defs"].as_object().expect("objects").len(),
        "an object is missing here"
    );
    let mut text = String::new();
    for object in objects {
        let definition = &schema["$defs"][object];
        let description = definition["description"].as_str().unwrap_or_default();
        let _ = write!(
            text,
            "\n## {object}\n\n{description}\n\n| field | type | unit | meaning |\n|---|---|---|---|\n"
        );
        for name in names(definition) {
            let field = &definition["properties"][name];
            let unit = field["unit"].as_str().unwrap_or("");
            let meaning =
                field["description"].as_str().unwrap_or_else(|| panic!("{object}.{name} is not described"));
            let _ = writeln!(text, "| `{name}` | {} | {unit} | {meaning} |", kind(field));
        }
    }
    text
}

fn kind(field: &Value) -> String {
    if let Some(target) = field["$ref"].as_str() {
        return target.trim_start_matches("#/$defs/").to_owned();
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("array of {}", kind(&field["items"])),
        Value::String(name) if field.get("enum").is_some() => format!("{name}: {}", words(&field["enum"])),
        Value::String(name) => name.clone(),
        several => words(several),
    }
}

fn words(list: &Value) -> String {
    let words: Vec<_> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(" or ")
}

#[test]
fn every_field_is_documented() {
    let (introduction, tables) = DOCUMENT.split_once(MARK).expect("the mark in docs/result-schema.md");
    let expected = documentation();
    if tables != expected && std::env::var_os("ISOTHERM_WRITE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result-schema.md");
        std::fs::write(path, format!("{introduction}{MARK}{expected}"))
            .expect("the documentation can be written");
        return;
    }
    assert_eq!(tables, expected, "docs/result-schema.md is not what docs/result.schema.json says");
}
