//! `trace info|head|convert` on the output of other tools and of Isotherm.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Folder, RunStats, command, isotherm};

/// Returns a sample of another tool's output from the importers' tests.
fn sample(name: &str) -> String {
    format!("{}/../trace/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Converts an input and returns the trace.
fn convert(folder: &Folder, format: &str, input: &str) -> String {
    let trace = folder.at(&format!("{format}.trace"));
    let ran = isotherm(&["trace", "convert", "--from", format, input, "--output", &trace]);
    assert!(ran.err.contains("rows"), "{}", ran.err);
    assert_eq!(ran.ok(), "");
    trace
}

/// Returns a trace of ChampSim that chases pointers through this many pages.
fn champsim(pages: u64) -> Vec<u8> {
    let step = |page: u64| {
        let mut record = [0; 64];
        // Register 3 is written and read; the load's address.
        (record[10], record[12]) = (3, 3);
        record[32..40].copy_from_slice(&(page << 12).to_le_bytes());
        record
    };
    (1..=pages).flat_map(step).collect()
}

/// Writes a recording of DynamoRIO with two threads, and returns its directory.
fn drmemtrace(folder: &Folder) -> String {
    let path = folder.path().join("drmemtrace.app.dir/trace");
    std::fs::create_dir_all(&path).expect("a folder");
    for thread in [5, 6] {
        // Type, size or marker, value: header, thread, process, timestamp, instruction, read, footer.
        let records: [(u16, u16, u64); 7] = [
            (25, 0, 7),
            (22, 4, thread),
            (24, 4, 5),
            (28, 2, 1000 - thread),
            (10, 4, 0x40_1000),
            (0, 8, thread << 12),
            (26, 0, 0),
        ];
        let bytes = records.iter().flat_map(|(kind, size, value)| {
            [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
        });
        let file = path.join(format!("drmemtrace.app.{thread}.trace"));
        std::fs::write(file, bytes.collect::<Vec<u8>>()).expect("written");
    }
    path.parent().expect("a folder").display().to_string()
}

#[test]
fn imported_accesses_pass_the_cache_that_is_asked_for_and_dependences_are_told() {
    let folder = Folder::new();
    let twice = folder.file("twice.champsim", champsim(100).repeat(2));
    let convert = |name: &str, options: &[&str]| {
        let trace = folder.at(name);
        let line = ["trace", "convert", "--from", "champsim", &twice, "--output", &trace];
        isotherm(&[&line[..], options].concat()).ok();
        isotherm(&["trace", "info", &trace, "--json"]).json()
    };
    let fits = convert("fits.trace", &[]);
    assert_eq!(
        (&fits["rows"], &fits["dependent"], &fits["instructions"]),
        (&100.into(), &99.into(), &100.into())
    );
    assert_eq!(fits["provenance"]["dependence"], true);
    assert_eq!(fits["provenance"]["accesses"], 200);
    let small = convert("small.trace", &["--cache", "4K", "--ways", "1"]);
    assert_eq!((&small["rows"], &small["provenance"]["cache"]["sets"]), (&200.into(), &64.into()));

    let trace = folder.at("threads.trace");
    let recording = drmemtrace(&folder);
    isotherm(&["trace", "convert", "--from", "drmemtrace", &recording, "--output", &trace]).ok();
    let info = isotherm(&["trace", "info", &trace, "--json"]).json();
    assert_eq!((&info["threads"], &info["processes"], &info["dependent"]), (&2.into(), &1.into(), &0.into()));
    let head = isotherm(&["trace", "head", &trace]).ok();
    // The second thread's file has the earlier timestamp.
    assert_eq!(
        head.lines().skip(1).collect::<Vec<_>>(),
        ["0\t1\t1\t384\tfalse\t0", "0\t0\t1\t320\tfalse\t0"]
    );
}

#[test]
fn other_tools_output_becomes_a_trace_that_is_explained_and_replayed() {
    let folder = Folder::new();
    let inputs = [
        ("perf", sample("perf-script.txt")),
        ("lackey", sample("lackey.txt")),
        ("damon", sample("damon.txt")),
        ("memtierd", folder.file("raw.txt", "1700000000000000000 4711 400000 2 1 1\n")),
        ("champsim", folder.file("app.champsim", champsim(2000))),
        ("drmemtrace", drmemtrace(&folder)),
    ];
    for (format, input) in inputs {
        let trace = convert(&folder, format, &input);
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
    let converted = convert(&folder, "perf", &sample("perf-script.txt"));
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
