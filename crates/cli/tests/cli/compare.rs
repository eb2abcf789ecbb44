//! `compare`: two results of any verb, what differs in their inputs, their figures and the verdict.

use serde_json::Value;

use crate::support::{Folder, isotherm, plain, read, shadow};
use crate::validator::problems;

/// Writes a simulation's result to a file and returns its path.
fn simulated(folder: &Folder, name: &str, arguments: &[&str]) -> String {
    let mut all = vec!["simulate", "-w", "gups", "--set", "gups.preset=test", "--quiet", "--json"];
    all.extend(arguments);
    folder.file(name, isotherm(&all).ok())
}

fn compared(a: &str, b: &str) -> Value {
    let comparison = isotherm(&["compare", a, b, "--json"]).json();
    let schema = include_str!("../../../../docs/reference/compare.schema.json");
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    assert_eq!(problems(&schema, &comparison), Vec::<String>::new());
    comparison
}

/// Returns the names of the inputs that differ.
fn differing(comparison: &Value) -> Vec<&str> {
    let inputs = comparison["inputs"].as_array().expect("a list");
    inputs.iter().filter_map(|input| input["name"].as_str()).collect()
}

#[test]
fn the_same_simulation_twice_differs_in_nothing() {
    let folder = Folder::new();
    let arguments = ["--policy", "lru,first-touch", "--fast", "1:4"];
    let [a, b] = ["a.json", "b.json"].map(|name| simulated(&folder, name, &arguments));
    let comparison = compared(&a, &b);
    assert_eq!(differing(&comparison), Vec::<&str>::new());
    assert_eq!(comparison["verdict"]["better"], "same");
    for run in comparison["runs"].as_array().expect("runs") {
        for figure in run["figures"].as_array().expect("figures") {
            assert_eq!((&figure["a"], &figure["change"]), (&figure["b"], &0.0.into()), "{figure}");
        }
    }
    let text = isotherm(&["compare", &a, &b]).ok();
    assert!(text.starts_with("No difference that counts: "), "{text}");
    assert!(text.contains("Their inputs are the same."), "{text}");
}

#[test]
fn what_differs_in_the_inputs_comes_before_the_figures() {
    let folder = Folder::new();
    let policies = ["--policy", "lru,first-touch"];
    let a = simulated(&folder, "a.json", &policies);
    let slow = ["--set", "machine.tier.1.latency=900ns"];
    let b = simulated(&folder, "b.json", &[&policies[..], &slow].concat());
    let comparison = compared(&a, &b);
    assert_eq!(differing(&comparison), ["machine.tier.1.latency"]);
    let verdict = &comparison["verdict"];
    assert_eq!((&verdict["better"], &verdict["figure"]), (&"a".into(), &"slowdown".into()));
    let page = folder.at("compare.html");
    let ran = isotherm(&["compare", &a, &b, "--report", &page]);
    assert!(ran.err.contains(&page), "{}", ran.err);
    let text = ran.ok();
    assert!(text.starts_with("B is worse under 2 of 2 policies"), "{text}");
    let (inputs, figures) = (text.find("250ns"), text.find("hit ratio"));
    assert!(inputs.is_some() && inputs < figures, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    for part in ["B is worse", "machine.tier.1.latency", "900ns", "<td>slowdown</td>"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_fingerprint_tells_inputs_apart_and_not_page_sizes() {
    let folder = Folder::new();
    let policy = ["--policy", "lru", "--fast", "2M"];
    let a = simulated(&folder, "a.json", &policy);
    let huge = simulated(&folder, "huge.json", &[&policy[..], &["--page-size", "huge"]].concat());
    let seed = simulated(&folder, "seed.json", &[&policy[..], &["--seed", "7"]].concat());
    let [huge, seed] = [compared(&a, &huge), compared(&a, &seed)];
    assert!(differing(&huge).contains(&"page size"), "{huge}");
    assert!(!differing(&huge).contains(&"contents"), "{huge}");
    assert!(differing(&seed).contains(&"contents"), "{seed}");
    assert!(differing(&seed).contains(&"seed"), "{seed}");
    let trace = folder.trace();
    let replayed = |trace: &str| {
        isotherm(&["simulate", trace, "--policy", "lru", "--json", "-q"]).json()["manifest"].clone()
    };
    let copy = folder.at("copy.trace");
    isotherm(&["trace", "convert", "--from", "trace", &trace, "-o", &copy]).ok();
    assert_eq!(replayed(&trace), replayed(&copy), "the same rows in another file");
}

#[test]
fn many_policies_are_one_row_each_and_those_of_one_side_are_named() {
    let folder = Folder::new();
    let a = simulated(&folder, "a.json", &["--policy", "lru,arc,tpp,first-touch,belady", "--fast", "1:4"]);
    let b = simulated(&folder, "b.json", &["--policy", "lru,arc,tpp,first-touch,twoq", "--fast", "1:4"]);
    let text = isotherm(&["compare", &a, &b]).ok();
    assert_eq!(text.lines().filter(|line| line.starts_with("tpp 1:4 ")).count(), 1, "{text}");
    for line in ["- Only in A: belady 1:4.", "- Only in B: twoq 1:4."] {
        assert!(text.contains(line), "{text}");
    }
    let page = folder.at("many.html");
    isotherm(&["compare", &a, &b, "--report", &page, "-q"]).ok();
    let page = std::fs::read_to_string(page).expect("a page");
    let (overview, folded) = page.split_once("<details>").expect("every figure is folded");
    assert!(overview.contains("<td>tpp 1:4</td>") && folded.contains("<td>metadata</td>"), "{page}");
    // Of the same policy at another size there is one on each side.
    let c = simulated(&folder, "c.json", &["--policy", "lru,tpp", "--fast", "1:8"]);
    let comparison = compared(&a, &c);
    let runs = comparison["runs"].as_array().expect("runs");
    let sizes: Vec<_> =
        runs.iter().map(|run| [&run["a"], &run["b"]].map(|one| one["fast"].clone())).collect();
    assert_eq!(sizes, [["1:4", "1:8"], ["1:4", "1:8"]].map(|pair| pair.map(Value::from)));
}

#[test]
fn sizings_are_compared_by_the_memory_needed() {
    let folder = Folder::new();
    let sized = |name: &str, budget: &str| {
        let base = ["size", "-w", "gups", "--set", "gups.preset=test", "-q", "--json", "--rounds", "1"];
        let more = ["--policy", "first-touch", "--budget", budget];
        folder.file(name, isotherm(&[&base[..], &more].concat()).ok())
    };
    let comparison = compared(&sized("a.json", "2%"), &sized("b.json", "30%"));
    assert_eq!(differing(&comparison), ["budget"]);
    let verdict = &comparison["verdict"];
    assert_eq!((&verdict["better"], &verdict["figure"]), (&"b".into(), &"DRAM needed".into()));
}

/// A live run tells where it ran; one that saw too little has no verdict.
#[test]
fn live_runs_say_where_they_ran_and_compare_with_simulations() {
    let folder = Folder::new();
    let live = folder.at("live.json");
    let ran = shadow(&live, &["--policy", "first-touch", "--fast", "25%"], &["sleep", "0.3"]);
    if ran.code != Some(0) {
        return eprintln!("skipped: no access source here: {}", ran.err);
    }
    let manifest = &read(&live)["manifest"];
    let kernel = plain(&["uname", "-r"]).ok();
    assert_eq!(manifest["kernel"], kernel.trim());
    assert!(manifest["machine"].as_str().is_some_and(|machine| machine.ends_with(" threads")), "{manifest}");
    assert!(manifest["free_dram_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{manifest}");
    assert_eq!(
        (&manifest["options"]["fast"], &manifest["options"]["overhead"]),
        (&"25%".into(), &"0.02".into())
    );
    for name in ["binary", "input"] {
        assert!(manifest[name].as_str().is_some_and(|print| print.contains(':')), "{name}: {manifest}");
    }
    let simulation = simulated(&folder, "a.json", &["--policy", "first-touch"]);
    let comparison = compared(&simulation, &live);
    assert_eq!(comparison["verdict"]["better"], "unknown", "{comparison}");
    assert_eq!(comparison["b"]["kind"], "live-run");
    assert!(differing(&comparison).contains(&"kernel"));
}

#[test]
fn what_is_no_result_or_has_nothing_in_common_is_refused() {
    let folder = Folder::new();
    let a = simulated(&folder, "a.json", &["--policy", "lru,first-touch"]);
    let other = simulated(&folder, "other.json", &["--policy", "arc,tpp"]);
    let refused = |b: &str| isotherm(&["compare", &a, b]).refused(2);
    for (name, content, words) in [
        ("empty.json", "", "no JSON"),
        ("text.json", "{\"runs\": [", "no JSON"),
        ("foreign.json", "{\"runs\": []}", "not a result"),
        ("list.json", "[1, 2]", "not a result"),
        ("deep.json", &"[".repeat(100_000), "no JSON"),
    ] {
        let line = refused(&folder.file(name, content));
        assert!(line.contains(name) && line.contains(words) && line.contains("expected"), "{line}");
    }
    assert!(refused(&folder.at("missing.json")).contains("missing.json"));
    let line = refused(&other);
    for word in ["nothing in common", "lru", "arc", "expected"] {
        assert!(line.contains(word), "{line}");
    }
    // Foreign values where numbers should be are no figures.
    let strange = r#"{"policy": "lru\u001b[2J", "tiers": 5, "hit_ratio": "high", "traffic": []}"#;
    let line = refused(&folder.file("strange.json", strange));
    assert!(line.contains("nothing in common") && !line.contains('\u{1b}'), "{line}");
}
