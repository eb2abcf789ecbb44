//! `isotherm top` through the control socket of a run, with and without a terminal.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, command, isotherm};

/// A program that sleeps under `isotherm run`; both end on drop.
struct Run(Child);

impl Run {
    fn start(control: &str) -> Self {
        let mut run =
            command(&["run", "--shadow", "--quiet", "--policy", "first-touch", "--control", control]);
        run.args(["--", "sleep", "600"]).stdout(Stdio::null());
        let run = Self(run.spawn().expect("the binary starts"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while isotherm(&["top", "--socket", control, "--once"]).code != Some(0) {
            assert!(Instant::now() < deadline, "the run listens");
            std::thread::sleep(Duration::from_millis(100));
        }
        run
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The run passes the signal on to its program.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Runs `isotherm top` in a terminal of util-linux' script(1) and returns its output: types the keys after a
/// moment, then sends the signal, if any.
fn in_a_terminal(folder: &Folder, control: &str, keys: &str, signal: Option<&str>) -> String {
    let number = folder.at("number");
    let top = format!("echo $$ > {number}; exec {} top --socket {control}", env!("CARGO_BIN_EXE_isotherm"));
    let line = format!("stty rows 12 cols 110; sh -c '{top}'; stty -a");
    let mut script = Command::new("script");
    script.args(["-q", "-c", &line, "/dev/null"]).env("TERM", "xterm");
    let mut script =
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script of util-linux");
    let mut input = script.stdin.take().expect("piped");
    std::thread::sleep(Duration::from_secs(3));
    for key in keys.split_inclusive(|_| true) {
        input.write_all(key.as_bytes()).expect("a terminal");
        std::thread::sleep(Duration::from_millis(300));
    }
    if let Some(signal) = signal {
        let number = std::fs::read_to_string(&number).expect("written first");
        assert!(Command::new("kill").args([signal, number.trim()]).status().expect("kill").success());
    }
    String::from_utf8_lossy(&script.wait_with_output().expect("it ends").stdout).into_owned()
}

#[test]
fn one_run_is_shown_changed_and_the_terminal_put_back() {
    let folder = Folder::new();
    let control = folder.at("control");
    let _run = Run::start(&control);
    let text = isotherm(&["top", "--socket", &control, "--once"]).ok();
    assert!(text.contains("1 programs in 1 groups") && text.contains("first-touch"), "{text}");
    assert!(text.contains("sleep"), "its program has a name: {text}");
    let status = isotherm(&["top", "--socket", &control, "--json"]).json();
    assert_eq!((&status["groups"][0]["name"], &status["shadow"]), (&"run".into(), &true.into()));

    // A limit, confirmed; then the program, its mappings, back and out.
    let shown = in_a_terminal(
        &folder,
        &control,
        "l\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}64K\ry\r\rq",
        None,
    );
    for part in
        ["\u{1b}[?1049h", "\u{1b}[?1049l", "Set the limit of run to 64K?", "logarithmic from", " echo "]
    {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
    let status = isotherm(&["top", "--socket", &control, "--json"]).json();
    assert_eq!(status["fast_bytes"], 64 << 10);
    for signal in ["-TERM", "-HUP", "-INT"] {
        let shown = in_a_terminal(&folder, &control, "", Some(signal));
        assert!(shown.contains("\u{1b}[?1049l") && shown.contains(" echo "), "{signal}: {shown:?}");
    }
}

#[test]
fn a_socket_that_nobody_listens_at_is_one_line() {
    let folder = Folder::new();
    let line = isotherm(&["top", "--socket", &folder.at("none")]).refused(1);
    assert!(line.contains("expected a running daemon"), "{line}");
}
