//! `doctor` as root, as nobody and in namespaces: correct findings, exit code 0, and an unchanged host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, RunStats, isotherm};
use crate::validator::problems;

const NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
const CONTAINER: [&str; 3] = ["unshare", "-Urpf", "--mount-proc"];
/// Attempts at a self-test: it has one second, which other load on the machine may consume.
const TRIES: usize = 5;

/// A folder with the binary and its library that every user may run, and a folder for temporary files.
struct Stage {
    folder: Folder,
    library: bool,
}

impl Stage {
    fn new() -> Self {
        let folder = Folder::new();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        open(folder.path(), 0o755);
        let binary = Path::new(env!("CARGO_BIN_EXE_isotherm"));
        let beside = binary.parent().unwrap();
        let libraries = [beside.join("libisotherm.so"), beside.join("deps/libisotherm.so")];
        let library = libraries.into_iter().find(|path| path.is_file());
        // A program that this process writes itself cannot run while another test forks.
        for file in [Some(binary), library.as_deref()].into_iter().flatten() {
            let status = Command::new("install").args(["-m", "755"]).arg(file).arg(folder.path()).status();
            assert!(status.unwrap().success());
        }
        fs::create_dir(folder.path().join("tmp")).unwrap();
        open(&folder.path().join("tmp"), 0o777);
        if library.is_none() {
            println!(
                "skipped: the self-test of hint faults: `cargo build -p isotherm-preload` makes its library"
            );
        }
        Self { folder, library: library.is_some() }
    }

    fn binary(&self) -> PathBuf {
        self.folder.path().join("isotherm")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Runs the doctor behind a prefix such as `setpriv`; returns `None`, with a note, if that is not
    /// permitted.
    fn run(&self, prefix: &[&str], arguments: &[&str]) -> Option<RunStats> {
        let command = |program: &str| match prefix {
            [] => Command::new(program),
            [name, rest @ ..] => {
                let mut command = Command::new(name);
                command.args(rest).arg(program);
                command
            }
        };
        let binary = self.binary().display().to_string();
        let permitted = command("test").args(["-x", &binary]).output();
        if !permitted.as_ref().is_ok_and(|output| output.status.success()) {
            println!("skipped: {} is not permitted here: {permitted:?}", prefix.join(" "));
            return None;
        }
        let mut command = command(&binary);
        command.arg("doctor").args(arguments).stdin(Stdio::null());
        command.env("TMPDIR", self.temporary()).env_remove("XDG_RUNTIME_DIR");
        Some(command.output().unwrap().into())
    }

    fn examined(&self, prefix: &[&str], arguments: &[&str]) -> Option<Report> {
        let ran = self.run(prefix, &[&["--json"], arguments].concat())?;
        assert_eq!(ran.err, "");
        Some(Report(ran.json()))
    }
}

/// Output of `--json`.
#[derive(Debug)]
struct Report(Value);

impl Report {
    fn findings(&self) -> &[Value] {
        self.0["findings"].as_array().unwrap()
    }

    fn find(&self, title: &str) -> Option<&Value> {
        self.findings().iter().find(|finding| title_of(finding) == title)
    }

    /// Returns the state of a finding, or `absent`.
    fn state(&self, title: &str) -> &str {
        self.find(title).map_or("absent", |finding| finding["state"].as_str().unwrap())
    }

    fn policies(&self) -> &[Value] {
        self.0["policies"].as_array().unwrap()
    }

    fn policy(&self, name: &str) -> &Value {
        self.policies().iter().find(|policy| policy["policy"] == name).unwrap()
    }

    /// Checks that every problem has a remedy, and that everything lacking refers to existing findings.
    fn is_complete(&self) {
        let schema = include_str!("../../../../docs/reference/doctor.schema.json");
        let schema = serde_json::from_str(schema).expect("the schema is JSON");
        assert_eq!(problems(&schema, &self.0), Vec::<String>::new());
        assert!(self.findings().len() > 20, "{}", self.0);
        for finding in self.findings() {
            let wrong = ["missing", "warning"].contains(&finding["state"].as_str().unwrap());
            let remedy = finding["remedy"].as_object().and_then(|remedy| remedy.values().next()?.as_str());
            assert!(!wrong || remedy.is_some_and(|text| !text.is_empty()), "{finding}");
        }
        assert!(
            self.policies().len() > 10 && self.policies().iter().all(|policy| policy["policy"] != "oracle")
        );
        for policy in self.policies() {
            let lacks = policy["lacks"].as_array().unwrap();
            assert_eq!(policy["usable"], lacks.is_empty(), "{policy}");
            for title in lacks.iter().flat_map(|lack| lack["mended_by"].as_array().unwrap()) {
                assert_ne!(self.state(title.as_str().unwrap()), "absent", "{policy}");
            }
        }
    }
}

fn title_of(finding: &Value) -> String {
    let name = finding["name"].as_str().unwrap();
    finding["subject"].as_str().map_or(name.to_owned(), |subject| format!("{name} {subject}"))
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

/// Checks that the sources that this user may open see the loop, and that policies are judged by them.
fn sources_see_the_loop(stage: &Stage, prefix: &[&str]) {
    let mut expected = vec!["accessed-bits"];
    let Some(report) = stage.examined(prefix, &["--no-self-test"]) else { return };
    if stage.library && report.state("source-hint-faults") == "ok" {
        expected.push("hint-faults");
    }
    let mut last = report;
    for _ in 0..TRIES {
        last = stage.examined(prefix, &[]).unwrap();
        last.is_complete();
        if expected.iter().all(|source| last.state(&format!("self-test {source}")) == "ok") {
            assert_eq!(last.policy("pte-scan")["usable"], true);
            assert_eq!(last.policy("nbt")["usable"], expected.contains(&"hint-faults"));
            return;
        }
    }
    panic!("{expected:?}: {:#}", last.0);
}

#[test]
fn the_machine_is_described_as_it_is() {
    let stage = Stage::new();
    let report = stage.examined(&[], &["--no-self-test"]).unwrap();
    report.is_complete();
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let meaning = report.find("perf-event-paranoid").unwrap()["meaning"].as_str().unwrap();
    assert!(meaning.contains(&format!("is {}", paranoid.trim())), "{meaning}");
    let tracked = Path::new("/sys/kernel/mm/page_idle/bitmap").exists();
    assert!(tracked || report.state("source-idle-pages") == "missing");
    if is_root() {
        assert_eq!(report.state("cap-dac-override"), "ok");
    }
    // Sources that cannot be opened are reported even without tests.
    let tested = report.findings().iter().any(|finding| finding["name"] == "self-test");
    assert_eq!(tested, !stage.library && report.state("source-hint-faults") == "ok");
}

#[test]
fn the_sources_that_can_be_opened_see_the_known_loop() {
    sources_see_the_loop(&Stage::new(), &[]);
}

/// Checks that without `CAP_SYS_PTRACE` nothing else is said to permit hint faults.
fn has_no_hint_faults(report: &Report, remedy: &str) {
    let finding = report.find("source-hint-faults").unwrap();
    assert_eq!(finding["state"], "missing", "{finding}");
    assert!(finding["meaning"].as_str().unwrap().contains("need CAP_SYS_PTRACE"), "{finding}");
    assert_eq!(finding["remedy"].as_object().unwrap().values().next().unwrap(), remedy);
    assert_eq!(report.state("self-test hint-faults"), "absent", "it cannot be opened");
    let nbt = report.policy("nbt");
    assert_eq!(nbt["usable"], false, "{nbt}");
    assert!(nbt["lacks"].to_string().contains("source-hint-faults"), "{nbt}");
}

#[test]
fn nobody_learns_what_is_not_permitted() {
    let stage = Stage::new();
    let Some(report) = stage.examined(&NOBODY, &["--no-self-test"]) else { return };
    report.is_complete();
    for capability in ["cap-perfmon", "cap-sys-nice", "cap-sys-ptrace", "cap-sys-admin", "cap-dac-override"] {
        assert_eq!(report.state(capability), "missing");
    }
    has_no_hint_faults(&report, "sudo isotherm run -- PROGRAM");
    assert_eq!(report.policy("hybridtier")["sources"], serde_json::json!(["accessed-bits"]));
    sources_see_the_loop(&stage, &NOBODY);
}

#[test]
fn a_container_is_noticed_and_its_capabilities_count_for_nothing() {
    let stage = Stage::new();
    let Some(report) = stage.examined(&CONTAINER, &["--no-self-test"]) else { return };
    report.is_complete();
    assert_eq!(report.state("user-namespace"), "warning");
    assert_eq!(report.state("pid-namespace"), "warning");
    assert_eq!(report.state("cap-sys-admin"), "missing");
    let remedy = "run Isotherm outside this user namespace, or add the capability to the container";
    has_no_hint_faults(&report, remedy);
    sources_see_the_loop(&stage, &CONTAINER);
}

#[test]
fn text_fits_eighty_columns_and_only_a_command_may_be_longer() {
    let text = Stage::new().run(&[], &[]).unwrap().ok();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("fix: ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let verdict = text.lines().last().unwrap();
    assert!(verdict.starts_with("verdict: ") && verdict.contains(" policies can run"), "{verdict}");
    for heading in ["memory", "sources", "capabilities", "conflicts", "policies"] {
        assert!(text.lines().any(|line| line == heading), "{heading}: {text}");
    }
}

#[test]
fn the_last_word_about_self_tests_counts_and_the_loop_is_hidden() {
    let stage = Stage::new();
    let tested = |arguments: &[&str]| stage.run(&[], arguments).unwrap().ok().contains("self-test ");
    assert!(!tested(&["--self-test", "--no-self-test"]) || !stage.library);
    assert!(tested(&["--no-self-test", "--self-test"]));
    let help = isotherm(&["doctor", "--help"]).ok();
    assert!(help.contains("--no-self-test") && !help.contains("known-loop"), "{help}");
    for wrong in [&["doctor", "sources"][..], &["doctor", "--known-loop", "--json"]] {
        let ran = isotherm(wrong);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    }
}

/// Reads the settings below `/proc/sys` and `/sys` that a run might change.
fn settings() -> BTreeMap<PathBuf, String> {
    let folders =
        ["/proc/sys/kernel", "/proc/sys/vm", "/sys/kernel/mm/numa", "/sys/kernel/mm/transparent_hugepage"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let told = files.filter_map(|file| Some((file.path(), fs::read_to_string(file.path()).ok()?)));
    // These change by themselves: process numbers, entropy, and counts.
    let moving = ["ns_last_pid", "pty", "random", "stat_refresh", "perf_event_max_sample_rate"];
    told.filter(|(path, _)| !moving.iter().any(|name| path.ends_with(name))).collect()
}

/// Counts the processes of the program at `path`.
fn processes_of(path: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == path)).count()
}

#[test]
fn nothing_on_the_host_is_changed_or_left() {
    let stage = Stage::new();
    assert!(settings().len() > 50);
    // Other programs may change a setting, though hardly three times.
    let unchanged = (0..3).any(|_| {
        let before = settings();
        stage.run(&[], &[]).unwrap().ok();
        settings() == before
    });
    assert!(unchanged);
    let left: Vec<_> = fs::read_dir(stage.temporary()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(processes_of(&stage.binary()), 0);
}
