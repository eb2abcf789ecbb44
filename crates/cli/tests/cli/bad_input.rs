//! Bad input: one line on standard error that says what is wrong and what was expected, exit code 2, no
//! panic.

use crate::support::{Folder, isotherm};

/// Returns the line that refuses a simulation of `trace` with more arguments.
fn refused(trace: &str, arguments: &[&str]) -> String {
    let mut all = vec!["simulate", trace];
    all.extend(arguments);
    isotherm(&all).refused(2)
}

fn contains(line: &str, words: &[&str]) {
    assert!(words.iter().all(|word| line.contains(word)), "{words:?} in: {line}");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let folder = Folder::new();
    let trace = folder.trace();
    contains(&refused(&trace, &["--policy", "freqteir"]), &["freqteir", "freqtier"]);
    contains(&refused(&trace, &["--machine", "freqtier-cxl"]), &["freqtier-cxl'", "freqtier-cxl1"]);
    contains(&isotherm(&["simulate", "--workload", "gusp"]).refused(2), &["gusp", "gups"]);
    contains(&isotherm(&["policies", "freqteir"]).refused(2), &["freqteir", "freqtier"]);
    contains(&isotherm(&["workloads", "cachelib"]).refused(2), &["cachelib", "cachelib-cdn"]);
    contains(&isotherm(&["machines", "pcat"]).refused(2), &["pcat", "pact"]);
}

#[test]
fn sizes_that_leave_nothing_to_tier_are_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    for size in ["0%", "0", "1:1e9", "1K"] {
        contains(&refused(&trace, &["--fast", size]), &["--fast", size]);
    }
    for size in ["101%", "-5%", "1:-8", "0:8", "1:nan", "a:b", "", ":", "5 parsecs", "1:8:2", "99999999999T"]
    {
        let argument = format!("--fast={size}");
        contains(&refused(&trace, &[&argument]), &["--fast"]);
    }
    contains(&refused(&trace, &["--fast", "500G"]), &["500G", "footprint"]);
}

#[test]
fn a_size_that_holds_everything_is_said_to() {
    let folder = Folder::new();
    let trace = folder.trace();
    for size in ["1:0", "100%"] {
        let table = isotherm(&["simulate", &trace, "--policy", "freqtier", "--fast", size]).ok();
        assert!(table.contains("fits the fast tier"), "{table}");
    }
}

#[test]
fn settings_for_nobody_or_with_impossible_values_are_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let set = |setting: &str| refused(&trace, &["--policy", "freqtier", "--set", setting]);
    contains(&set("freqtier.btach=1"), &["btach", "batch"]);
    contains(&set("freqtier.batch=many"), &["batch", "many", "whole number"]);
    contains(&set("freqtier.batch=-1"), &["batch", "-1"]);
    contains(&set("gups.footprint=1G"), &["gups"]);
    contains(&set("nonsense"), &["nonsense", "GROUP.KEY=VALUE"]);
    contains(&set("machine.tier.1.latency=fast"), &["tier.1.latency", "fast"]);
    contains(&set("machine.tier.1.latency=1ns"), &["tier"]);
    contains(&set("machine.tier.9.latency=1us"), &["tier.9.latency"]);
    for workload in ["gups.footprint=0", "gups.footprint=99999T", "gups.threads=0", "gups.hot_share=2"] {
        contains(&isotherm(&["simulate", "--workload", "gups", "--set", workload]).refused(2), &["gups"]);
    }
    contains(&refused(&trace, &["--scale", "0"]), &["--scale 0"]);
    contains(&refused(&trace, &["--scale", "NaN"]), &["--scale NaN"]);
}

#[test]
fn a_curve_that_no_memory_can_have_is_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/turin.toml");
    let turin = std::fs::read_to_string(path).expect("a profile");
    let machine = |from: &str, to: &str| {
        assert!(turin.contains(from), "{from}");
        folder.file("mine.toml", turin.replace(from, to))
    };
    for (curve, words) in [
        ("vistara-cxx", &["tier.1.curve", "no curve 'vistara-cxx'", "vistara-cxl"][..]),
        ("100,0,250; 100,20,200", &["tier.1.curve", "point 2", "200 ns", "below the 250 ns"]),
        ("100,0,250; 100,20,260; 100,20,270", &["tier.1.curve", "point 3", "20 GB/s", "exceed"]),
        ("100,0,250; 100,twenty,260", &["tier.1.curve", "point 2", "'100,twenty,260'", "GB/s"]),
    ] {
        let machine = machine("\"vistara-cxl\"", &format!("\"{curve}\""));
        contains(&refused(&trace, &["--machine", &machine]), words);
        contains(&isotherm(&["machines", &machine]).refused(2), words);
        let setting = format!("machine.tier.1.curve={curve}");
        contains(&refused(&trace, &["--machine", "turin", "--set", &setting]), words);
    }
    let factor = "name = \"CXL\"\nloaded_latency_factor = { value = 2, source = \"a test\" }";
    let both = machine("name = \"CXL\"", factor);
    contains(&refused(&trace, &["--machine", &both]), &["tier.1.loaded_latency_factor", "curve"]);
}

#[test]
fn a_machine_may_start_from_another_and_a_base_that_cannot_be_is_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let far = "[[tier]]\n[[tier]]\nlatency = { value = \"400ns\", source = \"a test\" }\n";
    folder.file("base.toml", format!("base = \"turin\"\n{far}"));
    let mine = folder.file("mine.toml", "base = \"base.toml\"\ntitle = \"Mine\"\n");
    let shown = isotherm(&["machines", &mine, "--json"]).json();
    assert_eq!((&shown["name"], &shown["title"]), (&"mine".into(), &"Mine".into()));
    let numbers = shown["numbers"].as_array().expect("numbers");
    let number = |path: &str| numbers.iter().find(|number| number["path"] == path).expect(path);
    assert_eq!(number("tier.1.latency")["value"], "400ns");
    assert_eq!(number("core.cores")["value"], "158", "turin's");
    isotherm(&["simulate", &trace, "--policy", "lru", "--machine", &mine]).ok();
    for (base, words) in [
        ("sapphire-rapid", &["no machine 'sapphire-rapid'", "sapphire-rapids"][..]),
        ("missing.toml", &["missing.toml", "No such file", "expected a machine's name"]),
        ("wrong.toml", &["wrong.toml", "goes in a circle"]),
        ("/dev/zero", &["/dev/zero", "not a regular file"]),
    ] {
        let wrong = folder.file("wrong.toml", format!("base = \"{base}\"\n"));
        contains(&isotherm(&["machines", &wrong]).refused(2), &[&["wrong.toml: base: "], words].concat());
        contains(&refused(&trace, &["--machine", &wrong]), words);
    }
}

#[test]
fn unknown_presets_are_answered_with_those_there_are() {
    let folder = Folder::new();
    let trace = folder.trace();
    let line = refused(&trace, &["--policy", "hybridtier", "--set", "hybridtier.preset=artefact"]);
    contains(&line, &["hybridtier.preset", "artefact", "default, artifact"]);
    contains(
        &refused(&trace, &["--policy", "freqtier", "--set", "freqtier.preset=x"]),
        &["no parameter 'preset'"],
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let part = std::fs::read(format!("{trace}/part-00000.parquet")).expect("a part");
    for (name, content) in [
        ("empty.parquet", &[][..]),
        ("foreign.parquet", b"id,name\n1,one\n"),
        ("half.parquet", &part[..part.len() / 2]),
        ("headless.parquet", &part[16..]),
    ] {
        let file = folder.file(name, content);
        contains(&refused(&file, &[]), &[name]);
        contains(&isotherm(&["trace", "info", &file]).refused(2), &[name]);
        contains(&isotherm(&["trace", "head", &file]).refused(2), &[name]);
    }
    std::fs::create_dir(folder.path().join("empty.trace")).expect("a folder");
    contains(&refused(&folder.at("empty.trace"), &[]), &["empty.trace", "part"]);
    contains(&refused(&folder.at("missing.trace"), &[]), &["missing.trace"]);
    contains(&refused("/dev/null", &[]), &["/dev/null"]);
}

#[test]
fn a_version_of_another_isotherm_is_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let mut part = std::fs::read(format!("{trace}/part-00000.parquet")).expect("a part");
    let key = b"isotherm.trace.version";
    let at = part.windows(key.len()).position(|window| window == key).expect("the key");
    // The value follows the key as a thrift string: a type byte, the length and the text.
    let value = at + key.len() + 2;
    assert_eq!(part[value], b'1', "the version of today");
    part[value] = b'9';
    let file = folder.file("future.parquet", &part);
    contains(&refused(&file, &[]), &["future.parquet", "9", "version"]);
}

#[test]
fn a_trace_without_rows_is_refused_by_a_replay_but_explained() {
    let folder = Folder::new();
    let log = folder.file("silent.txt", "==1== Lackey, an example Valgrind tool\n");
    let trace = folder.at("silent.trace");
    let convert = isotherm(&["trace", "convert", "--from", "lackey", &log, "--output", &trace]);
    if convert.code == Some(0) {
        contains(&refused(&trace, &[]), &["silent.trace"]);
        assert_eq!(isotherm(&["trace", "info", &trace, "--json"]).json()["rows"], 0);
    } else {
        contains(&convert.refused(2), &["silent.txt"]);
    }
}

#[test]
fn malformed_machine_files_are_refused_with_file_and_field() {
    let folder = Folder::new();
    let trace = folder.trace();
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/pact.toml");
    let good = std::fs::read_to_string(good).expect("a profile");
    let cases = [
        ("toml", "= 3".to_owned()),
        ("none", String::new()),
        ("field", good.replace("reorder_window", "reorder_widnow")),
        ("unit", good.replace("\"190ns\"", "\"190GB\"")),
        ("negative", good.replace("\"190ns\"", "\"-190ns\"")),
        ("order", good.replace("\"190ns\"", "\"1ns\"")),
        ("binary", "\u{0}\u{1}".to_owned()),
    ];
    for (name, text) in cases {
        let file = folder.file(&format!("{name}.toml"), text);
        contains(&refused(&trace, &["--machine", &file]), &[&format!("{name}.toml")]);
        isotherm(&["machines", &file]).refused(2);
    }
    let file = folder.file("bytes.toml", [0xff, 0xfe]);
    contains(&refused(&trace, &["--machine", &file]), &["bytes.toml"]);
    contains(&refused(&trace, &["--machine", "no/such/file.toml"]), &["no/such/file.toml"]);
    contains(&refused(&trace, &["--machine", &folder.at("")]), &["not a regular file"]);
}

#[test]
fn a_tlb_without_entries_and_a_core_without_walkers_are_refused() {
    let folder = Folder::new();
    let trace = folder.trace();
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/pact.toml");
    let good = std::fs::read_to_string(good).expect("a profile");
    for name in ["first_entries", "first_huge_entries", "second_entries", "second_ways", "walkers"] {
        let (field, setting) = (format!("tlb.{name}"), format!("machine.tlb.{name}=0"));
        contains(&refused(&trace, &["--set", &setting]), &[&field, "'0' is not a whole number from 1"]);
        let start = good.find(&format!("\n{name} = ")).expect("a field") + 1;
        let end = start + good[start..].find('\n').expect("a line");
        let line = format!("{name} = {{ value = 0, source = \"a test\" }}");
        let file = folder.file(&format!("{name}.toml"), [&good[..start], &line, &good[end..]].concat());
        contains(&refused(&trace, &["--machine", &file]), &[&file, &field]);
    }
    let (before, rest) = good.split_once("[tlb]").expect("a section");
    let (_, after) = rest.split_once("[[tier]]").expect("tiers");
    let file = folder.file("none.toml", format!("{before}[[tier]]{after}"));
    contains(&refused(&trace, &["--machine", &file]), &["tlb is missing; expected a section [tlb]"]);
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = Folder::new();
    let trace = folder.trace();
    let report = folder.at("no/such/folder/report.html");
    let ran = isotherm(&["simulate", &trace, "--policy", "all-slow", "--report", &report]);
    contains(&ran.refused(2), &[&report]);
    let file = folder.file("file", "");
    contains(&isotherm(&["man", &file]).refused(1), &[&file]);
    let export = ["workloads", "gups", "--set", "gups.footprint=1M", "--export", &trace];
    contains(&isotherm(&export).refused(2), &["small.trace", "exist"]);
    let full = ["policies", "--json"];
    let device = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let output = crate::support::command(&full).stdout(device).output().expect("it runs");
    contains(&crate::support::RunStats::from(output).refused(1), &["standard output"]);
}

#[test]
fn malformed_output_of_other_tools_is_refused_with_its_place() {
    let folder = Folder::new();
    let cases: [(&str, &[u8], &str); 11] = [
        ("perf", b"not perf at all\n", "line 1"),
        ("lackey", b" L zzzz,8\n", "line 1"),
        ("lackey", b" L 10,8\n L", "line 2"),
        ("damon", b"words\n", "line 1"),
        ("damon", b"[\n{", "line 2"),
        ("damon", b"x\x9c", "the zlib data end early"),
        ("memtierd", b"words\n", "line 1"),
        ("champsim", &[0; 65], "record 1: 1 bytes of 64"),
        ("champsim", b"\xfd7zXZ\0", "the xz data end early"),
        ("drmemtrace", &[0; 12], "record 0: type 0"),
        ("drmemtrace", b"PK\x03\x04", "the zip data end early"),
    ];
    for (number, (format, bytes, place)) in cases.into_iter().enumerate() {
        let file = folder.file("input.file", bytes);
        let trace = folder.at(&format!("{number}.trace"));
        let ran = isotherm(&["trace", "convert", "--from", format, &file, "--output", &trace]);
        contains(&ran.refused(2), &["input.file", place, "expected "]);
        assert!(!folder.path().join(trace).exists());
    }
    let folder_alone = folder.path().display().to_string();
    let trace = folder.at("folder.trace");
    let ran = isotherm(&["trace", "convert", "--from", "drmemtrace", &folder_alone, "--output", &trace]);
    contains(&ran.refused(2), &[&folder_alone, "input.file: record 0: "]);
    let ran =
        isotherm(&["trace", "convert", "--from", "perf", "/no/such", "--output", &folder.at("x.trace")]);
    contains(&ran.refused(2), &["/no/such"]);
    assert!(!folder.path().join("x.trace").exists());
}

#[test]
fn the_command_line_itself_is_checked() {
    for arguments in [
        &["simulate"][..],
        &["simulate", "a.trace", "--workload", "gups"],
        &["simulate", "a.trace", "--seed", "-1"],
        &["record", "--output", "x.trace"],
        &["record", "--output", "x.trace", "--ways", "0", "--", "true"],
        &["record", "--output", "x.trace", "--cache", "9999999999T", "--", "true"],
        &["completions", "tcsh"],
        &["nonsense"],
        &[],
    ] {
        let ran = isotherm(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(!ran.err.is_empty() && !ran.err.contains("panicked"), "{}", ran.err);
    }
}
