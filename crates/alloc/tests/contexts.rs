//! Contexts are distinguished, are the same in every run, and do not depend on frame pointers.

mod support;

use std::collections::HashSet;

use support::{compile, has, preloaded, succeed};

/// Runs the program of known contexts. Returns its lines.
fn regions(options: &[&str], depth: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "contexts.c", options);
    let run = || succeed(preloaded(&program).env("ISOTHERM_ALLOC_DEPTH", depth));
    let first = run();
    assert_eq!(run(), first, "another run, at other addresses");
    first.lines().map(str::to_owned).collect()
}

fn region<'a>(lines: &'a [String], name: &str) -> &'a str {
    let line = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {lines:?}"))
}

#[test]
fn callers_are_told_apart_with_and_without_frame_pointers() {
    if !has("gcc") {
        return;
    }
    for frame_pointers in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
        for tables in ["-fasynchronous-unwind-tables", "-fno-asynchronous-unwind-tables"] {
            if (frame_pointers, tables) == ("-fomit-frame-pointer", "-fno-asynchronous-unwind-tables") {
                // Nothing gives the frames' places.
                continue;
            }
            let lines = regions(&[frame_pointers, tables], "10");
            let chains: HashSet<_> = (0..8).map(|chain| region(&lines, &format!("chain{chain}"))).collect();
            assert!(chains.len() >= 4, "8 contexts in few regions: {lines:?}");
            assert_eq!(region(&lines, "handled"), "1000");
        }
    }
}

/// A regression: the memory of a large frame led beyond the stack's end where the same function had a small
/// one.
#[test]
fn a_frame_of_variable_size_is_not_looked_for_beyond_the_stack() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "alloca.c", &["-pthread"]);
    assert_eq!(succeed(&mut preloaded(&program)), "ok\n");
}

#[test]
fn only_the_depth_asked_for_counts() {
    if !has("gcc") {
        return;
    }
    let lines = regions(&[], "1");
    let all: HashSet<_> =
        lines.iter().filter(|line| !line.starts_with("handled")).map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(all.len(), 1, "one innermost call: {lines:?}");
    // At a depth of ten, deeper recursion looks the same.
    let lines = regions(&[], "10");
    assert_ne!(region(&lines, "recursion"), region(&lines, "chain0"), "{lines:?}");
}
