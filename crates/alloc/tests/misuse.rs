//! A program that frees what is not a live block ends by an abort and one line, as with the C library.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use support::{both, compile, has, preloaded};

fn run(ways: &[(&str, &[&str])], check: impl Fn(&Output, &str)) {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The compiler would warn of, and leave out, what this program is for.
    let program = compile(folder.path(), "misuse.c", &["-O0", "-w", "-fno-builtin"]);
    for &(way, sizes) in ways {
        for size in sizes {
            let output = preloaded(&program).args([way, size]).output().expect("the program starts");
            check(&output, &format!("{way} {size}"));
        }
    }
}

fn aborts(output: &Output, what: &str, way: &str) {
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{way}: {}", both(output));
    assert!(report.starts_with("isotherm-alloc: free or realloc of 0x"), "{way}: {report}");
    assert!(report.contains(what) && report.matches('\n').count() == 1, "{way}: {report}");
}

/// Sizes of the smallest and largest classes, of classes whose runs have several pages, and beyond.
const SMALL: &[&str] = &["1", "8", "16", "48", "64", "80", "224", "1000", "3000", "4096"];
const LARGE: &[&str] = &["5000", "14000", "20000", "100000", "3000000"];

#[test]
fn a_double_free_ends_the_program() {
    let ways = ["twice", "after-others", "in-another-thread", "after-another-thread", "realloc"];
    run(&ways.map(|way| [(way, SMALL), (way, LARGE)]).concat(), |output, way| {
        aborts(output, "the block is free already", way);
    });
    // The block is back in its arena, or its page even back in the system.
    run(&[("after-many", SMALL)], |output, way| aborts(output, "", way));
}

#[test]
fn an_address_inside_of_a_block_ends_the_program() {
    let ways: &[(&str, &[&str])] = &[
        ("inside", &["48", "64", "80", "224", "1000", "3000", "4096"]),
        ("inside", LARGE),
        ("inside-of-many", &["48", "64", "80", "224", "1000", "3000", "4096"]),
        ("next-page", LARGE),
        ("misaligned", SMALL),
        ("misaligned", LARGE),
        ("before-one-of-many", &["64", "224"]),
        ("realloc-inside", &["64", "224", "3000"]),
        ("realloc-inside", LARGE),
    ];
    run(ways, |output, way| aborts(output, "no block starts there", way));
}

#[test]
fn a_program_without_such_calls_lives_on() {
    run(&[("", SMALL), ("", LARGE)], |output, way| assert_eq!(both(output), "lives on\n", "{way}"));
}

/// A profiled program takes other paths.
#[test]
fn a_profiled_program_is_ended_too() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "misuse.c", &["-O0", "-w", "-fno-builtin"]);
    for (way, what) in [("twice", "is free already"), ("inside", "no block starts there")] {
        for size in ["64", "224", "100000"] {
            let mut command = preloaded(&program);
            let output = command.args([way, size]).env("ISOTHERM_ALLOC_PROFILE", folder.path()).output();
            aborts(&output.expect("the program starts"), what, way);
        }
    }
}
