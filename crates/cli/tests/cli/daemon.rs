//! `daemon` and `top` from end to end, on programs of this machine in shadow mode: ends of the daemon and of
//! programs at any moment, and many programs.

use std::os::unix::fs::PermissionsExt;
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

/// Copies a program by another process: a fork of a test beside this one would keep a file open that is being
/// written, and what is open for writing cannot be executed.
fn copy(file: &Path, to: &Path) {
    assert!(Command::new("cp").args([file, to]).status().expect("cp").success());
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
        copy(file, &path);
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
        let fits = |groups: &[Value]| groups.first().is_some_and(&fits);
        self.until_all(what, fits).swap_remove(0)
    }

    /// Returns all groups once they fit.
    #[track_caller]
    fn until_all(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(90);
        let mut last = Value::Null;
        loop {
            let ran = self.top("--json");
            if ran.code == Some(0) {
                last = ran.json();
                let groups = last["groups"].as_array().expect("groups");
                if fits(groups) {
                    return groups.clone();
                }
            }
            assert!(Instant::now() < deadline, "{what}: {last}");
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

fn is_root() -> bool {
    String::from_utf8(Command::new("id").arg("-u").output().expect("id").stdout)
        .is_ok_and(|id| id.trim() == "0")
}

/// The socket's mode keeps others out already; where it was changed, the kernel says who they are.
#[test]
fn another_users_client_is_turned_away() {
    if !is_root() {
        return eprintln!("skipped: only root can be another user");
    }
    let machine = Machine::new("others", "");
    let _daemon = machine.daemon();
    machine.until("it answers", |_| true);
    let binary = machine.folder.path().join("isotherm");
    copy(Path::new(env!("CARGO_BIN_EXE_isotherm")), &binary);
    for (path, mode) in [(machine.folder.path(), 0o755), (Path::new(&machine.socket), 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
    }
    let client = |user: &str| {
        let mut client = Command::new("setpriv");
        client.args([&format!("--reuid={user}"), "--regid=65534", "--clear-groups"]).arg(&binary);
        let output = client.args(["top", "--json", "--socket", &machine.socket]).output();
        RunStats::from(output.expect("setpriv of util-linux"))
    };
    let refused = client("65534").refused(1);
    assert!(refused.contains("closed the connection") || refused.contains("does not answer"), "{refused}");
    assert_eq!(client("0").code, Some(0), "root is answered");
}

/// Runs a script that sees cgroups of version 2 at `$0`; `None` where this user may not mount them.
fn with_cgroups(folder: &Folder, script: &str) -> Option<()> {
    let place = folder.path().join("cgroups");
    std::fs::create_dir_all(&place).expect("a folder");
    let script = format!("mount -t cgroup2 cgroup2 $0 || exit 77\n{script}");
    let status = Command::new("unshare").args(["--mount", "sh", "-ec", &script]).arg(&place).status();
    match status.expect("unshare of util-linux").code() {
        Some(0) => Some(()),
        Some(77 | 1) if !is_root() => None,
        other => panic!("{script}: {other:?}"),
    }
}

/// While its pages move, in shadow mode; the lab does the same where pages really move.
#[test]
fn a_program_that_changes_its_cgroup_changes_its_group() {
    let place = format!("isotherm-test-{}", std::process::id());
    let settings = format!(
        "policy = \"hybridtier\"\noverhead = \"10%\"\n\
         [[group]]\nname = \"one\"\ncgroup = \"/{place}/one\"\n[[group]]\nname = \"two\"\ncgroup = \"/{place}/two\""
    );
    let machine = Machine::new("cgroups", &settings);
    let make = format!("mkdir $0/{place} $0/{place}/one $0/{place}/two");
    if with_cgroups(&machine.folder, &make).is_none() {
        return eprintln!("skipped: this user may not mount cgroup2");
    }
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let target = binary.with_file_name("examples").join("live-target");
    let mut command = Command::new(machine.program(&target));
    command.args([
        "planted",
        "--size",
        "64M",
        "--hot",
        "12.5%",
        "--share",
        "90%",
        "--move-after",
        "1",
        "--seconds",
        "600",
    ]);
    let program = Process::start(&mut command);
    let _daemon = machine.daemon();
    let in_group = |group: &Value, name: &str| group["name"] == name && resident(group) > 32 << 20;
    for name in ["one", "two", "one"] {
        let enter = format!("echo {} >$0/{place}/{name}/cgroup.procs", program.0.id());
        with_cgroups(&machine.folder, &enter).expect("as before");
        let status = machine.until_all("it is in its group alone", |groups| {
            groups.iter().filter(|group| programs(group) > 0).count() == 1
                && groups.iter().any(|group| in_group(group, name))
        });
        let other = if name == "one" { "two" } else { "one" };
        let left = status.iter().find(|group| group["name"] == other).expect("the group");
        assert_eq!(left["warnings"], Value::Array(Vec::new()), "{left}");
        // Until some of its pages have moved under its engine.
        machine.until_all("its pages move", |groups| {
            let group = groups.iter().find(|group| group["name"] == name).expect("the group");
            group["traffic"]["bytes_moved"].as_u64() > Some(0)
        });
    }
    assert_eq!(program.field("TracerPid"), "0");
    drop(program);
    machine.until_all("it has gone", |groups| groups.iter().all(|group| programs(group) == 0));
    with_cgroups(&machine.folder, &format!("rmdir $0/{place}/one $0/{place}/two $0/{place}"))
        .expect("as before");
}

/// A run that has joined is a group with its programs, under the names that the daemon knows.
#[test]
fn a_joined_run_shows_its_programs() {
    let machine = Machine::new("joined", "");
    let _daemon = machine.daemon();
    machine.until("it answers", |_| true);
    let sleep = machine.folder.path().join(format!("joined-sleep-{}", std::process::id()));
    copy(Path::new("/bin/sleep"), &sleep);
    let mut run = command(&[
        "run",
        "--shadow",
        "--quiet",
        "--policy",
        "first-touch",
        "--daemon",
        &machine.socket,
        "--",
    ]);
    let run = Process::start(run.arg(&sleep).arg("600"));
    let groups = machine.until_all("the run is a group with a program", |groups| {
        groups.iter().any(|group| {
            group["mode"] == "run" && programs(group) == 1 && group["programs"][0]["command"] != ""
        })
    });
    let group = groups.iter().find(|group| group["mode"] == "run").expect("the run");
    assert_eq!(
        group["programs"][0]["command"],
        sleep.file_name().expect("a name").to_string_lossy().as_ref()
    );
    assert!(resident(&group["programs"][0]) > 0, "{group}");
    run.signal("TERM");
    machine.until_all("it has left", |groups| groups.iter().all(|group| group["mode"] != "run"));
}

/// `replay` shows a log as `top` showed the daemon that wrote it.
#[test]
fn a_past_hour_is_replayed() {
    let folder = Folder::new();
    let log = folder.at("log");
    let machine = Machine::new("replayed", &format!("log = \"{log}\"\npolicy = \"first-touch\""));
    let sleep = machine.program(Path::new("/bin/sleep"));
    let program = Process::start(Command::new(&sleep).arg("600"));
    let daemon = machine.daemon();
    machine.until("the program is followed", |group| resident(group) > 0);
    std::thread::sleep(Duration::from_secs(3));
    let shown = machine.top("--json").json();
    daemon.signal("TERM");
    let mut daemon = daemon;
    assert!(daemon.0.wait().expect("it ends").success());
    drop(program);

    let replayed = isotherm(&["replay", &log, "--top", "--json"]).json();
    for key in ["version", "started_unix_s", "fast_bytes", "shadow"] {
        assert_eq!(replayed[key], shown[key], "{key}");
    }
    for key in ["name", "policy", "resident_bytes", "programs"] {
        assert_eq!(replayed["groups"][0][key], shown["groups"][0][key], "{key}");
    }
    let table = isotherm(&["replay", &log, "--top", "--once"]).ok();
    assert!(table.contains(&machine.name) && table.starts_with("fast "), "{table}");
    let trace = folder.at("trace.json");
    assert_eq!(isotherm(&["replay", &log, "--perfetto", &trace]).ok(), "");
    let trace: Value =
        serde_json::from_str(&std::fs::read_to_string(&trace).expect("a trace")).expect("JSON");
    let names: Vec<&str> = trace["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names.contains(&machine.name.as_str()) && names.contains(&"share (bytes)"), "{names:?}");

    let refused = |arguments: &[&str]| isotherm(&[&["replay"], arguments].concat()).refused(2);
    assert!(
        refused(&[&log, "--from", "1999-01-01T00:00"])
            .contains("the log has nothing then; expected a time from 20")
    );
    assert!(refused(&[&log, "--from", "noon"]).contains("expected a time in UTC"));
    assert!(refused(&[&log, "--for", "2h"]).contains("at most 1h"));
    assert!(
        refused(&[&folder.file("text.parquet", "no log")]).contains("text.parquet: not a log of the daemon")
    );
    assert!(refused(&[&folder.at("none")]).contains("cannot open"));
}

/// Neither where a log begins nor where it ends does a full disk matter to the daemon.
#[test]
fn a_daemon_runs_on_a_full_disk() {
    if !is_root() {
        return eprintln!("skipped: only root can mount a small disk");
    }
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let machine =
        Machine::new("full", &format!("log = \"{}/log\"\npolicy = \"first-touch\"", disk.display()));
    let sleep = machine.program(Path::new("/bin/sleep"));
    let _program = Process::start(Command::new(&sleep).arg("600"));
    let script = "mount -t tmpfs -o size=4k,nr_inodes=2 tmpfs $0 && : >$0/filler; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script]).arg(&disk);
    command.args([
        env!("CARGO_BIN_EXE_isotherm"),
        "daemon",
        "--config",
        &machine.config,
        "--socket",
        &machine.socket,
    ]);
    let mut daemon = Process::start(&mut command);
    machine.until("the program is followed", |group| resident(group) > 0);
    let status = machine.top("--json").json();
    assert!(
        status["log"]["failure"].as_str().is_some_and(|why| why.contains("No space left")),
        "{}",
        status["log"]
    );
    assert!(machine.top("--once").ok().contains("No space left on device"));
    daemon.signal("TERM");
    assert!(daemon.0.wait().expect("it ends").success());
}
