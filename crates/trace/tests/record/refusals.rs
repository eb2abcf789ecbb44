//! What cannot be recorded is refused in one clear line, with the shell's exit codes, and leaves nothing
//! behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use isotherm_trace::record::RecordOptions;

use crate::Bench;

/// The exit code and the message of recording `command`.
fn refusal(bench: &Bench, command: &[&str]) -> (i32, String) {
    let error = Bench::try_record(&bench.options("trace", command)).expect_err("it must be refused");
    assert!(!bench.path("trace").exists(), "a trace was left behind");
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    (error.exit_code(), message)
}

fn executable(bench: &Bench, name: &str, content: &[u8]) -> String {
    let path = bench.path(name);
    fs::write(&path, content).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path.display().to_string()
}

#[test]
fn commands_that_cannot_run_get_the_shells_exit_codes() {
    let bench = Bench::new();
    assert_eq!(refusal(&bench, &[]).0, 2);
    assert_eq!(refusal(&bench, &["no-such-command"]).0, 127);
    assert_eq!(refusal(&bench, &["/etc/passwd"]).0, 126);
    let elf = |class, machine| [b"\x7fELF", &[class, 1, 1][..], &[0; 9], &[2, 0, machine, 0]].concat();
    for (name, content, expected) in [
        ("i386", elf(1, 3), "a 32-bit x86 program"),
        ("arm", elf(1, 40), "a 32-bit Arm program"),
        ("arm64", elf(2, 183), "a 64-bit Arm program"),
        ("text", b"hello".to_vec(), "neither an ELF program"),
        ("lost", b"#!/no/such/interpreter\n".to_vec(), "interpreter"),
    ] {
        let (code, message) = refusal(&bench, &[&executable(&bench, name, &content)]);
        assert_eq!(code, 126, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_trace_that_exists_and_a_plugin_that_does_not_are_refused() {
    let bench = Bench::new();
    let missing = RecordOptions { plugin: Some("/no/such.so".into()), ..bench.options("trace", &["true"]) };
    assert!(
        Bench::try_record(&missing).expect_err("no plugin").to_string().contains("ISOTHERM_RECORDER_PLUGIN")
    );
    fs::create_dir(bench.path("trace")).expect("a directory");
    let error = Bench::try_record(&bench.options("trace", &["true"])).expect_err("it exists");
    assert_eq!(error.exit_code(), 2, "{error}");
}
