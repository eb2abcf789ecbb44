//! The engine as a thread of the program: real programs run as without it, it finds the hot set, and its
//! failures leave the program untouched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns the directory of cargo's outputs beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned()
}

fn target() -> String {
    built().join("examples/planted-target").display().to_string()
}

/// Returns the program with an engine inside, unless a variable says otherwise.
fn inside(variables: &[(&str, &str)], program: &[&str]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::null());
    command.env("LD_PRELOAD", built().join("deps/libisotherm.so"));
    command.env("ISOTHERM_POLICY", "hybridtier").env("ISOTHERM_SHADOW", "1");
    command.envs(variables.iter().copied());
    command
}

fn run(variables: &[(&str, &str)], program: &[&str]) -> Output {
    inside(variables, program).output().expect("the program runs")
}

fn plain(program: &[&str]) -> Output {
    Command::new(program[0]).args(&program[1..]).stdin(Stdio::null()).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn summary(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a summary")).expect("JSON")
}

/// Returns whether programs may open what hint faults need; prints a line if not.
fn hint_faults_work() -> bool {
    let opened = isotherm_linux::sys::probe::hint_faults();
    if let Err(error) = &opened {
        println!("skipped: no hint faults here, which need CAP_SYS_PTRACE: {error}");
    }
    opened.is_ok()
}

fn installed(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {name} is not installed");
    }
    found
}

/// Returns the pages of the planted hot set, and the address they are counted from.
fn planted(report: &Path) -> (u64, BTreeSet<u64>) {
    let text = std::fs::read_to_string(report).expect("the target's report");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect("a line").to_owned();
    let start = line("range ").split(' ').nth(1).and_then(|word| u64::from_str_radix(word, 16).ok());
    let hot = line("hot 0 ").split(' ').skip(2).map(|page| page.parse().expect("a page")).collect();
    (start.expect("an address"), hot)
}

fn hot_pages(summary: &Value, start: u64) -> BTreeSet<u64> {
    let ranges = summary["hot_set"]["hot"]["ranges"].as_array().expect("ranges");
    let number = |range: &Value, field: &str| range[field].as_u64().expect("a number");
    let pages = |range: &Value| {
        let (first, bytes) = (number(range, "start"), number(range, "bytes"));
        (0..bytes / 4096).map(move |page| (first.wrapping_sub(start) / 4096).wrapping_add(page))
    };
    ranges.iter().flat_map(pages).collect()
}

#[test]
fn a_planted_hot_set_is_found() {
    if !hint_faults_work() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (json, report) = (folder.path().join("json"), folder.path().join("planted"));
    let (json_text, report_text, target) =
        (json.display().to_string(), report.display().to_string(), target());
    // A busy machine gives fewer samples per second: run longer, until they suffice.
    for seconds in ["15", "30", "60"] {
        let program = [&target, "planted", "--size", "32M", "--seconds", seconds, "--report", &report_text];
        let variables =
            [("ISOTHERM_OVERHEAD", "10%"), ("ISOTHERM_FAST", "12%"), ("ISOTHERM_JSON", json_text.as_str())];
        let output = run(&variables, &program);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let result = summary(&json);
        let (start, hot) = planted(&report);
        let found = hot_pages(&result, start);
        let right = found.intersection(&hot).count() as f64;
        let (share, wrong) = (right / hot.len() as f64, 1.0 - right / found.len().max(1) as f64);
        println!("{}: {:.1} % found, {:.1} % false", result["samples"], 100.0 * share, 100.0 * wrong);
        // The engine's own memory is not the program's.
        assert!(result["footprint_bytes"].as_u64() < Some(36 << 20), "{}", result["footprint_bytes"]);
        if share >= 0.95 && wrong <= 0.05 {
            return;
        }
    }
    panic!("the planted hot set was not found");
}

#[test]
fn programs_of_all_kinds_do_the_same_as_without() {
    let target = target();
    let sql = "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 \
               from n where i<200000) insert into t select i, hex(i*7919) from n; select count(*), max(b) from t;";
    let python = "import hashlib,os,threading,subprocess\nd={i:str(i*i) for i in range(200000)}\n\
                  t=[threading.Thread(target=lambda: sum(map(len,d.values()))) for _ in range(20)]\n\
                  [x.start() for x in t]; [x.join() for x in t]\nh=hashlib.sha256()\n\
                  for k in sorted(d): h.update(d[k].encode())\n\
                  pid=os.fork()\nif pid==0: os._exit(len(d)%7)\nprint(os.waitpid(pid,0)[1], h.hexdigest())\n\
                  print(subprocess.run(['sh','-c','echo out; exit 5'],capture_output=True))";
    let exit = "import sys,os\nx=bytearray(1<<20)\nsys.exit(9)";
    let programs: [&[&str]; 9] = [
        &["sqlite3", ":memory:", sql],
        &["python3", "-c", python],
        &["python3", "-c", exit],
        &["sh", "-c", "echo out; echo err >&2; (exit 3); exec sh -c 'kill -SEGV $$'"],
        &[&target, "planted", "--operations", "5000000", "--threads", "2", "--size", "16M"],
        &[&target, "fork-storm", "--children", "300"],
        &[&target, "exec-chain", "--times", "10"],
        &[&target, "unmap-storm", "--operations", "20000"],
        &[&target, "syscalls", "--operations", "300"],
    ];
    for program in programs {
        if program[0].contains('/') || installed(program[0]) {
            let (expected, output) = (plain(program), run(&[("ISOTHERM_OVERHEAD", "20%")], program));
            let all = |output: &Output| (output.status, text(&output.stdout), text(&output.stderr));
            assert_eq!(all(&output), all(&expected), "{program:?}");
        }
    }
}

#[test]
fn bad_values_are_one_line_and_the_program_goes_on() {
    for (variable, value) in [
        ("ISOTHERM_FAST", "much"),
        ("ISOTHERM_POLICY", "hybridteir"),
        ("ISOTHERM_SOURCE", "magic"),
        ("ISOTHERM_TIERS", "0,99"),
        ("ISOTHERM_OVERHEAD", "200%"),
    ] {
        let output = run(&[(variable, value)], &["echo", "hello"]);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "hello\n"));
        let error = text(&output.stderr);
        assert!(error.starts_with("isotherm: ") && error.lines().count() == 1, "{variable}={value}: {error}");
        assert!(error.contains("without an engine"), "{variable}={value}: {error}");
    }
}

#[test]
fn a_summary_is_written_by_each_program_that_ends_orderly() {
    let folder = tempfile::tempdir().expect("a folder");
    let pattern = folder.path().join("%p.json").display().to_string();
    // The shell executes a program, forks a child that executes nothing, and ends: two programs, two
    // summaries.
    let script = "/bin/ls / >/dev/null; (:); exit 0";
    let output = run(&[("ISOTHERM_JSON", &pattern), ("ISOTHERM_REPORT", "-")], &["sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0));
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files.into_iter().flatten() {
        let result = summary(&file.path());
        assert_eq!(result["policy"], "hybridtier");
    }
    assert!(text(&output.stderr).contains("would have moved (shadow)"), "{}", text(&output.stderr));
}

/// Returns a file of the running process, once `ready` likes what is in it.
fn awaited(path: &str, ready: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if ready(&text) {
            return text;
        }
        assert!(Instant::now() < deadline, "{path}: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_second_engine_is_refused_and_children_have_none() {
    let target = target();
    let program = ["planted", "--size", "16M", "--seconds", "30"];
    let mut command = inside(&[], &[&[target.as_str()], &program[..]].concat());
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let name = format!(" {} ", child.id());
    let is_held =
        |text: &str| text.lines().filter(|line| line.contains("FLOCK")).any(|line| line.contains(&name));
    awaited("/proc/locks", is_held);
    let root = isotherm_linux::process::ProcRoot::default();
    let error =
        isotherm_linux::process::lock::EngineLock::take(&root, isotherm_linux::process::Pid(child.id()));
    let error = error.expect_err("the program has an engine").to_string();
    assert!(error.contains("the program itself, through libisotherm.so"), "{error}");
    child.kill().expect("ours");
    child.wait().expect("it ends");
    let threads = "import os,time\npid=os.fork()\n\
                   if pid==0:\n  time.sleep(.3)\n  print(len(os.listdir('/proc/self/task')),flush=True)\n  os._exit(0)\n\
                   os.waitpid(pid,0)";
    if installed("python3") {
        assert_eq!(text(&run(&[], &["python3", "-c", threads]).stdout), "1\n");
    }
}

#[test]
fn redis_under_load_holds_the_same() {
    if !installed("redis-server") || !installed("redis-benchmark") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("redis.json").display().to_string();
    let server = |socket: &str| {
        let options = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", ""];
        let more = ["--enable-debug-command", "yes", "--loglevel", "warning"];
        [&options[..], &more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let digest = |mut command: Command, socket: &str| {
        let mut server = command.stdout(Stdio::null()).spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !Path::new(socket).exists() {
            assert!(Instant::now() < deadline, "redis listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        let ask = |words: &[&str]| {
            text(
                &Command::new("redis-cli")
                    .args(["-s", socket])
                    .args(words)
                    .output()
                    .expect("redis-cli")
                    .stdout,
            )
        };
        ask(&["DEBUG", "POPULATE", "100000", "key", "100"]);
        let load = ["-s", socket, "-q", "-n", "60000", "-r", "100000", "-t", "get"];
        let loaded = Command::new("redis-benchmark").args(load).stdout(Stdio::null()).status();
        assert!(loaded.expect("redis-benchmark").success());
        let digest = ask(&["DEBUG", "DIGEST"]);
        ask(&["SHUTDOWN", "NOSAVE"]);
        assert_eq!(server.wait().expect("it ends").code(), Some(0));
        digest
    };
    let path = |name: &str| folder.path().join(name).display().to_string();
    let words = server(&path("plain"));
    let mut bare = Command::new(&words[0]);
    bare.args(&words[1..]);
    let expected = digest(bare, &path("plain"));
    let words = server(&path("tiered"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(digest(inside(&[("ISOTHERM_JSON", &json)], &words), &path("tiered")), expected);
    let result = summary(Path::new(&json));
    assert!(result["footprint_bytes"].as_u64() > Some(10 << 20), "{}", result["footprint_bytes"]);
    assert!(!hint_faults_work() || result["samples"].as_u64() > Some(0), "{}", result["warnings"]);
}
