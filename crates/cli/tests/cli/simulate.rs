//! `simulate`: contents of the JSON, repeatability, and agreement of tables, bounds and reports.

use serde_json::Value;

use crate::support::{Folder, SMALL_CACHE, command, isotherm};

/// Keys of every run.
const FIELDS: [&str; 23] = [
    "policy",
    "parameters",
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

fn simulate(arguments: &[&str]) -> Value {
    let mut all = vec!["simulate", "--workload", "cachelib-cdn"];
    all.extend(SMALL_CACHE);
    all.extend(["--json", "--max-accesses", "200k"]);
    all.extend(arguments);
    isotherm(&all).json()
}

fn runs(report: &Value) -> &Vec<Value> {
    report["runs"].as_array().expect("runs")
}

fn number(run: &Value, field: &str) -> f64 {
    run[field].as_f64().unwrap_or_else(|| panic!("{field} is a number: {run}"))
}

#[test]
fn every_run_of_all_policies_says_everything_of_itself() {
    let report = simulate(&["--policy", "all", "--fast", "1:4,25%,2M", "--seed", "7"]);
    let runs = runs(&report);
    let policies = isotherm(&["policies", "--json"]).json().as_array().map_or(0, Vec::len);
    assert_eq!(runs.len(), 3 * policies);
    for run in runs {
        for field in FIELDS {
            assert!(!run[field].is_null(), "{}: {field}", run["policy"]);
        }
        assert_eq!(run["workload"], "cachelib-cdn");
        assert!(run["trace"].is_null());
        assert_eq!((&run["seed"], &run["machine"]), (&7.into(), &"sapphire-rapids".into()));
        assert_eq!(run["stall_ns"].as_array().map(Vec::len), Some(2));
    }
    let sizes: Vec<&str> = runs.iter().filter_map(|run| run["fast"].as_str()).collect();
    assert!(["1:4", "25%", "2M"].iter().all(|size| sizes.contains(size)), "{sizes:?}");
}

#[test]
fn bounds_hold() {
    let report = simulate(&["--policy", "all", "--fast", "1:8"]);
    let find = |name: &str| runs(&report).iter().find(|run| run["policy"] == name).expect("the policy ran");
    assert_eq!(number(find("all-fast"), "hit_ratio"), 1.0);
    assert_eq!(number(find("all-slow"), "hit_ratio"), 0.0);
    assert_eq!(number(find("all-fast"), "slowdown"), 1.0);
    assert!(number(find("all-slow"), "slowdown") > 1.0);
    let belady = number(find("belady"), "hit_ratio");
    for size in ["1:1", "70%", "90%"] {
        let report = simulate(&["--policy", "oracle,belady", "--fast", size]);
        let hits: Vec<f64> = runs(&report).iter().map(|run| number(run, "hit_ratio")).collect();
        assert!(hits[0] <= hits[1], "oracle beats belady with {size}: {hits:?}");
    }
    for run in runs(&report).iter().filter(|run| run["policy"] != "all-fast") {
        assert!(number(run, "hit_ratio") <= belady, "{}", run["policy"]);
        assert_eq!(number(run, "belady_hit_ratio"), belady);
    }
    for moved_nothing in ["first-touch", "oracle", "belady", "all-fast", "all-slow"] {
        assert_eq!(number(find(moved_nothing), "bytes_moved"), 0.0, "{moved_nothing}");
    }
}

/// Returns the output without the field for wall time.
fn without_wall_time(text: &str) -> String {
    let mut report: Value = serde_json::from_str(text).expect("JSON");
    for run in report["runs"].as_array_mut().expect("runs") {
        run.as_object_mut().and_then(|run| run.remove("wall_s")).expect("a wall time");
    }
    report.to_string()
}

#[test]
fn the_same_input_and_seed_give_the_same_bytes_on_any_number_of_threads() {
    let arguments = |seed: &'static str| {
        let mut all = vec!["simulate", "--workload", "gups", "--set", "gups.footprint=4M", "--json"];
        all.extend([
            "--policy",
            "lru,freqtier",
            "--max-accesses",
            "300k",
            "--fast",
            "1:4,1:8",
            "--seed",
            seed,
        ]);
        all
    };
    let run = |seed, threads| {
        let output = command(&arguments(seed)).env("RAYON_NUM_THREADS", threads).output().expect("it runs");
        without_wall_time(&crate::support::RunStats::from(output).ok())
    };
    let first = run("1", "1");
    assert_eq!(first, run("1", "1"));
    assert_eq!(first, run("1", "4"));
    assert_ne!(first, run("2", "1"));
}

#[test]
fn an_exported_workload_replays_to_the_same_hits_as_the_workload_itself() {
    let folder = Folder::new();
    let trace = folder.at("cache.trace");
    let mut export = vec!["workloads", "cachelib-cdn", "--export", &trace, "--max-accesses", "200k"];
    export.extend(SMALL_CACHE);
    isotherm(&export).ok();
    let direct = simulate(&["--policy", "all", "--scale", "100"]);
    let replayed = isotherm(&["simulate", &trace, "--json", "--policy", "all", "--scale", "100"]).json();
    assert_eq!(replayed["runs"][0]["trace"], trace.as_str());
    // Soar places a workload's allocations; a trace does not name them.
    let pairs = runs(&direct).iter().zip(runs(&replayed)).filter(|pair| pair.0["policy"] != "soar");
    for (direct, replayed) in pairs {
        for field in ["policy", "accesses", "hit_ratio", "modelled_ns", "promotions", "demotions", "samples"]
        {
            assert_eq!(direct[field], replayed[field], "{}: {field}", direct["policy"]);
        }
    }
}

#[test]
fn an_exported_pair_of_processes_names_both() {
    let folder = Folder::new();
    let trace = folder.at("pair.trace");
    let pair = ["--set", "masim.preset=colocated", "--set", "masim.footprint=16M"];
    isotherm(&["workloads", "masim", pair[0], pair[1], pair[2], pair[3], "--export", &trace]).ok();
    let info = isotherm(&["trace", "info", &trace, "--json"]).json();
    assert_eq!(info["processes"], 2);
    assert_eq!(info["provenance"]["processes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn settings_of_policy_workload_and_machine_reach_the_result() {
    let report = simulate(&[
        "--policy",
        "freqtier",
        "--machine",
        "pact",
        "--set",
        "freqtier.batch=5000",
        "--set",
        "machine.tier.1.latency=999ns",
        "--scale",
        "1",
    ]);
    let run = &runs(&report)[0];
    assert_eq!(run["parameters"]["batch"], 5000);
    assert_eq!(report["input"]["parameters"]["footprint"], 33_554_432);
    let numbers = report["machine"]["numbers"].as_array().expect("numbers");
    let latency = numbers.iter().find(|number| number["path"] == "tier.1.latency").expect("a latency");
    assert_eq!((&latency["value"], &latency["source"]), (&"999ns".into(), &"set by the user".into()));
}

#[test]
fn the_table_goes_to_standard_output_and_the_report_to_its_file() {
    let folder = Folder::new();
    let (trace, report) = (folder.trace(), folder.at("report.html"));
    let ran = isotherm(&["simulate", &trace, "--policy", "freqtier,belady", "--report", &report]);
    assert!(ran.err.contains(&report), "where the report is: {}", ran.err);
    let table = ran.ok();
    for word in ["freqtier", "belady", "slowdown", "sapphire-rapids"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let html = std::fs::read_to_string(&report).expect("a report");
    assert!(html.starts_with("<!DOCTYPE html>") && html.len() < 5 << 20);
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"), "needs no network");
    let quiet = isotherm(&["simulate", &trace, "--policy", "freqtier", "--report", &report, "--quiet"]);
    assert_eq!(quiet.err, "");
}

#[test]
fn nothing_but_text_is_printed_where_no_terminal_reads_or_colour_is_off() {
    let folder = Folder::new();
    let trace = folder.trace();
    for variables in [&[][..], &[("NO_COLOR", "1")], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]] {
        let arguments = ["simulate", &trace, "--policy", "all"];
        let output = command(&arguments).envs(variables.iter().copied()).output().expect("it runs");
        let ran = crate::support::RunStats::from(output);
        assert!(ran.err.starts_with("isotherm: memory: "), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "no progress bar without a terminal");
        assert!(!ran.ok().contains('\u{1b}'), "no escape sequence with {variables:?}");
    }
}

#[test]
fn huge_pages_and_three_tiers_run() {
    let folder = Folder::new();
    let mut machine = isotherm_machine();
    machine.push_str(THIRD_TIER);
    let machine = folder.file("three.toml", machine);
    let report = simulate(&["--policy", "freqtier,lru,all-slow", "--machine", &machine, "--fast", "1:8"]);
    assert_eq!(runs(&report)[0]["stall_ns"].as_array().map(Vec::len), Some(3));
    let report = simulate(&["--policy", "first-touch", "--machine", &machine, "--fast", "1:2:4,1:1:8"]);
    let middle = |run: usize| runs(&report)[run]["tier_accesses"][1].as_u64().expect("a number");
    assert!(middle(0) > middle(1), "the larger middle tier serves more");
    let report = simulate(&["--policy", "freqtier,lru", "--page-size", "huge", "--fast", "4M"]);
    assert!(runs(&report).iter().all(|run| run["page_size"] == "huge"));
}

const THIRD_TIER: &str = r#"
[[tier]]
name = "far"
latency = { value = "900ns", source = "a test" }
loaded_latency_factor = { value = "2", source = "a test" }
read_bandwidth = { value = "5GB/s", source = "a test" }
write_bandwidth = { value = "5GB/s", source = "a test" }
"#;

/// Returns a builtin machine's file.
fn isotherm_machine() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/freqtier-cxl1.toml");
    std::fs::read_to_string(path).expect("a profile")
}
