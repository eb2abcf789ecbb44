//! Each system call of the library fails in turn: the program finds no memory, or nothing at all.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use support::{both, compile, has, library, output, preloaded, succeed};

struct Failing {
    program: PathBuf,
    shim: PathBuf,
    folder: tempfile::TempDir,
}

impl Failing {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let shim = compile(folder.path(), "failing.c", &["-shared", "-fPIC"]);
        let there = folder.path().join("libfailing.so");
        std::fs::rename(shim, &there).expect("to rename");
        let program = compile(folder.path(), "faults.c", &[]);
        Self { program, shim: there, folder }
    }

    fn run(&self, call: u32, variables: &[(&str, &Path)]) -> Output {
        let mut command = preloaded(&self.program);
        command.env("LD_PRELOAD", format!("{}:{}", self.shim.display(), library().display()));
        command.env("FAIL_AT", call.to_string()).envs(variables.iter().copied());
        output(&mut command)
    }

    /// Lets each call fail until there is none of its number; returns the names of those that failed, each
    /// with what was reported.
    fn each(&self, step: u32, variables: &[(&str, &Path)]) -> Vec<(String, String)> {
        let mut failed = Vec::new();
        for call in (1..).step_by(step as usize) {
            let output = self.run(call, variables);
            let report = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "call {call}: {}\n{}", output.status, both(&output));
            assert_eq!(&*output.stdout, b"ok\n", "call {call}: {report}");
            let Some(name) = report.lines().find_map(|line| line.strip_prefix("failing: ")) else { break };
            failed.push((name.to_owned(), report.clone()));
        }
        failed
    }
}

/// A regression: jemalloc wrote to the page that it had not got.
#[test]
fn each_call_of_the_system_fails_once() {
    if !has("gcc") {
        return;
    }
    let failing = Failing::new();
    let mut failed = failing.each(1, &[]);
    // Unused pages return to the system at once, by hundreds of calls.
    failed.extend(failing.each(7, &[("_RJEM_MALLOC_CONF", Path::new("dirty_decay_ms:0"))]));
    for name in ["mmap", "munmap", "mprotect", "madvise", "getrandom"] {
        assert!(failed.iter().any(|(failed, _)| failed == name), "{name} of {failed:?}");
    }
}

#[test]
fn memory_runs_out_at_any_call_and_stays_out() {
    if !has("gcc") {
        return;
    }
    let failed = Failing::new().each(7, &[("FAIL_ON", Path::new("1"))]);
    assert!(failed.len() > 10, "{failed:?}");
}

#[test]
fn each_call_fails_once_in_a_profiled_program() {
    if !has("gcc") {
        return;
    }
    let failing = Failing::new();
    let profiles = failing.folder.path().join("profiles");
    std::fs::create_dir(&profiles).expect("a folder");
    let failed = failing.each(1, &[("ISOTHERM_ALLOC_PROFILE", &profiles)]);
    for name in ["open", "posix_fallocate"] {
        let (_, report) = failed.iter().find(|(failed, _)| failed == name).expect(name);
        assert!(report.contains("no profile is written"), "{report}");
    }
}

/// A regression: the child waited forever for a lock of jemalloc's that a thread of its parent held.
#[test]
fn a_child_of_a_fork_beside_a_failed_growth_allocates() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "fork_growing.c", &["-rdynamic"]);
    assert_eq!(succeed(&mut preloaded(program)), "ok\n");
}
