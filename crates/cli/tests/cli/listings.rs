//! `policies`, `machines` and `workloads`: names, explanations and JSON.

use serde_json::Value;

use crate::support::isotherm;

/// Names that scripts rely on.
const POLICIES: [&str; 23] = [
    "first-touch",
    "lru",
    "arc",
    "twoq",
    "freqtier",
    "hybridtier",
    "memtis",
    "memtis-qc",
    "hemem",
    "pmu-sampling",
    "nbt",
    "tpp",
    "nomad",
    "colloid",
    "alto",
    "soar",
    "multi-clock",
    "pte-scan",
    "pact",
    "all-fast",
    "all-slow",
    "oracle",
    "belady",
];
const WORKLOADS: [&str; 31] = [
    "masim",
    "gups",
    "cachelib-cdn",
    "cachelib-social",
    "btree",
    "silo",
    "flexkvs",
    "redis",
    "social-network",
    "gapbs-bfs-kron",
    "gapbs-bfs-urand",
    "gapbs-cc-kron",
    "gapbs-cc-urand",
    "gapbs-pr-kron",
    "gapbs-pr-urand",
    "gapbs-bc-kron",
    "gapbs-bc-urand",
    "gapbs-sssp-kron",
    "gapbs-sssp-urand",
    "gapbs-tc-kron",
    "gapbs-tc-urand",
    "graph500",
    "xsbench",
    "xgboost",
    "liblinear",
    "bwaves",
    "roms",
    "gpt2",
    "dlrm",
    "deepsjeng",
    "xz",
];
const MACHINES: [&str; 11] = [
    "freqtier-cxl1",
    "freqtier-cxl2",
    "hybridtier",
    "jenga",
    "neomem",
    "pact",
    "sapphire-rapids",
    "turin",
    "xeon-max",
    "zswap",
    "zswap-lz4",
];

fn names(value: &Value) -> Vec<&str> {
    let entries = value.as_array().expect("a list");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn every_listing_holds_the_stable_names_as_text_and_as_json() {
    for (verb, expected) in [("policies", &POLICIES[..]), ("workloads", &WORKLOADS), ("machines", &MACHINES)]
    {
        let table = isotherm(&[verb]).ok();
        let json = isotherm(&[verb, "--json"]).json();
        let listed = names(&json);
        for name in expected {
            assert!(table.lines().any(|line| line.trim_start().starts_with(name)), "{verb}: {name}\n{table}");
            assert!(listed.contains(name), "{verb}: {name}: {listed:?}");
        }
    }
}

#[test]
fn every_name_is_explained_as_text_and_as_json() {
    for (verb, all) in [("policies", &POLICIES[..]), ("workloads", &WORKLOADS), ("machines", &MACHINES)] {
        for name in all {
            assert!(isotherm(&[verb, name]).ok().lines().count() >= 3, "{verb} {name}");
            let json = isotherm(&[verb, name, "--json"]).json();
            assert_eq!(json["name"], *name);
        }
    }
}

#[test]
fn parameters_come_with_default_and_source() {
    let text = isotherm(&["policies", "freqtier"]).ok();
    for word in ["parameter", "default", "source", "batch", "100000"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = isotherm(&["policies", "freqtier", "--json"]).json();
    assert!(json["parameters"].as_object().is_some_and(|parameters| parameters.len() > 10));
}

#[test]
fn presets_are_explained_with_what_they_change_and_the_one_in_force() {
    let text = isotherm(&["policies", "hybridtier"]).ok();
    for word in ["preset in force: default", "--set hybridtier.preset=artifact", "momentum_cooling=1.1M"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = isotherm(&["policies", "hybridtier", "--json"]).json();
    assert_eq!(json["parameters"]["preset"], "default");
    assert_eq!(json["presets"][0]["values"]["demotion_momentum"], "1");
    assert!(!isotherm(&["policies", "freqtier"]).ok().contains("preset"), "it has none");
}

#[test]
fn machine_numbers_come_with_their_sources() {
    let json = isotherm(&["machines", "pact", "--json"]).json();
    let numbers = json["numbers"].as_array().expect("numbers");
    let latency = numbers.iter().find(|number| number["path"] == "tier.1.latency").expect("a latency");
    assert_eq!(latency["value"], "190ns");
    assert!(numbers.iter().all(|number| number["source"].as_str().is_some_and(|source| !source.is_empty())));
}

#[test]
fn a_workload_is_explained_with_the_settings_in_force() {
    let arguments = ["workloads", "gups", "--set", "gups.footprint=1M", "--json"];
    let json = isotherm(&arguments).json();
    assert_eq!(json["name"], "gups");
    assert!(json["footprint_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
}

/// A workload's misses could not be compared with a recording: its cache was always the scaled one.
#[test]
fn an_export_goes_through_the_cache_that_the_user_chooses() {
    let folder = tempfile::tempdir().expect("a folder");
    let exported = |name: &str, cache: &[&str]| {
        let trace = folder.path().join(name);
        let trace = trace.to_str().expect("a path of letters");
        let set = ["workloads", "btree", "--set", "btree.preset=test", "--quiet", "--export", trace];
        isotherm(&[&set[..], cache].concat()).ok();
        isotherm(&["trace", "info", trace, "--json"]).json()
    };
    let misses = |json: &serde_json::Value| json["rows"].as_u64().expect("a number");
    let (scaled, small) = (exported("a.trace", &[]), exported("b.trace", &["--cache", "64K"]));
    let large = exported("c.trace", &["--cache", "2M"]);
    assert!(
        misses(&scaled) > misses(&small) && misses(&small) > 2 * misses(&large),
        "{scaled} {small} {large}"
    );
    let trace = folder.path().join("d.trace");
    let trace = trace.to_str().expect("a path of letters");
    for wrong in ["1000", "0", "much", "9999999999T"] {
        let refused = isotherm(&["workloads", "btree", "--export", trace, "--cache", wrong]);
        assert!(refused.code == Some(2) && refused.err.contains("--cache"), "{}", refused.err);
    }
    let alone = isotherm(&["workloads", "btree", "--cache", "1M"]);
    assert_eq!(alone.code, Some(2), "{}", alone.err);
    assert!(!std::path::Path::new(trace).exists());
}

#[test]
fn listings_end_quietly_when_nobody_reads_on() {
    let output = std::process::Command::new("sh")
        .args(["-c", "\"$0\" policies freqtier | true; \"$0\" policies | head -1"])
        .arg(env!("CARGO_BIN_EXE_isotherm"))
        .output()
        .expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!output.stdout.is_empty());
}

#[test]
fn a_workload_is_drawn_and_the_page_says_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("gups.html");
    let path = page.to_str().expect("a path of letters");
    isotherm(&["workloads", "gups", "--set", "gups.preset=test", "--quiet", "--report", path]).ok();
    let html = std::fs::read_to_string(&page).expect("the page was written");
    assert!(html.contains("<b>gups</b> random updates") && html.contains("hot set changes"), "{html:.500}");
}

/// Names were broken in the middle, and lines were as long as the longest text.
#[test]
fn listings_fit_eighty_columns_and_break_no_word() {
    for arguments in [
        &["policies"][..],
        &["workloads"],
        &["machines"],
        &["policies", "hybridtier"],
        &["policies", "memtis"],
        &["machines", "pact"],
        &["workloads", "cachelib-cdn"],
        &["lab", "machines"],
    ] {
        let text = isotherm(arguments).ok();
        // What stands before a table is a paragraph, which a terminal wraps.
        let table = text.lines().skip_while(|line| !line.starts_with(' '));
        let wide: Vec<&str> =
            table.filter(|line| line.starts_with(' ') && line.chars().count() > 80).collect();
        assert_eq!(wide, Vec::<&str>::new(), "{arguments:?}");
    }
    let names = isotherm(&["policies", "hybridtier", "--json"]).json();
    let text = isotherm(&["policies", "hybridtier"]).ok();
    for name in names["parameters"].as_object().expect("parameters").keys().filter(|&name| name != "preset") {
        assert!(text.split_whitespace().any(|word| word == name), "{name} is whole: {text}");
    }
}
