//! Every allocation, file operation and system call of the recorder fails once in turn: of `isotherm record`,
//! and of its plugin in QEMU. The traced program goes on, nothing hangs, and what is left can be read.
//!
//! Some of the calls by default; all of them with `RECORD_FAULTS=all`, which takes an hour. Of the plugin's
//! 56,000 allocations, several for each instruction that QEMU translates, it fails 2,000, spread.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, RunStats, data, isotherm};

/// Most failures of one function, spread over its calls, unless all are wanted.
const FEW: u64 = 4;
/// The same if all are wanted.
const MANY: u64 = 2000;
/// The same of all functions that allocate: each is a run of a quarter of a second.
const ALLOCATES: [&str; 4] = ["malloc", "calloc", "realloc", "posix_memalign"];
/// Calls of Rust's runtime before `main`, or for the stack of a thread's signal handler: it ends the process
/// if they fail. The function, and how many of its first calls.
const OF_THE_RUNTIME: [(&str, u64); 2] = [("mmap64", u64::MAX), ("poll", 1)];
/// A run takes less than a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// Prints one line after some thousand misses and a child's exit.
const SCRIPT: &str = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; /bin/echo a$i; echo done";
const OUTPUT: &str = "a300\ndone\n";
const ERRORS: [i32; 3] = [libc::EIO, libc::ENOSPC, libc::ENOMEM];

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Recorder,
    Plugin,
}

struct Fault<'a> {
    side: Side,
    call: &'a str,
    number: u64,
    lasts: bool,
    error: i32,
}

struct Bench {
    folder: Folder,
    shim: String,
    runs: usize,
}

impl Bench {
    fn new() -> Self {
        let folder = Folder::new();
        let shim = folder.at("fault.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o", &shim]).arg(data("fault.c"));
        assert!(compiler.status().expect("cc is missing: run `make setup`").success());
        // The recorder passes on LD_PRELOAD to the traced program, not to QEMU.
        let search = r#"for at in $(echo "$PATH" | tr : ' '); do
            [ "$at/qemu-x86_64" -ef "$0" ] || [ ! -x "$at/qemu-x86_64" ] || LD_PRELOAD=$FAULT_SHIM exec "$at/qemu-x86_64" "$@"
        done"#;
        std::fs::create_dir(folder.at("bin")).expect("a folder");
        let qemu = folder.file("bin/qemu-x86_64", format!("#!/bin/sh\n{search}\n"));
        std::fs::set_permissions(qemu, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        Self { folder, shim, runs: 0 }
    }

    /// Records the script with a fault, and returns the trace's name in the folder.
    fn record(&mut self, fault: &Fault<'_>) -> (RunStats, String) {
        self.runs += 1;
        let name = format!("{}.trace", self.runs);
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let _ = std::fs::remove_file(self.folder.at("counts"));
        let (program, object, preload) = match fault.side {
            Side::Recorder => ("isotherm", "", "LD_PRELOAD"),
            Side::Plugin => ("qemu-x86_64", "libisotherm_recorder_plugin", "FAULT_SHIM"),
        };
        if fault.side == Side::Plugin {
            let path = std::env::var("PATH").expect("a path");
            command.env("PATH", format!("{}:{path}", self.folder.at("bin")));
        }
        command
            .args(["record", "--quiet", "--cache", "16K", "--ways", "4", "--output", &self.folder.at(&name)])
            .args(["--", "/bin/sh", "-c", SCRIPT])
            .envs([("FAULT_PROGRAM", program), ("FAULT_OBJECT", object), ("FAULT_CALL", fault.call)])
            .env("FAULT_COUNTS", self.folder.at("counts"))
            .env("FAULT_NUMBER", fault.number.to_string())
            .env("FAULT_LASTS", u8::from(fault.lasts).to_string())
            .env("FAULT_ERROR", fault.error.to_string())
            .env(preload, &self.shim)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().expect("the binary starts");
        // The streams are the program's, too: they end when both have ended.
        let reader = |stream: Box<dyn std::io::Read + Send>| {
            std::thread::spawn(move || std::io::read_to_string(stream).expect("text"))
        };
        let out = reader(Box::new(child.stdout.take().expect("piped")));
        let err = reader(Box::new(child.stderr.take().expect("piped")));
        while !(out.is_finished() && err.is_finished()) {
            assert!(started.elapsed() < PATIENCE, "{fault:?} hangs");
            std::thread::sleep(Duration::from_millis(2));
        }
        let code = child.wait().expect("it ends").code();
        (RunStats { code, out: out.join().expect("read"), err: err.join().expect("read") }, name)
    }

    /// Returns how often each function is called.
    fn counts(&mut self, side: Side) -> BTreeMap<String, u64> {
        let (ran, name) = self.record(&Fault { side, call: "", number: 0, lasts: false, error: 0 });
        assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(0), OUTPUT, ""));
        self.check_folder(&name, "without a fault");
        let source = std::fs::read_to_string(data("fault.c")).expect("the shim's source");
        let names = source.split(" X(").skip(1).filter_map(|rest| rest.split_once(',')).map(|(name, _)| name);
        let counts = std::fs::read(self.folder.path().join("counts")).expect("counts");
        let (counts, _) = counts.as_chunks::<8>();
        let names: Vec<&str> = names.collect();
        assert_eq!(names.len(), counts.len());
        let all = names.iter().zip(counts);
        let all = all.map(|(name, &count)| ((*name).to_owned(), u64::from_le_bytes(count)));
        all.filter(|&(_, count)| count > 0).collect()
    }

    /// Checks that finished parts can be read and nothing else is left.
    fn check_folder(&self, name: &str, what: &str) {
        let Ok(entries) = std::fs::read_dir(self.folder.at(name)) else { return };
        let names: Vec<String> =
            entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect();
        assert!(names.iter().any(|name| name.starts_with("part-")), "{what}: no part is left: {names:?}");
        let known = |name: &String| name.starts_with("part-") || name == "_mappings.jsonl";
        assert!(names.iter().all(known), "{what}: {names:?}");
        assert!(isotherm(&["trace", "info", &self.folder.at(name)]).code == Some(0), "{what}: unreadable");
    }

    /// Lets a call fail and judges what comes of it.
    fn try_fault(&mut self, fault: &Fault<'_>) {
        let (ran, name) = self.record(fault);
        let what = format!("{fault:?}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "{what}");
        // Refused memory ends the process: the recorder's, whose pool and unfinished part stay behind as at
        // any kill, or QEMU's, hence the emulated program's.
        match fault.side {
            Side::Recorder if ran.err.starts_with("isotherm: out of memory") => {
                assert!(ran.code == Some(2) && ran.err.lines().count() == 1, "{what}");
                assert!(ran.out == OUTPUT || ran.out.is_empty(), "{what}");
                return;
            }
            // Rust's runtime allocates a new thread's handle past the allocator, before the program starts.
            Side::Recorder if ran.err.starts_with("memory allocation of ") => {
                assert!(ran.code.is_none() && ran.out.is_empty(), "{what}");
                return;
            }
            // A child that has closed its standard error says nothing, and its shell what ended it.
            Side::Plugin
                if ran.err.starts_with("memory allocation of ") || ran.err == "Segmentation fault\n" =>
            {
                return self.check_folder(&name, &what);
            }
            _ => {}
        }
        // The program runs to its end, unless it was never started.
        assert!(ran.out == OUTPUT || (fault.side == Side::Recorder && ran.out.is_empty()), "{what}");
        if ran.code == Some(0) {
            assert!(ran.err.is_empty() && ran.out == OUTPUT, "{what}");
            self.check_folder(&name, &what);
        } else {
            let one = ran.err.starts_with("isotherm: ") && ran.err.lines().count() == 1;
            assert!(one && ran.code.is_some(), "{what}");
            self.check_folder(&name, &what);
        }
        let _ = std::fs::remove_dir_all(self.folder.at(&name));
    }
}

impl std::fmt::Debug for Fault<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = if self.side == Side::Recorder { "recorder" } else { "plugin" };
        let on = if self.lasts { " and all later ones" } else { "" };
        write!(formatter, "{side}: {} number {}{on}, error {}", self.call, self.number, self.error)
    }
}

/// Fails the calls of one side, each once.
fn try_all(side: Side) {
    let all = std::env::var_os("RECORD_FAULTS").is_some_and(|wanted| wanted == "all");
    let mut bench = Bench::new();
    let counts = bench.counts(side);
    eprintln!("{counts:?}");
    for (index, (call, &count)) in counts.iter().enumerate() {
        let of_the_runtime =
            OF_THE_RUNTIME.iter().find(|&&(name, _)| side == Side::Recorder && name == *call);
        let first = of_the_runtime.map_or(1, |&(_, calls)| calls.saturating_add(1));
        let step = count.div_ceil(if all { MANY } else { FEW });
        for number in (first..=count).step_by(usize::try_from(step).expect("a step")) {
            let error =
                if ALLOCATES.contains(&&**call) { libc::ENOMEM } else { ERRORS[index % ERRORS.len()] };
            bench.try_fault(&Fault { side, call, number, lasts: false, error });
        }
    }
    eprintln!("{} runs", bench.runs);
}

#[test]
fn whatever_fails_in_the_recorder_is_one_line_and_the_program_goes_on() {
    try_all(Side::Recorder);
}

#[test]
fn whatever_fails_in_the_recorders_plugin_the_program_goes_on() {
    try_all(Side::Plugin);
}

#[test]
fn a_pool_that_cannot_grow_ends_the_recording_not_the_program() {
    let mut bench = Bench::new();
    let fault = Fault { side: Side::Plugin, call: "fallocate", number: 1, lasts: true, error: libc::ENOSPC };
    let (ran, name) = bench.record(&fault);
    assert_eq!((ran.code, &*ran.out), (Some(1), OUTPUT), "{}", ran.err);
    assert_eq!(
        ran.err,
        "isotherm: cannot extend the recorder's pool: No space left on device (os error 28)\n"
    );
    assert!(!bench.folder.path().join(name).exists(), "nothing was recorded");
}
