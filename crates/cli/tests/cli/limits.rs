//! Limits: memory that is said and refused before a run, reads that end, and outputs that are opened first.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Folder, RunStats, command, isotherm};

/// Runs the binary within limits that the shell sets.
fn limited(limits: &str, arguments: &[&str]) -> RunStats {
    let mut shell = Command::new("sh");
    let script = format!("ulimit -c 0; {limits}; exec \"$0\" \"$@\"");
    let run = shell.args(["-c", &script, env!("CARGO_BIN_EXE_isotherm")]).args(arguments);
    run.stdin(Stdio::null()).output().expect("a shell").into()
}

fn workloads() -> Vec<String> {
    let all = isotherm(&["workloads", "--json"]).json();
    all.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name").into()).collect()
}

#[test]
fn every_workload_at_its_maximum_is_refused_or_keeps_to_its_accesses() {
    let folder = Folder::new();
    for name in workloads() {
        let trace = folder.at(&format!("{name}.trace"));
        let sizes = ["footprint=4T", "footprint=1T", "scale=31", "users=4294967296"];
        let sizes = sizes.map(|size| format!("{name}.{size}"));
        let set = sizes.iter().find(|set| isotherm(&["workloads", &name, "--set", set]).code == Some(0));
        let set = set.unwrap_or_else(|| panic!("{name} has no such size"));
        let arguments =
            ["workloads", &name, "--set", set, "--max-accesses", "1000", "--export", &trace, "--quiet"];
        let ran = limited("ulimit -v 6000000", &arguments);
        match ran.code {
            // Nothing of a table that is never read takes memory.
            Some(0) => assert_eq!(isotherm(&["trace", "info", &trace, "--json"]).json()["rows"], 1000),
            _ => {
                let line = ran.refused(2);
                assert!(line.contains("needs about") && line.contains("--max-memory"), "{line}");
                assert!(!fs::exists(&trace).expect("readable"), "{name} left a trace");
            }
        }
    }
}

#[test]
fn memory_that_is_refused_ends_in_one_line() {
    let arguments = ["workloads", "xsbench", "--set", "xsbench.footprint=1G", "--max-memory", "1T"];
    let folder = Folder::new();
    let trace = folder.at("x.trace");
    let mut arguments = arguments.to_vec();
    arguments.extend(["--export", &trace, "--quiet"]);
    let line = limited("ulimit -v 500000", &arguments).refused(2);
    assert!(line.contains("out of memory"), "{line}");
    assert!(!fs::exists(&trace).expect("readable"));
}

#[test]
fn a_trace_that_does_not_fit_is_refused_before_it_is_read() {
    let folder = Folder::new();
    let trace = folder.trace();
    let line = isotherm(&["simulate", &trace, "--max-memory", "49M"]).refused(2);
    assert!(line.contains("--max-accesses 29127"), "{line}");
    let line = isotherm(&["simulate", &trace, "--max-memory", "1M"]).refused(2);
    assert!(line.contains("a higher --max-memory") && !line.contains("--max-accesses"), "{line}");
    let few = ["simulate", &trace, "--max-memory", "49M", "--max-accesses", "20k", "--policy", "all-slow"];
    isotherm(&few).ok();
    let line = isotherm(&["record", "--output", &folder.at("r.trace"), "--max-memory", "1M", "--", "true"]);
    assert!(line.refused(2).contains("the recorder"));
    let line =
        isotherm(&["score", "freqtier", "--quick", "--max-memory", "100M", "--output", &folder.at("s")]);
    assert!(line.refused(2).contains("needs about"));
}

/// Returns the bytes of a size such as `1.20G`.
fn bytes(size: &str) -> f64 {
    let (number, unit) = size.split_at(size.len() - 1);
    let factor = match unit {
        "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => panic!("no size: {size}"),
    };
    number.parse::<f64>().expect("a number") * factor
}

/// Runs the binary and returns what it said about memory and the peak that was seen, in MiB.
fn measured(arguments: &[&str]) -> (f64, f64) {
    let mut child =
        command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0f64;
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        peak = peak.max(found.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let ran = RunStats::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let said = ran.err.lines().find_map(|line| line.strip_prefix("isotherm: memory: about ")).expect("said");
    (bytes(said.split(' ').next().expect("a size")) / f64::from(1 << 20), peak)
}

#[test]
fn a_run_takes_no_more_memory_than_it_said_and_not_much_less() {
    let folder = Folder::new();
    let trace = folder.at("long.trace");
    let export = ["workloads", "gups", "--export", &trace, "--max-accesses", "8M"];
    let runs: [&[&str]; 5] = [
        &export,
        &["simulate", &trace, "--policy", "lru,oracle,belady", "--fast", "1:8,1:2"],
        &["size", &trace, "--policy", "lru", "--seeds", "2"],
        &["simulate", "--workload", "gups", "--policy", "lru", "--max-accesses", "8M"],
        &["simulate", "--workload", "btree", "--policy", "lru,hybridtier", "--max-accesses", "8M"],
    ];
    for arguments in runs {
        let (said, peak) = measured(arguments);
        println!("{arguments:?}: said {said:.0} MiB, took {peak:.0}");
        // The tool itself is beside what it says.
        assert!(peak <= said + 48.0, "{arguments:?}: {peak} of {said}");
        assert!(said <= 3.0 * peak, "{arguments:?}: {peak} of {said}");
    }
}

#[test]
fn what_never_ends_or_never_begins_is_not_read() {
    let folder = Folder::new();
    let trace = folder.trace();
    let pipe = folder.at("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for machine in ["/dev/zero", &pipe] {
        for arguments in [&["simulate", &trace, "--machine", machine][..], &["machines", machine]] {
            assert!(isotherm(arguments).refused(2).contains("not a regular file"));
        }
    }
    let large = folder.file("large.toml", "");
    fs::File::options().write(true).open(&large).and_then(|file| file.set_len(1 << 40)).expect("sparse");
    assert!(isotherm(&["machines", &large]).refused(2).contains("larger than 16M"));
    let part = format!("{trace}/part-00001.parquet");
    assert!(Command::new("mkfifo").arg(&part).status().expect("mkfifo").success());
    for arguments in [&["simulate", &trace][..], &["trace", "info", &trace], &["trace", "head", &part]] {
        assert!(isotherm(arguments).refused(2).contains("not a regular file"), "{arguments:?}");
    }
    let scores = folder.at("scores");
    fs::create_dir(&scores).expect("a folder");
    std::os::unix::fs::symlink("/dev/zero", format!("{scores}/scoreboard.json")).expect("a link");
    let update = ["score", "freqtier", "--quick", "--update", "--output", &scores];
    assert!(isotherm(&update).refused(2).contains("not a regular file"));
}

#[test]
fn an_import_that_fails_leaves_nothing_and_its_name_is_free() {
    let folder = Folder::new();
    let trace = folder.at("x.trace");
    let import = |text: &str| {
        let input = folder.file("input.txt", text);
        isotherm(&["trace", "convert", "--from", "lackey", &input, "--output", &trace])
    };
    let good = " L 1000,8\n S 2000,8\n";
    assert!(import(&format!("{good}nonsense\n")).refused(2).contains("line 3"));
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "only the input: {left:?}");
    import(good).ok();
    assert_eq!(isotherm(&["trace", "info", &trace, "--json"]).json()["rows"], 2);
    // Half of a trace is no more than half an import.
    let part = format!("{trace}/part-00000.parquet");
    let bytes = fs::read(&part).expect("a part");
    fs::write(format!("{trace}/part-00001.parquet"), &bytes).expect("written");
    let copy = folder.at("copy.trace");
    isotherm(&["trace", "convert", "--from", "trace", &trace, "--output", &copy]).ok();
    fs::write(format!("{trace}/part-00001.parquet"), &bytes[..bytes.len() / 2]).expect("written");
    let again = folder.at("again.trace");
    isotherm(&["trace", "convert", "--from", "trace", &trace, "--output", &again]).refused(2);
    assert!(!fs::exists(&again).expect("readable"));
}

#[test]
fn terminal_codes_in_a_trace_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let input = folder.file("\u{1b}[2Jinput\n\u{9b}31m.txt", "812 dummy: 1000\n");
    let trace = folder.at("x.trace");
    isotherm(&["trace", "convert", "--from", "perf", &input, "--output", &trace]).ok();
    let info = isotherm(&["trace", "info", &trace]).ok();
    assert!(info.contains("\\u001b[2Jinput\\u000a\\u009b31m.txt"), "{info}");
    let named = folder.at("\u{1b}]0;title\u{7}.trace");
    fs::rename(&trace, &named).expect("renamed");
    let arguments: [&[&str]; 4] = [
        &["trace", "info", &named],
        &["trace", "info", &named, "--json"],
        &["simulate", &named, "--policy", "all-slow", "--fast", "1:0"],
        &["simulate", &named, "--policy", "lru", "--fast", "1:1e9"],
    ];
    for arguments in arguments {
        let ran = isotherm(arguments);
        let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!ran.out.contains(harmful) && !ran.err.contains(harmful), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn the_largest_numbers_of_a_trace_are_numbers() {
    use isotherm_trace::{Provenance, Row, Rows, TraceWriter};
    let folder = Folder::new();
    let write = |name: &str, row: Row| {
        let mut rows = Rows::default();
        rows.push(row);
        let mut writer = TraceWriter::create(folder.at(name), Provenance::new("test")).expect("new");
        writer.append(&rows).expect("written");
        writer.finish().expect("finished");
        folder.at(name)
    };
    let row = Row { process: 0, thread: u32::MAX, instructions: 1, line: 0, store: false, dependence: 0 };
    let thread = write("thread.trace", row);
    isotherm(&["simulate", &thread, "--policy", "all-slow", "--fast", "1:0"]).ok();
    assert_eq!(isotherm(&["trace", "info", &thread, "--json"]).json()["threads"], 1u64 << 32);
    let ones = write("ones.trace", Row { process: u32::MAX, line: u64::MAX, ..row });
    let line = isotherm(&["simulate", &ones, "--policy", "all-slow"]).refused(2);
    assert!(line.contains("2^56"), "{line}");
    assert!(isotherm(&["trace", "head", &ones]).ok().contains(&u64::MAX.to_string()));
    let merged = write("merged.trace", Row { process: 1 << 20, ..row });
    assert!(isotherm(&["simulate", &merged, "--policy", "all-slow"]).refused(2).contains("2^20"));
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_program_starts() {
    let folder = Folder::new();
    let marker = folder.at("started");
    let missing = folder.at("no/such/folder/file");
    for option in ["--summary", "--report"] {
        let ran = isotherm(&["run", "--shadow", option, &missing, "--", "touch", &marker]);
        assert!(ran.refused(2).contains(&missing));
        assert!(!fs::exists(&marker).expect("readable"), "the program ran");
    }
    let folders = folder.at("folder");
    fs::create_dir(&folders).expect("a folder");
    assert!(
        isotherm(&["run", "--shadow", "--summary", &folders, "--", "true"]).refused(2).contains(&folders)
    );
}

#[test]
fn an_output_that_fails_leaves_the_older_one_and_the_programs_status() {
    let folder = Folder::new();
    let older = folder.file("summary.json", "older");
    // A file of at most 512 bytes can be written.
    let arguments = ["run", "--shadow", "--quiet", "--summary", &older, "--", "sh", "-c", "exit 7"];
    let ran = limited("trap '' XFSZ; ulimit -f 1", &arguments);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert_eq!(fs::read_to_string(&older).expect("a file"), "older");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    isotherm(&arguments);
    assert!(fs::read_to_string(&older).expect("a file").starts_with('{'));
}
