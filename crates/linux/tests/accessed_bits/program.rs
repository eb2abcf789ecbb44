//! Runs `target` for tests.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isotherm_linux::process::Pid;

/// Running `target`, killed when dropped.
pub(crate) struct Program {
    child: Child,
    report: tempfile::TempDir,
}

/// Contents of a report of `target planted`.
pub(crate) struct Planted {
    pub(crate) range: Range<u64>,
    /// Addresses of the hot pages.
    pub(crate) hot: Range<u64>,
}

impl Program {
    pub(crate) fn start(arguments: &str) -> Self {
        let report = tempfile::tempdir().unwrap();
        let mut command = Command::new(target());
        command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if arguments.starts_with("planted") {
            command.arg("--report").arg(report.path().join("report"));
        }
        Self { child: command.spawn().unwrap(), report }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Returns the planted pages (contiguous) once the program has filled its memory.
    pub(crate) fn planted(&self) -> Planted {
        let report = self.report.path().join("report");
        until("the report", || report.exists());
        let text = fs::read_to_string(report).unwrap();
        let words = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().collect::<Vec<_>>()
        };
        let range = words("range");
        let [start, end] = [0, 1].map(|at| u64::from_str_radix(range[at], 16).unwrap());
        let hot: Vec<u64> = words("hot 0").iter().map(|word| word.parse().unwrap()).collect();
        let hot = start + hot[0] * 4096..start + (hot[hot.len() - 1] + 1) * 4096;
        Planted { range: start..end, hot }
    }

    /// Waits until the program has run for `time`, in which it certainly touches its hot pages.
    pub(crate) fn run_for(&self, time: Duration) {
        let start = self.cpu();
        until("the program to run", || self.cpu() >= start + time);
    }

    /// Returns the processor time of all running threads.
    fn cpu(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let times = threads.map(|thread| {
            let text = fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        });
        Duration::from_nanos(times.sum::<u64>())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Returns its exit code once it has ended.
    pub(crate) fn ended(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().unwrap().map(|status| status.code())
    }

    /// Returns the standard output of a program that must succeed.
    pub(crate) fn output(mut self) -> String {
        until("the program to end", || self.ended().is_some());
        let mut text = [String::new(), String::new()];
        std::io::Read::read_to_string(self.child.stdout.as_mut().unwrap(), &mut text[0]).unwrap();
        std::io::Read::read_to_string(self.child.stderr.as_mut().unwrap(), &mut text[1]).unwrap();
        assert_eq!(self.ended(), Some(Some(0)), "{}", text[1]);
        std::mem::take(&mut text[0])
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something certain; panics after two minutes.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the program's path; Cargo builds examples beside the tests' directory.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/target");
    assert!(path.exists(), "cargo build -p isotherm-linux --example target");
    path
}

/// Returns the bytes of `ranges` within `range`.
pub(crate) fn bytes_within(ranges: &[Range<u64>], range: &Range<u64>) -> u64 {
    ranges.iter().map(|one| one.end.min(range.end).saturating_sub(one.start.max(range.start))).sum()
}
