//! Command lines that are refused before anything boots.

use std::process::Command;

use super::support::{BINARY, lines};

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(BINARY).arg("lab").args(arguments).output().expect("the binary runs");
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_cannot_run_is_said_in_one_line_before_anything_boots() {
    let cases: [(&[&str], i32, &str); 14] = [
        (&["run", "--machine", "two-teir", "--", "true"], 2, "did you mean two-tier?"),
        (&["run", "--machine", "/no/such.toml", "--", "true"], 2, "/no/such.toml: No such file"),
        (&["run", "--policy", "freqteir", "--", "true"], 2, "did you mean freqtier?"),
        (&["run", "--kernel-tiering", "numa", "--", "true"], 2, "did you mean numab"),
        (&["run", "--set", "lru.nothing=1", "--policy", "lru", "--", "true"], 2, "nothing"),
        (&["run", "--set", "other.x=1", "--policy", "lru", "--", "true"], 2, "other"),
        (&["run", "--fast", "600M", "--", "true"], 2, "expected less than the fast node's 512M"),
        (&["run", "--fast", "1:0", "--", "true"], 2, "--fast 100%: expected"),
        (
            &["run", "--fast", "1:2:4", "--", "true"],
            2,
            "--fast: '1:2:4' has 3 parts, but machine two-tier has 2",
        ),
        (&["compare", "--policy", "freqteir", "--", "true"], 2, "did you mean freqtier?"),
        (&["compare", "--policies", "freqteir", "--", "true"], 2, "did you mean freqtier?"),
        (
            &["shell", "--uncounted", "--machine", "neoprof"],
            2,
            "expected a machine without a profiling device",
        ),
        (&["run", "--", "no-such-program"], 127, "no-such-program: command not found"),
        (&["run", "--", "/etc/passwd"], 126, "/etc/passwd: not an executable file"),
    ];
    for (arguments, code, expected) in cases {
        let (status, text) = refused(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(expected) && text.lines().count() == 1, "{arguments:?}: {text}");
    }
}

#[test]
fn without_kernel_and_qemu_the_way_to_get_them_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let output =
        Command::new(BINARY).args(["lab", "run", "--", "true"]).env("ISOTHERM_CACHE", folder.path()).output();
    let output = output.expect("the binary runs");
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("run `make lab-setup`"));
}

#[test]
fn machines_are_listed_and_explained() {
    assert!(
        lines(&["lab", "machines"]).iter().any(|line| line.contains("two-tier") && line.contains("512M"))
    );
    let json: serde_json::Value =
        serde_json::from_str(&lines(&["lab", "machines", "cxl", "--json"]).concat()).expect("JSON");
    assert_eq!(json["nodes"][1]["kind"], "cxl");
    assert!(lines(&["lab", "machines", "small"]).iter().any(|line| line.contains("124ns")));
}
