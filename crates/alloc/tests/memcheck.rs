//! Programs under the library and valgrind's memcheck, which leaves `malloc` to the library;
//! `docs/reference/alloc.md` says what it sees.

mod support;

use std::process::Command;

use support::{compile, example, has, library, succeed};

/// Returns a command under both, with a status of 9 after an error.
fn checked(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["-q", "--error-exitcode=9", "--soname-synonyms=somalloc=nouserintercepts"])
        .arg(program.as_ref());
    command.env("LD_PRELOAD", library());
    command
}

#[test]
fn the_walk_up_the_stack_reads_only_what_was_written() {
    if !has("valgrind") || !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = succeed(&mut checked(compile(folder.path(), "contexts.c", &[])));
    assert!(output.ends_with("handled 1000\n"), "{output}");
}

#[test]
fn random_calls_have_no_error() {
    if !has("valgrind") {
        return;
    }
    let output = succeed(checked(example("alloc-stress")).args(["500", "8", "100"]));
    assert!(output.starts_with("ok 4000 calls"), "{output}");
}
