//! `isotherm alloc-profile` names the contexts of a real program.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Three functions: one keeps much, one keeps little, one frees everything.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) void keeps_much(void) { for (int i = 0; i < 20000; i++) { void *b = malloc(1000); memset(b, 1, 1000); kept = b; } }
__attribute__((noinline)) void keeps_little(void) { for (int i = 0; i < 20; i++) { kept = malloc(1000); } }
__attribute__((noinline)) void keeps_nothing(void) { for (int i = 0; i < 200000; i++) { void *volatile b = malloc(1000); free(b); } }
int main(void) { keeps_much(); keeps_little(); keeps_nothing(); pid_t child = fork(); if (!child) { keeps_much(); exit(0); } waitpid(child, 0, 0); return 7; }
"#;

fn compile(folder: &Path) -> std::path::PathBuf {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, PROGRAM).expect("a file");
    let status =
        Command::new("gcc").args(["-O1", "-g", "-rdynamic"]).arg(&source).arg("-o").arg(&program).status();
    assert!(status.expect("gcc").success());
    program
}

#[test]
fn contexts_are_named_and_live_bytes_estimated() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: gcc is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path());
    let output = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["alloc-profile", "--json", "--top", "50", "--sample", "16K", "--"])
        .arg(&program)
        .output()
        .expect("isotherm");
    assert_eq!(output.status.code(), Some(7), "the program's: {}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let processes = result["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 2, "the program and its child");
    let sum = |process: &serde_json::Value, function: &str, what: &str| -> u64 {
        let contexts = process["contexts"].as_array().expect("contexts").iter();
        let named = contexts
            .filter(|context| context["frames"][0].as_str().is_some_and(|name| name.starts_with(function)));
        named.map(|context| context[what].as_u64().expect("a number")).sum()
    };
    let parent = &processes[0];
    assert_eq!(sum(parent, "keeps_much", "blocks"), 20_000);
    assert_eq!(sum(parent, "keeps_little", "bytes"), 20_000);
    assert_eq!(sum(parent, "keeps_nothing", "blocks"), 200_000);
    let live = sum(parent, "keeps_much", "live_bytes");
    assert!((14_000_000..26_000_000).contains(&live), "20,000,000 live: {live}");
    assert!(sum(parent, "keeps_nothing", "live_bytes") < 100_000, "nothing live");
    assert_eq!(sum(&processes[1], "keeps_much", "blocks"), 40_000, "the child goes on from its parent");
}

#[test]
fn what_cannot_be_profiled_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["alloc-profile", "--", "/no/such/program"])
        .output();
    let output = output.expect("isotherm");
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/program"), "{output:?}");
}

/// A regression: a signal ended the tool, and the program ran on without anyone who waited for it.
#[test]
fn signals_reach_the_program_and_its_status_is_reported() {
    const PROGRAM: &str = "trap 'exit 42' INT TERM HUP; echo ready; while :; do sleep 0.05; done";
    for signal in ["INT", "TERM", "HUP"] {
        let temporary = tempfile::tempdir().expect("a folder");
        let mut tool = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .args(["alloc-profile", "--", "sh", "-c", PROGRAM])
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("isotherm");
        let mut output = BufReader::new(tool.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("to read");
        assert_eq!(line, "ready\n");
        let sent = Command::new("kill").args(["-s", signal, &tool.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        let mut profile = String::new();
        output.read_to_string(&mut profile).expect("to read");
        assert_eq!(tool.wait().expect("its end").code(), Some(42), "{signal}: {profile}");
        assert!(profile.contains("process "), "{signal}: {profile}");
        assert_eq!(std::fs::read_dir(temporary.path()).expect("a folder").count(), 0, "{signal}");
    }
}

/// A regression: on a full disk the program died of SIGBUS.
#[test]
fn without_room_for_the_profile_the_program_runs_and_its_status_counts() {
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$0\" alloc-profile -- sh -c 'echo runs; exit 3'"])
        .arg(env!("CARGO_BIN_EXE_isotherm"))
        .output()
        .expect("isotherm");
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"runs\n"[..]), "{report}");
    assert!(report.contains("no profile was written"), "{report}");
}
