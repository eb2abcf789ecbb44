//! Findings of any machine are complete, unique and readable, and never a panic.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::case::EPERM;
use super::machine::{WORKING, findings, machine};
use crate::{Area, Findings, Probe, Probes, Remedy, State, examine};

fn assert_sound(found: &Findings) {
    let mut titles = BTreeSet::new();
    for finding in &found.findings {
        let kebab = finding
            .name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(kebab, "{finding:?}");
        assert!(titles.insert(finding.title()), "twice: {finding:?}");
        assert!(!finding.meaning.is_empty());
        let lacking = matches!(finding.state, State::Missing | State::Warning);
        assert_eq!(lacking, finding.remedy.is_some(), "{finding:?}");
        assert_eq!(lacking, finding.lost.is_some(), "{finding:?}");
    }
    assert!(found.findings.is_sorted_by_key(|finding| finding.area));
    let text = found.to_string();
    for line in text.lines() {
        let command = line.trim_start().starts_with("fix: ");
        // A word longer than a line cannot be broken.
        let words = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        assert!(line.chars().count() <= 80 || command || words > 50, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    assert!(serde_json::to_string(found).is_ok());
}

#[test]
fn findings_of_good_and_bad_machines_are_complete_and_readable() {
    assert_sound(&findings("", &WORKING));
    assert_sound(&findings("", &Probes::default()));
    assert_sound(&findings("without sys\nwithout proc/self", &WORKING));
    let denied = Probe::Fails(EPERM);
    let all_denied = Probes {
        hardware_events: denied,
        software_events: denied,
        userfaultfd: denied,
        userfaultfd_move: denied,
        hint_faults: denied,
        move_pages: denied,
    };
    let bad = "
        file proc/self/status CapEff: 0\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 0\\nSeccomp: 0
        file proc/sys/kernel/perf_event_paranoid 4
        file proc/sys/kernel/numa_balancing 1
        file proc/42/comm numad
        file proc/43/comm memtierd
        dax dax1.0 7 1099511627776 device_dax
        dax dax2.0 8 1099511627776 device_dax";
    assert_sound(&findings(bad, &all_denied));
    assert_sound(&Findings::live());
}

#[test]
fn text_is_grouped_and_says_a_remedy_once() {
    let unprivileged = "file proc/self/status CapEff: 0\\nCapBnd: 000001ffffffffff";
    let text = findings(unprivileged, &WORKING).to_string();
    let headings: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(headings, Area::ALL.map(Area::name));
    assert!(
        text.contains("\n  ok       demotion: the kernel's reclaim demotes pages to slower tiers\n"),
        "{text}"
    );
    assert_eq!(text.matches("fix: setcap").count(), 1, "{text}");
    assert!(
        text.contains("lost: moving pages that several processes share\n           fix: as above\n"),
        "{text}"
    );
}

#[test]
fn json_names_area_state_and_the_kind_of_remedy() {
    let found = findings("file proc/sys/kernel/numa_balancing 1", &WORKING);
    let json = serde_json::to_value(&found).unwrap();
    let balancing =
        json["findings"].as_array().unwrap().iter().find(|finding| finding["name"] == "numa-balancing");
    let balancing = balancing.unwrap();
    assert_eq!(
        (balancing["area"].as_str(), balancing["state"].as_str()),
        (Some("conflicts"), Some("warning"))
    );
    assert_eq!(balancing["remedy"]["command"], "sysctl -w kernel.numa_balancing=0");
    assert_eq!(serde_json::to_value(Remedy::KernelOption("A=y".into())).unwrap()["kernel-option"], "A=y");
}

/// Replaces a few files of the sound machine by nonsense at a time.
#[test]
fn nonsense_in_any_file_is_no_panic() {
    let root = machine("file sys/kernel/mm/damon/admin/kdamonds/0/state on\nfile proc/42/cmdline damo");
    let mut files = Vec::new();
    collect(root.path(), &mut files);
    let spoiled = (
        prop::sample::select(files),
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "-?[0-9]{0,25}\n?".prop_map(String::into_bytes),
            "[\\[\\]a-z:=,/ 0-9.-]{0,40}".prop_map(String::into_bytes),
        ],
    );
    let mut runner = TestRunner::new(ProptestConfig::with_cases(150));
    let outcome = runner.run(&prop::collection::vec(spoiled, 1..6), |spoiled| {
        let sound: Vec<_> = spoiled.iter().map(|(path, _)| fs::read(path).unwrap()).collect();
        for (path, bytes) in &spoiled {
            fs::write(path, bytes).unwrap();
        }
        let found = examine(root.path(), &WORKING);
        for ((path, _), bytes) in spoiled.iter().zip(sound) {
            fs::write(path, bytes).unwrap();
        }
        assert_sound(&found);
        Ok(())
    });
    outcome.unwrap();
}

fn collect(directory: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => collect(&entry.path(), files),
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}
