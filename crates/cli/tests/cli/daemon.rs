//! `daemon` and `top` from end to end, on programs of this machine in shadow mode: ends of the daemon and of
//! programs at any moment, and many programs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Folder, RunStats, command, isotherm};

/// A daemon or a program, ended on drop.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Returns a field of `/proc/PID/status`.
    fn field(&self, name: &str) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
        line.trim_start_matches(':').trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine with one group, `group`, of the programs of a name that no other test has.
struct Machine {
    folder: Folder,
    name: String,
    socket: String,
    config: String,
}

impl Machine {
    fn new(test: &str, settings: &str) -> Self {
        let folder = Folder::new();
        let name = format!("{test}-{}", std::process::id());
        let text = format!(
            "fast = \"16M\"\nshadow = true\nlisten = \"off\"\ninterval = \"200ms\"\n{settings}\n\
             [[group]]\nname = \"group\"\ncommand = \"{name}\"\n"
        );
        let (config, socket) = (folder.file("isotherm.toml", text), folder.at("socket"));
        Self { folder, name, socket, config }
    }

    /// Returns a program of the group: a copy of `file`.
    fn program(&self, file: &Path) -> PathBuf {
        let path = self.folder.path().join(&self.name);
        std::fs::copy(file, &path).expect("a copy");
        path
    }

    fn daemon(&self) -> Process {
        Process::start(&mut command(&["daemon", "--config", &self.config, "--socket", &self.socket]))
    }

    fn top(&self, option: &str) -> RunStats {
        isotherm(&["top", option, "--socket", &self.socket])
    }

    /// Returns the group once it fits.
    #[track_caller]
    fn until(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let ran = self.top("--json");
            if ran.code == Some(0) {
                let group = ran.json()["groups"][0].take();
                if fits(&group) {
                    return group;
                }
            }
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn programs(group: &Value) -> usize {
    group["programs"].as_array().map_or(0, Vec::len)
}

fn resident(group: &Value) -> u64 {
    let tiers = group["resident_bytes"].as_array();
    tiers.map_or(0, |tiers| tiers.iter().filter_map(Value::as_u64).sum())
}

#[test]
fn a_killed_daemon_leaves_programs_running_and_the_next_one_finds_them() {
    let machine = Machine::new("killed", "");
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let target = machine.program(&binary.with_file_name("examples").join("live-target"));
    let run = |program: &Path| {
        let mut command = Command::new(program);
        command.args(["planted", "--size", "32M", "--operations", "300000000"]);
        command
    };
    let mut program = Process::start(&mut run(&target));
    for moment in [0, 150, 700] {
        let mut daemon = machine.daemon();
        machine.until("the program is followed", |group| resident(group) > 16 << 20);
        std::thread::sleep(Duration::from_millis(moment));
        daemon.0.kill().expect("killed");
        daemon.0.wait().expect("ended");
        assert_eq!(program.field("TracerPid"), "0");
        assert!(matches!(&program.field("State")[..1], "R" | "S"), "{}", program.field("State"));
    }
    let refused = machine.top("--once").refused(1);
    assert!(refused.contains("expected a running daemon (systemctl start isotherm)"), "{refused}");

    let daemon = machine.daemon();
    machine.until("the next daemon finds it", |group| resident(group) > 16 << 20);
    let table = machine.top("--once").ok();
    assert!(table.contains("group") && table.contains(&machine.name), "{table}");
    daemon.signal("TERM");
    drop(daemon);

    // The program computes what it computes alone.
    let output = program.0.stdout.take().expect("piped");
    let alone = run(&binary.with_file_name("examples").join("live-target")).output().expect("it runs");
    assert!(program.0.wait().expect("it ends").success());
    assert_eq!(std::io::read_to_string(output).expect("text"), String::from_utf8_lossy(&alone.stdout));
}

/// With the usual limit of open files, each program may take only few of them.
#[test]
fn a_group_of_500_processes_is_followed() {
    let machine = Machine::new("many", "policy = \"first-touch\"");
    let sleep = machine.program(Path::new("/bin/sleep"));
    let sleeping: Vec<Process> = (0..500).map(|_| Process::start(Command::new(&sleep).arg("600"))).collect();
    let script = "ulimit -S -n 1024 && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_isotherm"), "daemon"]);
    let _daemon = Process::start(command.args(["--config", &machine.config, "--socket", &machine.socket]));
    let group = machine.until("all are followed with 1024 open files at first", |group| {
        let followed =
            |program: &Value| program["resident_bytes"].as_array().is_some_and(|tiers| !tiers.is_empty());
        let all = group["programs"].as_array().is_some_and(|all| all.iter().all(followed));
        programs(group) == 500 && all && resident(group) > 500 * 4096
    });
    assert_eq!(group["warnings"], Value::Array(Vec::new()));
    drop(sleeping);
    machine.until("all have gone", |group| programs(group) == 0);
}

/// Programs fork, execute others and end while they are read.
#[test]
fn programs_come_and_go_at_any_moment() {
    let machine = Machine::new("churn", "");
    let shell = machine.program(Path::new("/bin/sh"));
    let daemon = machine.daemon();
    let enough = machine.folder.path().join("enough");
    let script = "while [ ! -e $0 ]; do for _ in 1 2 3 4 5 6 7 8; do (exec true) & done; wait; done; \
                  exec sleep 600";
    let program = Process::start(Command::new(&shell).args(["-c", script]).arg(&enough));
    machine.until("it is followed", |group| programs(group) >= 1);
    std::thread::sleep(Duration::from_secs(2));
    std::fs::write(&enough, "").expect("written");
    // What it executes at last belongs to no group.
    machine.until("it has left", |group| programs(group) == 0);
    assert_eq!(program.field("TracerPid"), "0");
    let group = machine.until("the daemon still answers", |_| true);
    assert_eq!(group["warnings"], Value::Array(Vec::new()), "{group}");
    daemon.signal("TERM");
    let mut daemon = daemon;
    assert!(daemon.0.wait().expect("it ends").success());
    assert!(!Path::new(&machine.socket).exists(), "its socket is removed");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let machine = Machine::new("mistakes", "");
    let valid = isotherm(&["daemon", "--check", "--config", &machine.config]).ok();
    assert!(valid.ends_with("valid (1 groups)\n"), "{valid}");
    let check = |text: &str| {
        let path = machine.folder.file("wrong.toml", text);
        isotherm(&["daemon", "--check", "--config", &path]).refused(2)
    };
    assert!(check("[[group]]\nname = \"a\"\npolicy = \"hybridteir\"").contains("wrong.toml:3: "));
    assert!(check("[[group]]\nnam = \"a\"").contains("wrong.toml:2: "));
    assert!(check("listen = \"0.0.0.0:1\"").contains("wrong.toml:1: "));
    let missing = isotherm(&["daemon", "--config", &machine.folder.at("none.toml")]).refused(2);
    assert!(missing.contains("none.toml"), "{missing}");
}
