//! Launching: streams, exit statuses, signals and orphans are as without Isotherm.

mod support;

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use isotherm_linux::process::Exit;
use isotherm_linux::process::launch::{Launch, LaunchError, Running};
use isotherm_linux::process::signals::Signals;
use support::{alone, helper, helper_words, kill, line_with, started, until};

const SCRIPT: &str = "ISOTHERM_TEST_SCRIPT";

fn wait(running: &mut Running) -> Exit {
    loop {
        if let Some(exit) = running.wait(Duration::from_secs(1)).expect("waited") {
            return exit;
        }
    }
}

fn start(words: &[&str], variables: &[(OsString, OsString)], adopt: bool) -> Result<Launch, LaunchError> {
    let arguments: Vec<_> = words[1..].iter().map(Into::into).collect();
    Launch::start(Signals::receive().expect("signals"), words[0].as_ref(), &arguments, variables, adopt)
}

/// Runs `sh -c SCRIPT` as `isotherm run` does.
#[test]
#[ignore = "a helper of the tests below"]
fn launcher() {
    let script = std::env::var(SCRIPT).expect("the script");
    let variables = [("ISOTHERM_TEST_ADDED".into(), "added".into())];
    let mut running =
        start(&["sh", "-c", &script], &variables, true).and_then(Launch::release).expect("launched");
    let exit = wait(&mut running);
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    println!("\nstatus {} children '{}'", exit.status(), children.trim());
    std::process::exit(i32::from(exit.status()));
}

fn launcher_of(script: &str) -> Command {
    let mut command = helper("launcher");
    command.env(SCRIPT, script);
    command
}

#[test]
fn statuses_are_passed_through() {
    for (script, expected) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let output = launcher_of(script).output().expect("run");
        assert_eq!(output.status.code(), Some(expected), "{script}");
    }
}

#[test]
fn streams_and_environment_are_the_callers() {
    let script = "cat; echo to-stderr >&2; echo $ISOTHERM_TEST_ADDED $ISOTHERM_TEST_OWN";
    let mut child =
        launcher_of(script).env("ISOTHERM_TEST_OWN", "own").stderr(Stdio::piped()).spawn().expect("run");
    let bytes: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
    let mut input = child.stdin.take().expect("piped");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).expect("written"));
    let (mut out, mut err) = (Vec::new(), String::new());
    child.stdout.take().expect("piped").read_to_end(&mut out).expect("read");
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("read");
    writer.join().expect("joined");
    assert!(child.wait().expect("waited").success());
    // The test harness writes around it.
    let at = out.windows(bytes.len()).position(|window| window == bytes).expect("every byte");
    let text = String::from_utf8_lossy(&out[at + bytes.len()..]).into_owned();
    assert!(text.starts_with("added own\n"), "{text}");
    assert_eq!(err, "to-stderr\n");
}

#[test]
fn what_cannot_run_has_a_shells_statuses() {
    if !alone("what_cannot_run_has_a_shells_statuses") {
        return;
    }
    let status = |path: &str| {
        let error = start(&[path], &[], false).and_then(Launch::release).expect_err(path);
        assert!(error.to_string().starts_with(path), "{error}");
        error.exit_status()
    };
    assert_eq!(status("no-such-command-anywhere"), 127);
    assert_eq!(status("./no/such/path"), 127);
    assert_eq!(status("/etc/passwd"), 126);
    assert_eq!(status("/etc"), 126);
}

#[test]
fn the_program_waits_before_exec_until_it_is_released() {
    if !alone("the_program_waits_before_exec_until_it_is_released") {
        return;
    }
    let launch = start(&["sleep", "1000"], &[], false).expect("forked");
    let path = format!("/proc/{}/exe", launch.pid().0);
    let executable = || fs::read_link(&path).expect("its program");
    let own = std::env::current_exe().expect("own path");
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(executable(), own, "still before exec");
    }
    let mut running = launch.release().expect("started");
    assert_ne!(executable(), own);
    kill("-KILL", running.pid().0);
    assert_eq!(wait(&mut running), Exit::Signal(9));
}

/// Launches a program and is killed before releasing it.
#[test]
#[ignore = "a helper of the_program_goes_on_without_its_launcher"]
fn dies_before_release() {
    let script = std::env::var(SCRIPT).expect("the script");
    let _launch = start(&["sh", "-c", &script], &[], false).expect("forked");
    println!("ready");
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn the_program_goes_on_without_its_launcher() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("proof");
    let script = format!("echo alive > {}", file.display());
    let (mut launcher, _lines) = started(helper("dies_before_release").env(SCRIPT, script));
    assert!(!file.exists());
    launcher.kill().expect("killed");
    launcher.wait().expect("waited");
    until("the program's own work", || fs::read_to_string(&file).is_ok_and(|text| text == "alive\n"));
}

#[test]
fn signals_are_passed_on_and_the_launcher_stays() {
    for (name, number) in [("INT", "2"), ("TERM", "15"), ("HUP", "1"), ("QUIT", "3")] {
        let script = format!(
            "trap 'n=$((n+1))' {name}; echo ready; until [ $n ]; do sleep 0.01; done; sleep 0.05; echo got $n; exit 40"
        );
        let (mut launcher, mut lines) = started(&mut launcher_of(&script));
        kill(&format!("-{number}"), launcher.id());
        line_with(&mut lines, "got 1");
        assert_eq!(launcher.wait().expect("waited").code(), Some(40), "{name}");
    }
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let script = "echo ready; sleep 0.3; echo survived";
    let mut command = Command::new("nohup");
    command.args(helper_words("launcher"));
    command.env(SCRIPT, script).stdin(Stdio::null()).stdout(Stdio::piped());
    let (mut launcher, mut lines) = started(&mut command);
    kill("-HUP", launcher.id());
    line_with(&mut lines, "survived");
    assert!(launcher.wait().expect("waited").success());
}

/// Counts signals: a shell would merge two that come together.
#[test]
#[ignore = "a helper of the test below"]
fn counter() {
    let mut signals = Signals::receive().expect("signals");
    println!("ready");
    let mut count = 0;
    until("a signal", || {
        count += usize::from(signals.take().is_some());
        count > 0
    });
    std::thread::sleep(Duration::from_millis(300));
    count += std::iter::from_fn(|| signals.take()).count();
    println!("got {count}");
    std::process::exit(41);
}

#[test]
fn a_terminals_interrupt_reaches_the_program_once() {
    if !Path::new("/usr/bin/script").exists() {
        println!("skipped: script(1) of bsdutils, which makes a terminal, is not installed");
        return;
    }
    let line = format!("exec env --default-signal {}", helper_words("launcher").join(" "));
    let own = std::env::current_exe().expect("own path");
    let program = format!("exec {} counter --exact --ignored --nocapture", own.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env(SCRIPT, program);
    let (mut terminal, mut lines) = started(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    terminal.stdin.as_mut().expect("piped").write_all(b"\x03").expect("written");
    line_with(&mut lines, "got 1");
    assert_eq!(terminal.wait().expect("waited").code(), Some(41));
}

#[test]
fn a_signal_before_exec_is_the_programs() {
    if !alone("a_signal_before_exec_is_the_programs") {
        return;
    }
    let launch = start(&["sleep", "1000"], &[], false).expect("forked");
    kill("-TERM", launch.pid().0);
    let mut running = launch.release().expect("it came to be");
    assert_eq!(wait(&mut running), Exit::Signal(15));
}

#[test]
fn orphans_are_adopted_and_reaped() {
    let mut launcher = launcher_of("(sleep 0.05 & ) ; (sleep 0.05 & ) ; sleep 0.5").spawn().expect("run");
    let mut lines = std::io::BufReader::new(launcher.stdout.take().expect("piped"));
    let line = line_with(&mut lines, "status");
    assert_eq!(line.trim(), "status 0 children ''");
    launcher.wait().expect("waited");
}

/// A launch that failed before exec let the program run on without an engine.
#[test]
fn a_launch_that_is_given_up_runs_nothing() {
    if !alone("a_launch_that_is_given_up_runs_nothing") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("proof");
    let script = format!("echo ran > {}", file.display());
    let launch = start(&["sh", "-c", &script], &[], false).expect("forked");
    let pid = launch.pid().0;
    drop(launch);
    let ended = || fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    until("the end of its process", ended);
    assert!(!file.exists(), "it ran");
}
