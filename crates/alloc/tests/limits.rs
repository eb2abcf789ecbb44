//! Limits of the process and of the disk end no program under the library that they would not end without it.

mod support;

use std::process::Command;

use support::{both, compile, has, library, succeed};

/// A regression: regions took most of the addresses, and later calls found none though all was freed.
#[test]
fn under_a_limit_on_addresses_as_much_can_be_used_as_without_the_library() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "limit.c", &["-O0"]);
    for size in ["1048576", "65536"] {
        let run = |preload: bool| {
            let preload = if preload { library() } else { "".into() };
            let mut command = Command::new("sh");
            command.args(["-c", "ulimit -v 3072000; LD_PRELOAD=$0 exec \"$1\" \"$2\""]);
            let told = succeed(command.arg(preload).arg(&program).arg(size));
            let (used, again) = told.trim().split_once(' ').expect("MiB and a word");
            assert_eq!(again, "again", "10 MiB after all was freed");
            used.parse::<f64>().expect("MiB")
        };
        let (alone, under) = (run(false), run(true));
        assert!(under >= 0.9 * alone, "blocks of {size}: {under} MiB of {alone}");
    }
}

/// A regression: the C library's allocator, which serves the program then, was not told the alignment.
#[test]
fn under_a_limit_on_addresses_every_function_serves() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "faults.c", &[]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 3072000; LD_PRELOAD=$0 exec \"$1\""]).arg(library()).arg(program);
    assert_eq!(succeed(&mut command), "ok\n");
}

/// A regression: the file was not allocated, so a full disk ended the program by SIGBUS.
#[test]
fn a_full_disk_ends_the_profile_not_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = |then: &str| {
        let mut command = Command::new("unshare");
        let mounted = format!("mount -t tmpfs -o size=64k none \"$0\" && {then}");
        command.args(["-rm", "sh", "-c", &mounted]).arg(folder.path()).arg(library());
        command.output()
    };
    if !mount("true").is_ok_and(|output| output.status.success()) {
        println!("skipped: this user cannot mount a small file system");
        return;
    }
    let run = "LD_PRELOAD=$1 ISOTHERM_ALLOC_PROFILE=$0 sh -c 'echo runs | cat'; echo $?; ls -A \"$0\"";
    let output = mount(run).expect("sh");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "runs\n0\n", "{}", both(&output));
    let report = String::from_utf8_lossy(&output.stderr);
    let expected = |line: &str| line.contains("expected a folder with room") && line.contains("no profile");
    assert!(!report.is_empty() && report.lines().all(expected), "{report}");
}

#[test]
fn a_limit_on_files_ends_the_profile_not_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 100; LD_PRELOAD=$1 ISOTHERM_ALLOC_PROFILE=$0 exec echo runs"]);
    let output = command.arg(folder.path()).arg(library()).output().expect("sh");
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"runs\n"[..]), "{}", both(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no profile is written"), "{}", both(&output));
}
