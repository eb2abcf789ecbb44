//! Holds the crates to the map in ARCHITECTURE.md, by `cargo metadata` and by their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates from the top down: each may depend on those behind it only.
const ORDER: &[&str] = &[
    "isotherm-python",
    "isotherm",
    "isotherm-preload",
    "isotherm-daemon",
    "isotherm-report",
    "isotherm-score",
    "isotherm-doctor",
    "isotherm-live",
    "isotherm-sim",
    "isotherm-shares",
    "isotherm-linux",
    "isotherm-lab-plugin",
    "isotherm-lab",
    "isotherm-machine",
    "isotherm-plugin",
    "isotherm-policies",
    "isotherm-workloads",
    "isotherm-trace",
    "isotherm-recorder-plugin",
    "isotherm-recorder-protocol",
    "isotherm-qemu-api",
    "isotherm-virtual-pmu",
    "isotherm-chmu",
    "isotherm-neoprof",
    "isotherm-planted",
    "isotherm-trackers",
    "isotherm-policy",
    "isotherm-core",
    "isotherm-alloc",
    "isotherm-alloc-profile",
];

/// Crates by way of which code reaches the operating system.
const SYSTEM: &[&str] = &["libc", "rustix", "nix", "linux-raw-sys", "isotherm-linux"];

/// The normal and build dependencies of every package, by name.
struct Graph {
    direct: BTreeMap<String, BTreeSet<String>>,
    workspace: BTreeSet<String>,
}

impl Graph {
    fn read() -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--offline", "--locked"])
            // Dependencies of other systems need not be there.
            .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
            .current_dir(root())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let names: BTreeMap<String, String> = list(&metadata["packages"])
            .iter()
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let is_linked = |dependency: &Value| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].as_str() != Some("dev"))
        };
        let direct = list(&metadata["resolve"]["nodes"])
            .iter()
            .map(|node| {
                let linked = list(&node["deps"]).into_iter().filter(is_linked);
                (
                    names[&text(&node["id"])].clone(),
                    linked.map(|to| names[&text(&to["pkg"])].clone()).collect(),
                )
            })
            .collect();
        let workspace =
            list(&metadata["workspace_members"]).iter().map(|id| names[&text(id)].clone()).collect();
        Self { direct, workspace }
    }
}

/// The packages that one links, directly or by way of others, with the features that it asks for itself.
fn reachable(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}", "--package", package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("names are text");
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The Rust files below a folder of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match entry.extension() {
                _ if entry.is_dir() && !entry.ends_with("target") => open.push(entry),
                Some(extension) if extension == "rs" => files.push(entry),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[test]
fn no_arrow_between_crates_climbs() {
    let graph = Graph::read();
    let listed: BTreeSet<_> = ORDER.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(listed, graph.workspace, "ORDER names each crate of the workspace once");
    let place = |name: &str| ORDER.iter().position(|&other| other == name);
    for (from, name) in ORDER.iter().enumerate() {
        for dependency in &graph.direct[*name] {
            let down = place(dependency).is_none_or(|to| to > from);
            assert!(down, "{name} depends on {dependency}, which stands above it");
        }
    }
}

#[test]
fn policies_and_trackers_cannot_reach_the_operating_system() {
    for name in ["isotherm-policies", "isotherm-trackers", "isotherm-core"] {
        let reached = reachable(name);
        assert!(reached.contains(name), "cargo tree names {name}");
        let system: Vec<_> = SYSTEM.iter().filter(|&&system| reached.contains(system)).collect();
        assert!(system.is_empty(), "{name} reaches {system:?}");
    }
}

#[test]
fn live_and_doctor_make_no_system_call_of_their_own() {
    let graph = Graph::read();
    for (name, folder) in [("isotherm-live", "crates/live"), ("isotherm-doctor", "crates/doctor")] {
        let direct = &graph.direct[name];
        let system: Vec<_> =
            SYSTEM.iter().filter(|&&other| other != "isotherm-linux" && direct.contains(other)).collect();
        assert!(system.is_empty(), "{name} depends on {system:?}; system calls stand in isotherm-linux");
        let library = fs::read_to_string(root().join(folder).join("src/lib.rs")).expect("its root");
        assert!(library.contains("#![forbid(unsafe_code)]"), "{folder} forbids unsafe code");
    }
}

#[test]
fn the_operating_system_knows_no_policy_and_results_need_no_operating_system() {
    assert!(!reachable("isotherm-linux").contains("isotherm-policies"));
    let report = reachable("isotherm-report");
    assert!(!report.contains("isotherm-live") && !report.contains("isotherm-linux"));
    assert!(!reachable("isotherm-lab-plugin").contains("isotherm-sim"));
}

#[test]
fn no_crate_compiles_a_file_of_another() {
    for folder in ["crates", "qemu"] {
        for file in sources(folder) {
            let source = fs::read_to_string(&file).expect("UTF-8");
            let home = file.strip_prefix(root()).expect("in the repository").components().nth(1);
            for path in source.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")) {
                let path = path.trim_end_matches("\"]");
                let target = file.parent().expect("a folder").join(path).canonicalize().expect("a file");
                let target = target.strip_prefix(root()).expect("in the repository");
                // The guide's example is a document that a test compiles; tests share one schema validator.
                let allowed = target.components().nth(1) == home
                    || target.starts_with("docs")
                    || target.ends_with("tests/support/validator.rs");
                assert!(allowed, "{} includes {path}", file.display());
            }
        }
    }
}
