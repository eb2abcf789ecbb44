//! Policies outside of the source tree: `policy new`, the library that its crate builds to, and libraries
//! that are none or do what they must not.

#[path = "../../../../docs/guide/examples/twice.rs"]
#[rustfmt::skip]
mod twice;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;

use isotherm_core::PageSize;
use isotherm_machine::Profile;
use isotherm_policies::Entry;
use isotherm_sim::{Experiment, FastSize, RunResult, load_workload, simulate};
use serde_json::Value;

use crate::support::{Folder, RunStats, command, hint_faults_work, isotherm, read, shadow};

/// The guide's example as a policy of the tree.
static TWICE: Entry = Entry::policy("twice", "Twice", twice::Settings::SPECS, &|parameters, setup| {
    Ok(Box::new(twice::Twice::new(parameters, setup)))
});

/// Runs the binary in a folder.
fn isotherm_in(folder: &Folder, arguments: &[&str]) -> RunStats {
    command(arguments).current_dir(folder.path()).output().expect("the binary starts").into()
}

/// Makes a crate with `policy new` and builds it alone: without network, and without any crate but its own.
/// Returns the library's path.
fn built(folder: &Folder, name: &str) -> String {
    let said = isotherm_in(folder, &["policy", "new", name]).ok();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline"]).current_dir(folder.path().join(name));
    cargo.env("CARGO_HOME", folder.at("no-registry")).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    let cargo = RunStats::from(cargo.output().expect("cargo runs"));
    assert_eq!(cargo.code, Some(0), "{}", cargo.err);
    assert!(!cargo.err.contains("warning"), "{}", cargo.err);
    let library = format!("{name}/target/release/lib{}_policy.so", name.replace('-', "_"));
    assert!(said.contains(&library), "{said}");
    folder.at(&library)
}

/// The run without what differs between two of the same policy.
fn without_wall_time(run: &RunResult) -> Value {
    let mut run = serde_json::to_value(run).expect("a result is JSON");
    run["wall_s"].take();
    run
}

/// Runs both policies over one input, in this process.
fn side_by_side(ours: &'static Entry, theirs: &'static Entry) -> [RunResult; 2] {
    let workload = isotherm_workloads::find("gups").expect("it exists");
    let mut go_on = |_| ControlFlow::Continue(());
    let parameters = workload.parameters();
    let loaded =
        load_workload(workload, parameters, PageSize::Base, 1, 2_000_000, &mut go_on).expect("it loads");
    let experiment = Experiment {
        policies: vec![(ours, ours.parameters()), (theirs, theirs.parameters())],
        sizes: vec![FastSize::parse("1:8").expect("a size")],
        profile: &Profile::builtin("sapphire-rapids").expect("it exists"),
        seed: 1,
        scale: loaded.scale,
        intervals: 10,
        version: "test",
        stop: None,
    };
    let report = simulate(&loaded.input, &experiment, &|| ()).expect("both run");
    report.runs.try_into().expect("two runs")
}

#[test]
fn a_new_policy_builds_alone_and_runs_as_the_same_policy_in_the_tree() {
    let folder = Folder::new();
    let library = built(&folder, "twice");
    let source = std::fs::read_to_string(folder.path().join("twice/src/policy.rs")).expect("it was written");
    assert_eq!(source, include_str!("../../../../docs/guide/examples/twice.rs"));
    let loaded = isotherm_plugin::load(library.as_ref()).expect("a policy");
    let [inside, outside] = side_by_side(&TWICE, loaded);
    assert!(inside.promotions > 0 && inside.samples > 1000, "{inside:?}");
    assert_eq!(without_wall_time(&inside), without_wall_time(&outside));

    // The command line takes it where it takes names.
    let trace = folder.trace();
    let set = ["--set", "twice.window=2s", "--json"];
    let result =
        isotherm(&[&["simulate", &trace, "--policy", &format!("{library},first-touch")], &set[..]].concat());
    let result = result.json();
    assert_eq!(result["runs"][0]["policy"], "twice");
    assert_eq!(result["runs"][0]["parameters"]["window"], "2s");
    let hash = result["manifest"]["policy_libraries"]["twice"].as_str().expect("a hash");
    assert!(hash.starts_with("build:") || hash.starts_with("xxh64:"), "{hash}");
    assert_eq!(result["manifest"]["policy_libraries"].as_object().map(serde_json::Map::len), Some(1));
    let wrong = isotherm(&["simulate", &trace, "--policy", &library, "--set", "twice.windw=2s"]).refused(2);
    assert!(wrong.contains("twice has no parameter 'windw'; it has window"), "{wrong}");
    let sized = ["size", &trace, "--policy", &library, "--rounds", "6", "--seeds", "2", "--json"];
    assert_eq!(isotherm(&sized).json()["policies"][0]["policy"], "twice");
    let page = folder.at("report.html");
    isotherm(&["simulate", &trace, "--policy", &library, "--report", &page]).ok();
    assert!(std::fs::read_to_string(&page).expect("a report").contains("twice"));
    let explained = isotherm(&["policies", &library]).ok();
    assert!(explained.contains("Promotes pages that were sampled twice") && explained.contains("window"));

    if hint_faults_work() {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
        let target = binary.parent().expect("a folder").join("examples/live-target").display().to_string();
        let summary = folder.at("summary.json");
        let program = [&target, "planted", "--size", "32M", "--operations", "30000000"];
        shadow(&summary, &["--policy", &library, "--set", "twice.window=1s"], &program).ok();
        let live = read(&summary);
        assert_eq!((&live["policy"], &live["parameters"]["window"]), (&"twice".into(), &"1s".into()));
        assert_eq!(live["manifest"]["policy_libraries"]["twice"], hash);
        assert!(live["samples"].as_u64() > Some(0) && live["steps"].as_u64() > Some(0), "{live}");
    }
}

#[test]
fn a_new_policy_gets_a_name_that_is_free_and_a_folder_that_is_new() {
    let folder = Folder::new();
    let refused = |name: &str| isotherm_in(&folder, &["policy", "new", name]).refused(2);
    assert!(refused("lru").contains("there is a policy of that name"));
    for name in ["", "Twice", "a b", "../up", "a/b", "a_b"] {
        assert!(refused(name).contains("expected a name such as hot-twice"), "{name}");
    }
    isotherm_in(&folder, &["policy", "new", "hot-twice"]).ok();
    let lib = std::fs::read_to_string(folder.path().join("hot-twice/src/lib.rs")).expect("it was written");
    assert!(lib.contains("policy: policy::HotTwice") && !lib.contains('@'), "{lib}");
    assert!(refused("hot-twice").contains("is there already"));
}

/// Compiles a shared library of C.
fn compiled(folder: &Folder, name: &str, source: &str) -> String {
    let (library, source) = (folder.at(name), folder.file(&format!("{name}.c"), source));
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status();
    assert!(status.expect("cc is missing: run `make setup`").success());
    library
}

/// The library of `examples/misbehaving.rs`.
fn misbehaving() -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let library = binary.parent().expect("a folder").join("examples/libmisbehaving.so");
    assert!(library.exists(), "cargo builds examples with tests: {}", library.display());
    library.display().to_string()
}

#[test]
fn a_file_that_is_no_policy_of_this_version_is_refused_before_any_of_its_code_runs() {
    let folder = Folder::new();
    let whole = std::fs::read(misbehaving()).expect("a library");
    let pipe = folder.at("pipe.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let code = "#include <stdlib.h>\n__attribute__((constructor)) static void run(void) { exit(77); }\n";
    let cases = [
        (folder.at("missing.so"), "No such file"),
        (folder.path().display().to_string(), "not a shared library that can be loaded (it is not a file)"),
        (pipe, "it is not a file"),
        (folder.file("empty.so", ""), "not a shared library"),
        (folder.file("text.so", "no library"), "not a shared library"),
        (folder.file("head.so", &whole[..64]), "not a shared library"),
        ("/bin/sh".into(), "lacks the symbol isotherm_policy_abi"),
        (compiled(&folder, "plain.so", code), "lacks the symbol isotherm_policy_abi"),
        (
            compiled(
                &folder,
                "other.so",
                &format!(
                    "{code}unsigned isotherm_policy_abi = 999;\nvoid *isotherm_policy(void) {{ return 0; }}"
                ),
            ),
            "built for version 999 of the policies' interface; this isotherm has version 4",
        ),
        (
            compiled(&folder, "half.so", &format!("{code}unsigned isotherm_policy_abi = 4;")),
            "lacks the symbol isotherm_policy,",
        ),
        (
            compiled(
                &folder,
                "needs.so",
                "unsigned isotherm_policy_abi = 4;\nint none_has_this(void);\nint isotherm_policy(void) { return none_has_this(); }",
            ),
            "none_has_this",
        ),
        (
            compiled(
                &folder,
                "null.so",
                "unsigned isotherm_policy_abi = 4;\nvoid *isotherm_policy(void) { return 0; }",
            ),
            "returns no table",
        ),
    ];
    for (path, words) in cases {
        let line = isotherm(&["policies", &path]).refused(2);
        assert!(line.contains(words) && line.contains(&path), "{words}: {line}");
    }
}

/// Loading a library whose end is missing would end the process by a signal.
#[test]
fn a_library_that_is_cut_off_anywhere_is_refused() {
    let folder = Folder::new();
    let whole = std::fs::read(misbehaving()).expect("a library");
    for part in 0..24 {
        let cut = folder.file("cut.so", &whole[..whole.len() * part / 24]);
        let line = isotherm(&["policies", &cut]).refused(2);
        assert!(line.contains("not a shared library that can be loaded"), "{part}: {line}");
    }
    isotherm(&["policies", &folder.file("whole.so", &whole)]).ok();
}

/// Simulates a small trace under the library, which does what it is told.
fn misbehave(folder: &Folder, trace: &str, fault: &str) -> RunStats {
    let (library, set) = (misbehaving(), format!("misbehaving.fault={fault}"));
    let mut command = command(&["simulate", trace, "--policy", &library, "--set", &set, "--json"]);
    command.current_dir(folder.path()).output().expect("the binary starts").into()
}

#[test]
fn a_policy_that_panics_or_orders_what_cannot_be_ends_the_run_with_one_line() {
    let folder = Folder::new();
    let trace = folder.trace();
    for (fault, words) in [
        ("build", " pages are too many"),
        ("build-panic", "no policy today"),
        ("observe", "observe: panicked at"),
        ("step", "step: panicked at"),
        ("settle", "settle: panicked at"),
        ("metadata", "metadata: panicked at"),
        ("gauges", "gauges: panicked at"),
        ("far-page", "step: it moves page "),
        ("far-tier", "step: it moves to tier 2; the run has 2 tiers"),
        ("far-arm", "step: it arms page 4294967295; the run has "),
        ("far-split", "step: it splits page 4294967295; the run has "),
        ("tier-look", "step: panicked at"),
        ("no-tick", "it asks for a step each 0ns; expected 1ns to "),
    ] {
        let line = misbehave(&folder, &trace, fault).refused(2);
        assert!(line.contains(words) && line.contains("misbehaving"), "{fault}: {line}");
        assert!(line.contains("libmisbehaving.so"), "{fault}: {line}");
    }
}

#[test]
fn a_policy_that_looks_where_nothing_is_or_panics_at_its_end_runs_to_it() {
    let folder = Folder::new();
    let trace = folder.trace();
    let results: Vec<Value> = ["nothing", "far-look", "drop"]
        .iter()
        .map(|fault| misbehave(&folder, &trace, fault).json()["runs"][0].clone())
        .collect();
    let run = &results[0];
    assert_eq!((&run["policy"], &run["metadata_bytes"]), (&"misbehaving".into(), &7.into()));
    let last = run["timeline"].as_array().and_then(|timeline| timeline.last()).expect("a timeline");
    assert_eq!(last["gauges"]["share"], 0.1, "a number passes to the last bit");
    assert!(last["gauges"]["settled"].as_f64() > Some(0.0));
    assert!(run["samples"].as_u64() > Some(0));
    for other in &results[1..] {
        assert_eq!(run["modelled_ns"], other["modelled_ns"]);
    }
}

/// A launched program runs to its end, whatever its policy does.
#[test]
fn a_program_outlives_the_policy_that_fails_in_its_run() {
    if !hint_faults_work() {
        return;
    }
    let (folder, library) = (Folder::new(), misbehaving());
    let options = ["--policy", &library, "--set", "misbehaving.fault=step"];
    let script = "echo out; sleep 1; exit 3";
    let ran = shadow(&folder.at("summary.json"), &options, &["sh", "-c", script]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "out\n"));
    assert!(ran.err.starts_with("isotherm: policy misbehaving (") && ran.err.contains("step: panicked at"));
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn a_library_cannot_take_a_name_or_run_inside_a_program() {
    let folder = Folder::new();
    let source = std::fs::read(misbehaving()).expect("a library");
    let copy = folder.file("libcopy.so", source);
    let trace = folder.trace();
    let both = format!("{},{copy}", misbehaving());
    let line = isotherm(&["simulate", &trace, "--policy", &both]).refused(2);
    assert!(line.contains("libcopy.so: there is a policy 'misbehaving' already"), "{line}");
    let again = format!("{copy},{copy},first-touch");
    let runs = isotherm(&["simulate", &trace, "--policy", &again, "--json"]).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "the same library is one policy");
    let line = isotherm(&["lab", "run", "--inside", "--policy", &copy, "--", "true"]).refused(2);
    assert!(line.contains("not supported with --inside"), "{line}");
}
