//! The documents' tables of policies, workloads and machines come from the registries.
//!
//! `make docs` writes them (`ISOTHERM_WRITE_DOCS=1`); without that variable these tests hold that they are
//! current.

use std::fmt::Write;
use std::path::Path;

use isotherm_core::{PageSize, Pages, Signals};
use isotherm_machine::Profile;
use isotherm_policies::{Kind, Setup};
use isotherm_workloads::{Original, Source};

/// Replaces what stands in a document between the table's two marks, or asserts that it is the same.
fn table(document: &str, name: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    rows.into_iter().for_each(|row| writeln!(table, "| {} |", row.join(" | ")).expect("a String grows"));
    let (begin, end) =
        (format!("<!-- begin {name}: written by make docs -->\n"), format!("<!-- end {name} -->"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(&path).expect(document);
    let marks = text.find(&begin).zip(text.find(&end));
    let (from, to) = marks.unwrap_or_else(|| panic!("{document}: expected {begin}and {end}"));
    let from = from + begin.len();
    if std::env::var_os("ISOTHERM_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{}\n{table}\n{}", &text[..from], &text[to..])).expect(document);
    } else {
        assert_eq!(text[from..to].trim(), table.trim(), "{document} is not current: run `make docs`");
    }
}

/// The hosts on which a test proves a policy; a bound is computed by the simulator alone.
fn hosts(entry: &isotherm_policies::Entry) -> String {
    entry.hosts.to_string()
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// The signals that a policy asks its host for, at its defaults.
fn signals(entry: &isotherm_policies::Entry) -> String {
    let Kind::Policy(build) = entry.kind else { return String::new() };
    let setup = Setup { pages: 4096, fast: Pages(512), page_size: PageSize::Base, tiers: 2, seed: 1 };
    let policy = build(&entry.parameters(), &setup).expect(entry.name);
    policy.signals().missing(Signals::NONE).map(|signal| signal.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn policies() {
    let all = || isotherm_policies::ALL.iter();
    let is_bound = |entry: &isotherm_policies::Entry| matches!(entry.kind, Kind::Bound(_));
    let host = |entry: &isotherm_policies::Entry| match is_bound(entry) {
        true => "computed by the simulator".to_owned(),
        false => entry.hosts.to_string(),
    };
    let mut groups: Vec<String> = all().map(host).collect();
    groups.sort_by_key(|hosts| std::cmp::Reverse(hosts.matches(',').count()));
    let mut seen = std::collections::BTreeSet::new();
    groups.retain(|hosts| seen.insert(hosts.clone()));
    let names = |hosts: &str| {
        let proved: Vec<_> =
            all().filter(|entry| host(entry) == hosts).map(|entry| code(entry.name)).collect();
        proved.join(", ")
    };
    table(
        "README.md",
        "policies",
        &["proved on", "policies"],
        groups.iter().map(|hosts| vec![hosts.clone(), names(hosts)]),
    );
    table(
        "docs/reference/policies.md",
        "policies",
        &["policy", "system", "what it does", "signals", "proved on"],
        all().map(|entry| {
            let [title, paper] = [entry.title, entry.paper].map(str::to_owned);
            vec![code(entry.name), title, paper, signals(entry), hosts(entry)]
        }),
    );
}

#[test]
fn workloads() {
    table(
        "docs/reference/workloads.md",
        "workloads",
        &["workload", "what it is", "objects", "hot set", "footprint", "accesses", "source"],
        isotherm_workloads::ALL.iter().map(|workload| {
            let program = workload.build(&workload.parameters(), 42).expect(workload.name);
            let millions = format!("{} M", workload.accesses.div_ceil(1_000_000));
            let words = [workload.title, workload.objects, workload.hot_set].map(str::to_owned);
            let [title, objects, hot_set] = words;
            let footprint = program.footprint().to_string();
            vec![code(workload.name), title, objects, hot_set, footprint, millions, workload.source.into()]
        }),
    );
}

#[test]
fn pace() {
    let rows = isotherm_workloads::ALL.iter().flat_map(|workload| {
        let name = code(workload.name);
        let source = |source: &Source| {
            let (original, ours, unit) = match source.original {
                Original::Recorded { instructions_a_miss: original, cache } => {
                    (original, original / source.ratio, format!("instructions a miss of {cache}"))
                }
                Original::Printed { units_a_second: original, .. } => {
                    (original, original * source.ratio, "units of work a second, all memory fast".into())
                }
            };
            let settings = source.set.iter().map(|(key, value)| format!("{key}={value}"));
            let [ours, original] = [ours, original].map(|figure| format!("{figure:.1}"));
            let settings = settings.collect::<Vec<_>>().join(" ");
            let ratio = format!("{:.2}", source.ratio);
            vec![name.clone(), unit, original, ours, ratio, source.place.into(), code(&settings)]
        };
        let known: Vec<_> = workload.pace().sources.iter().map(source).collect();
        let none = ["-", "-", "-", "-", "none", "-"].map(str::to_owned);
        if known.is_empty() { vec![[vec![name], none.to_vec()].concat()] } else { known }
    });
    table(
        "docs/reference/workloads.md",
        "pace",
        &["workload", "figure", "original", "ours", "speed, ours / original", "source", "settings of ours"],
        rows,
    );
}

#[test]
fn machines() {
    let tier = |profile: &Profile, index: usize| {
        let tier = &profile.tiers[index];
        format!("{} {}, {} GB/s", tier.name, tier.latency, tier.read_bandwidth as f64 / 1e9)
    };
    table(
        "docs/reference/machines.md",
        "machines",
        &["machine", "cores", "fast tier", "slower tiers"],
        Profile::builtin_names().map(|name| {
            let profile = Profile::builtin(name).expect(name);
            let cores = format!("{} x {} GHz", profile.core.cores, profile.clock.frequency as f64 / 1e9);
            let slower: Vec<String> = (1..profile.tiers.len()).map(|index| tier(&profile, index)).collect();
            vec![code(name), cores, tier(&profile, 0), slower.join("; ")]
        }),
    );
    table(
        "docs/reference/machines.md",
        "fields",
        &["field", "value", "meaning"],
        Profile::fields().map(|(path, range, meaning)| vec![code(&path), range, meaning.into()]),
    );
}
