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

/// Checks a value against the keywords that our schema uses, and reports every difference with its path.
struct Validator<'a> {
    root: &'a Value,
    problems: Vec<String>,
}

impl Validator<'_> {
    fn check(&mut self, path: &str, value: &Value, schema: &Value) {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            match keyword.as_str() {
                "$ref" => {
                    let target = self.root.pointer(rule.as_str().expect("text").trim_start_matches('#'));
                    let target = target.unwrap_or_else(|| panic!("{path}: {rule} does not exist")).clone();
                    self.check(path, value, &target);
                }
                "type" => self.check_type(path, value, rule),
                "enum" => {
                    self.require(rule.as_array().expect("a list").contains(value), path, "one of the words");
                }
                "minimum" => self.require(value.as_f64() >= rule.as_f64(), path, "at least the minimum"),
                "maximum" => self.require(value.as_f64() <= rule.as_f64(), path, "at most the maximum"),
                "minItems" | "maxItems" => {
                    let length = value.as_array().map(|items| items.len() as u64);
                    let bound = rule.as_u64();
                    let within = if keyword == "minItems" { length >= bound } else { length <= bound };
                    self.require(within, path, "a list of that length");
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(&format!("{path}[{index}]"), item, rule);
                    }
                }
                "required" => {
                    for name in rule.as_array().expect("a list").iter().filter_map(Value::as_str) {
                        self.require(value.get(name).is_some(), &format!("{path}.{name}"), "present");
                    }
                }
                "properties" | "additionalProperties" => self.check_properties(path, value, schema, keyword),
                "$schema" | "$defs" | "title" | "description" | "unit" => {}
                other => panic!("this test does not know the keyword {other}"),
            }
        }
    }

    fn check_properties(&mut self, path: &str, value: &Value, schema: &Value, keyword: &str) {
        let known = schema.get("properties").unwrap_or(&Value::Null);
        for (name, part) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match (keyword, known.get(name), &schema["additionalProperties"]) {
                ("properties", Some(rule), _) => self.check(&path, part, rule),
                ("additionalProperties", None, Value::Bool(false)) => {
                    self.require(false, &path, "documented");
                }
                ("additionalProperties", None, rule) => self.check(&path, part, rule),
                _ => {}
            }
        }
    }

    fn check_type(&mut self, path: &str, value: &Value, rule: &Value) {
        let single = [rule.clone()];
        let allowed = rule.as_array().map_or(&single[..], Vec::as_slice);
        let fits = |name: &Value| match name.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some("integer") => value.is_u64() || value.is_i64(),
            Some("number") => value.is_number(),
            other => panic!("this test does not know the type {other:?}"),
        };
        self.require(allowed.iter().any(fits), path, &format!("of type {rule}"));
    }

    fn require(&mut self, holds: bool, path: &str, what: &str) {
        if !holds {
            self.problems.push(format!("{path} is not {what}"));
        }
    }
}

fn problems(value: &Value) -> Vec<String> {
    let schema = schema();
    let mut validator = Validator { root: &schema, problems: Vec::new() };
    validator.check("report", value, &schema);
    validator.problems
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
