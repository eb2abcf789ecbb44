//! Support for tests of processes: tests in a process of their own, helpers, and waiting.
#![allow(dead_code)] // No test file uses all of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns true in a process of its own, without other children. Otherwise runs the test of this name in one,
/// and returns false.
pub(crate) fn alone(name: &str) -> bool {
    if std::env::var_os("ISOTHERM_TEST_ALONE").is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().expect("own path"))
        .args([name, "--exact", "--nocapture"])
        .env("ISOTHERM_TEST_ALONE", "1")
        .output()
        .expect("the test's own process");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}", text[0], text[1]);
    text[0].lines().filter(|line| line.contains("skipped:")).for_each(|line| println!("{line}"));
    false
}

/// Returns a command that runs the ignored test of this name; its streams but the errors are piped.
///
/// It ignores no signal, though this test may run under nohup or in a shell's background.
pub(crate) fn helper(name: &str) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").args(helper_words(name));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Returns the words of the command that [`helper`] runs.
pub(crate) fn helper_words(name: &str) -> Vec<String> {
    let own = std::env::current_exe().expect("own path").to_string_lossy().into_owned();
    let words = [&own, name, "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    words.map(str::to_owned).to_vec()
}

/// Reads the program's lines up to one that contains `word`.
pub(crate) fn line_with(lines: &mut BufReader<ChildStdout>, word: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).expect("its output") > 0, "it ended before it said '{word}'");
        if line.contains(word) {
            return line;
        }
    }
}

/// Starts a helper and waits until it is ready.
pub(crate) fn started(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.spawn().expect("a helper");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    line_with(&mut lines, "ready");
    (child, lines)
}

/// Sends a signal as a shell does.
pub(crate) fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill(1)");
    assert!(status.success());
}

/// Tries until `done`; fails after a minute.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
