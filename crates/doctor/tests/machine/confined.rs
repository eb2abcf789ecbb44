//! Findings as another user, in namespaces and under other mounts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use isotherm_doctor::{Findings, State};

use crate::doctor_program;

/// States in JSON by title of the finding.
type States = BTreeMap<String, String>;

/// Runs the doctor behind a prefix; prints why and returns `None` where the prefix is not permitted.
fn examined(prefix: &[&str]) -> Option<(States, String)> {
    let program = doctor_program();
    let permitted = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
    if !permitted.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: {} is not permitted here: {permitted:?}", prefix.join(" "));
        return None;
    }
    let output = Command::new(prefix[0]).args(&prefix[1..]).arg(&program).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let findings = json["findings"].as_array().unwrap().iter();
    let title = |finding: &serde_json::Value| match finding["subject"].as_str() {
        Some(subject) => format!("{} {subject}", finding["name"].as_str().unwrap()),
        None => finding["name"].as_str().unwrap().to_owned(),
    };
    let states = findings.map(|finding| (title(finding), finding["state"].as_str().unwrap().to_owned()));
    Some((states.collect(), text))
}

fn state<'a>(states: &'a States, title: &str) -> &'a str {
    states.get(title).map_or("not found", String::as_str)
}

/// Runs a script and then the doctor in a new mount namespace.
fn with_mounts(script: &str) -> Option<(States, String)> {
    let script = format!("{script} && exec \"$0\" \"$@\"");
    examined(&["unshare", "--mount", "sh", "-c", &script])
}

#[test]
fn nobody_gets_answers_that_say_what_is_not_permitted() {
    let Some((states, text)) =
        examined(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
    else {
        return;
    };
    for capability in ["cap-perfmon", "cap-sys-nice", "cap-sys-ptrace", "cap-sys-admin", "cap-dac-override"] {
        assert_eq!(state(&states, capability), "missing", "{text}");
    }
    assert_ne!(state(&states, "perf-event-paranoid"), "unknown");
    assert_eq!(state(&states, "user-namespace"), "ok");
    // World-readable facts are the same for nobody.
    let root = Findings::live();
    for title in ["kernel", "memory-tiers", "processor", "transparent-huge-pages", "numa-balancing"] {
        assert_eq!(state(&states, title), root.find(title).unwrap().state.name(), "{title}");
    }
    if Path::new("/sys/devices/system/node/node0/reclaim").exists() {
        assert_eq!(state(&states, "node-reclaim"), "missing");
    }
}

#[test]
fn a_user_namespace_is_noticed_and_its_capabilities_count_for_nothing() {
    let Some((states, text)) = examined(&["unshare", "-Urpf", "--mount-proc"]) else { return };
    assert_eq!(state(&states, "user-namespace"), "warning", "{text}");
    assert_eq!(state(&states, "pid-namespace"), "warning");
    assert_eq!(state(&states, "cap-sys-admin"), "missing");
    assert!(text.contains("held only inside this user namespace"));
    assert!(!text.contains("setcap cap_"), "setcap in a user namespace gives nothing outside it");
    assert!(!text.contains("/proc/self"), "{text}");
}

#[test]
fn without_sys_what_it_shows_is_unknown() {
    let Some((states, text)) = with_mounts("mount -t tmpfs none /sys") else { return };
    for title in ["memory-tiers", "demotion", "node-reclaim", "multi-gen-lru", "source-idle-pages", "damon"] {
        assert_eq!(state(&states, title), "unknown", "{title}: {text}");
    }
    assert_eq!(state(&states, "sys-mount"), "missing");
    assert_eq!(state(&states, "kernel"), Findings::live().find("kernel").unwrap().state.name());
}

#[test]
fn a_read_only_sys_is_reported_and_forbids_reclaim() {
    let Some((states, text)) = with_mounts("mount -o remount,bind,ro /sys") else { return };
    assert_eq!(state(&states, "sys-mount"), "warning", "{text}");
    if Path::new("/sys/devices/system/node/node0/reclaim").exists() {
        assert_eq!(state(&states, "node-reclaim"), "missing");
        assert!(text.contains("Read-only file system"));
    }
    assert_eq!(state(&states, "memory-tiers"), Findings::live().find("memory-tiers").unwrap().state.name());
}

#[test]
fn hidden_processes_are_noticed() {
    let Some((states, text)) = with_mounts("mount -t proc -o hidepid=2 proc /proc") else { return };
    assert_eq!(state(&states, "hidden-processes"), "warning", "{text}");
}

#[test]
fn without_proc_there_are_still_findings() {
    let Some((states, text)) = with_mounts("mount -t tmpfs none /proc") else { return };
    for title in
        ["kernel", "processor", "cap-perfmon", "perf-event-paranoid", "conflict-process", "namespaces"]
    {
        assert_eq!(state(&states, title), "unknown", "{title}: {text}");
    }
}

#[test]
fn a_process_named_like_a_conflict_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let conflict = directory.path().join("memtierd");
    // Executing a copy would fail while another thread's child still has it open.
    std::os::unix::fs::symlink("/bin/sleep", &conflict).unwrap();
    let mut child = Command::new(&conflict).arg("60").spawn().unwrap();
    let title = format!("conflict-process {}", child.id());
    let found = Findings::live();
    child.kill().unwrap();
    child.wait().unwrap();
    let finding = found.find(&title).expect("the conflict");
    assert_eq!(finding.state, State::Warning);
    assert!(finding.meaning.contains("memtierd"));
    assert_eq!(Findings::live().find(&title), None);
}

/// Reads the settings that a run could want to change.
fn settings() -> BTreeMap<String, String> {
    let mut files: Vec<String> = [
        "/proc/sys/kernel/perf_event_paranoid",
        "/proc/sys/kernel/perf_event_max_sample_rate",
        "/proc/sys/kernel/perf_event_mlock_kb",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/vm/max_map_count",
        "/sys/kernel/mm/numa/demotion_enabled",
        "/sys/kernel/mm/lru_gen/enabled",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds",
        "/sys/kernel/mm/damon/admin/kdamonds/0/state",
        "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/action",
    ]
    .map(str::to_owned)
    .to_vec();
    files.retain(|file| Path::new(file).exists());
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap_or_default())).collect()
}

#[test]
fn nothing_on_the_host_is_changed() {
    assert!(settings().len() > 4);
    // Other processes may change a setting meanwhile, but hardly three times.
    let unchanged = (0..3).any(|_| {
        let before = settings();
        let found = Findings::live();
        assert!(!found.findings.is_empty());
        settings() == before
    });
    assert!(unchanged);
}
