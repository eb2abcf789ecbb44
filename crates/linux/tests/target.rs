//! The planted program, on which the tests of live runs rely, repeats itself and finds memory that is wrong.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Cargo builds examples beside the tests' directory.
fn program() -> Command {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/target");
    assert!(path.exists(), "cargo build -p isotherm-linux --example target");
    Command::new(path)
}

fn run(arguments: &str) -> Output {
    program().args(arguments.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_number_of_operations_makes_output_repeatable() {
    for arguments in [
        "planted --size 2M --operations 200001",
        "planted --size 2M --operations 200001 --threads 3 --move-after 100000 --seed 7",
        "planted --size 2M --operations 100000 --layout contiguous --own-mapping --move-after 50000 --hot 60%",
        "btree --size 3M --operations 50000 --move-after 20000",
        "threads --threads 20 --size 16K --operations 1000 --waves 2",
        "fork-storm --children 20 --size 64K",
        "exec-chain --times 3 --size 64K",
        "unmap-storm --operations 3000 --size 1M",
        "syscalls --operations 10 --size 128K",
        "idle --size 64K --seconds 0",
    ] {
        let outputs = [run(arguments), run(arguments)];
        assert_eq!(outputs[0].status.code(), Some(0), "{arguments}: {}", text(&outputs[0].stderr));
        assert!(!outputs[0].stdout.is_empty() && outputs[0].stderr.is_empty());
        assert_eq!(outputs[0].stdout, outputs[1].stdout, "{arguments}");
    }
}

#[test]
fn the_seed_and_the_skew_change_the_checksum() {
    let plain = run("planted --size 1M --operations 10000");
    for other in ["--seed 2", "--share 50%", "--hot 20%", "--layout contiguous"] {
        let changed = run(&format!("planted --size 1M --operations 10000 {other}"));
        assert_ne!(plain.stdout, changed.stdout, "{other}");
    }
}

#[test]
fn wrong_calls_exit_with_2() {
    for arguments in
        ["", "unknown", "idle --unknown 1", "planted --size", "planted --hot 101%", "planted --own-mapping"]
    {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output.stderr).contains("usage: target MODE"));
    }
}

/// A running `planted`, and its report's path.
struct Planted {
    child: Child,
    report: PathBuf,
    _directory: tempfile::TempDir,
}

impl Planted {
    fn start(arguments: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report");
        let child = program()
            .args(["planted", "--size", "1M", "--report"])
            .arg(&report)
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !report.exists() {
            assert!(start.elapsed() < Duration::from_secs(120), "no report");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, report, _directory: directory }
    }

    /// Changes one byte of its memory as a debugger would: page 3's word 5.
    fn corrupt(&self, byte: u64) {
        let text = fs::read_to_string(&self.report).unwrap();
        let start = u64::from_str_radix(text.split(' ').nth(1).unwrap(), 16).unwrap();
        let memory = fs::File::options().write(true).open(format!("/proc/{}/mem", self.child.id())).unwrap();
        memory.write_all_at(&[0xa5, 0x5a], start + 3 * 4096 + 5 * 8 + byte).unwrap();
    }

    fn fails_with(self, what: &str) {
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(what), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_word_that_is_changed_is_found_when_it_is_accessed() {
    let planted = Planted::start("--seconds 100");
    planted.corrupt(4);
    planted.fails_with("page 3 word 5");
}

#[test]
fn a_write_that_is_lost_is_found_at_the_end() {
    // The counter of writes, in the lower two bytes, of a page that is not accessed.
    let planted = Planted::start("--seconds 1 --share 100% --hot 1% --layout contiguous");
    planted.corrupt(0);
    planted.fails_with("writes made");
}

#[test]
fn the_report_has_the_hot_pages_of_each_phase() {
    let planted = Planted::start("--seconds 1 --move-after 0 --hot 10%");
    let report = planted.report.clone();
    assert!(planted.child.wait_with_output().unwrap().status.success());
    let text = fs::read_to_string(report).unwrap();
    let hot = |phase: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(phase)).unwrap();
        line.split_whitespace().map(|page| page.parse().unwrap()).collect::<Vec<u32>>()
    };
    let (first, second) = (hot("hot 0"), hot("hot 1"));
    assert_eq!((first.len(), second.len()), (26, 26), "a tenth of 256");
    assert!(first.iter().chain(&second).all(|page| *page < 256));
    assert!(first.iter().all(|page| !second.contains(page)), "other pages are hot then");
    for word in ["ready ", "moved ", "ended "] {
        assert_eq!(text.lines().filter(|line| line.starts_with(word)).count(), 1, "{word}");
    }
}
