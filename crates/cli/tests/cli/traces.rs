//! `trace info|head|convert` on the output of other tools and of Isotherm.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Folder, RunStats, command, isotherm};

/// Returns a sample of another tool's output from the importers' tests.
fn sample(name: &str) -> String {
    format!("{}/../trace/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Converts a sample and returns the trace.
fn convert(folder: &Folder, format: &str, file: &str) -> String {
    let trace = folder.at(&format!("{format}.trace"));
    let ran = isotherm(&["trace", "convert", "--from", format, &sample(file), "--output", &trace]);
    assert!(ran.err.contains("rows"), "{}", ran.err);
    assert_eq!(ran.ok(), "");
    trace
}

#[test]
fn other_tools_output_becomes_a_trace_that_is_explained_and_replayed() {
    let folder = Folder::new();
    for (format, file) in [("perf", "perf-script.txt"), ("lackey", "lackey.txt"), ("damon", "damon.txt")] {
        let trace = convert(&folder, format, file);
        let info = isotherm(&["trace", "info", &trace, "--json"]).json();
        let rows = info["rows"].as_u64().expect("a number");
        assert!(rows > 0, "{format}");
        let text = isotherm(&["trace", "info", &trace]).ok();
        assert!(text.starts_with(&format!("{trace}: {rows} misses")), "{text}");
        let head = isotherm(&["trace", "head", &trace, "-n", "3"]).ok();
        assert_eq!(head.lines().count() as u64, 1 + rows.min(3), "{head}");
        // The columns have the files' names (docs/reference/trace-format.md).
        assert!(head.starts_with("process\tthread\tinstructions\tline\tstore\tdependence\n"));
        assert!(
            head.lines().skip(1).all(|row| row.contains("\tfalse\t") || row.contains("\ttrue\t")),
            "{head}"
        );
        let replayed =
            isotherm(&["simulate", &trace, "--policy", "all-slow", "--fast", "50%", "--json"]).json();
        assert_eq!(replayed["runs"][0]["accesses"], rows);
    }
}

#[test]
fn a_tool_can_write_into_a_pipe() {
    let folder = Folder::new();
    let trace = folder.at("piped.trace");
    let mut child = command(&["trace", "convert", "--from", "perf", "-", "--output", &trace])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let text = std::fs::read(sample("perf-script.txt")).expect("a sample");
    child.stdin.take().expect("a pipe").write_all(&text).expect("it reads");
    RunStats::from(child.wait_with_output().expect("it ends")).ok();
    let converted = convert(&folder, "perf", "perf-script.txt");
    let head = |trace: &str| isotherm(&["trace", "head", trace, "-n", "1000"]).ok();
    assert_eq!(head(&trace), head(&converted));
}

#[test]
fn a_trace_gathered_anew_holds_the_same() {
    let folder = Folder::new();
    let trace = folder.trace();
    let copy = folder.at("copy.trace");
    isotherm(&["trace", "convert", "--from", "trace", &trace, "--output", &copy]).ok();
    let info = |trace: &str| {
        let mut info = isotherm(&["trace", "info", trace, "--json"]).json();
        info.as_object_mut().and_then(|info| info.remove("trace")).expect("its name");
        info
    };
    assert_eq!(info(&trace), info(&copy));
    assert_eq!(info(&trace)["rows"], 50_000);
}

#[test]
fn a_single_file_is_a_trace_too() {
    let folder = Folder::new();
    let trace = folder.trace();
    let part = format!("{trace}/part-00000.parquet");
    assert_eq!(isotherm(&["trace", "info", &part, "--json"]).json()["rows"], 50_000);
}
