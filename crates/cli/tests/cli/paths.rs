//! The guide's paths of ten minutes: every command in them runs, in order, as a reader would type it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Folder, hint_faults_work};

/// Returns the commands of a page: its blocks that are marked as of a shell.
fn commands(page: &str) -> String {
    let mut commands = String::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line == "```sh") {
        lines.by_ref().take_while(|line| *line != "```").for_each(|line| commands += &format!("{line}\n"));
    }
    commands
}

/// Runs a page's commands in `folder`; they find the binary under its name. Returns the words that
/// they print, without line breaks.
fn follow(name: &str, folder: &Folder) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/paths").join(name);
    let commands = commands(&std::fs::read_to_string(&page).expect(name));
    assert!(commands.lines().count() >= 5, "{name} has commands");
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let path = format!("{}:{}", binary.parent().expect("a folder").display(), env!("PATH"));
    let ran = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands])
        .env("PATH", path)
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    let [out, err] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ran.status.success(), "{name}: {}\n{out}\n{err}", ran.status);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether the file in `folder` has what a browser shows.
fn is_page(folder: &Folder, name: &str) -> bool {
    std::fs::read_to_string(folder.at(name)).is_ok_and(|page| page.starts_with("<!DOCTYPE html>"))
}

#[test]
fn a_server_is_sized_as_the_guide_says() {
    let folder = Folder::new();
    let out = follow("size-a-server.md", &folder);
    assert!(out.contains("within 5.0 % of all-DRAM speed"), "the answer: {out}");
    assert!(out.contains("first-touch") && out.contains("memtis"), "the ranking: {out}");
    assert!(out.contains("[heap]") || out.contains("anonymous"), "whose memory: {out}");
    assert!(is_page(&folder, "shop.html"));
}

#[test]
fn a_server_is_tiered_as_the_guide_says() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let out = follow("run-on-a-server.md", &folder);
    assert!(out.contains("redis-server"), "ps lists it: {out}");
    let tiered: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.at("tiered.json")).expect("a summary")).expect("JSON");
    assert_eq!(tiered["exit_status"], 0);
    assert!(is_page(&folder, "compare.html"));
}

#[test]
fn a_policy_is_written_as_the_guide_says() {
    let folder = Folder::new();
    let out = follow("write-a-policy.md", &folder);
    assert!(out.contains("hybridtier") && out.contains("mine"), "both are ranked: {out}");
    assert!(["published.html", "change.html"].iter().all(|page| is_page(&folder, page)));
}
