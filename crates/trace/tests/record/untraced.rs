//! Programs that QEMU cannot stand in for run natively, untraced: they behave as always, are counted, and
//! named.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Bench;

/// Runs the script natively and recorded: the same output; returns the programs that ran untraced.
fn untraced(bench: &Bench, script: &str) -> Vec<String> {
    let native = Bench::native(&["/bin/sh", "-c", script]);
    let output = bench.path("output");
    let redirected = format!("exec >{} 2>&1; {script}", output.display());
    let summary = bench.record("trace", &["/bin/sh", "-c", &redirected]);
    assert_eq!(Some(summary.status), native.status.code());
    assert_eq!(fs::read(output).expect("output"), native.stdout);
    assert_eq!(summary.untraced, summary.untraced_programs.len() as u64);
    summary.untraced_programs
}

#[test]
fn a_set_user_id_program_runs_natively_and_is_counted() {
    let bench = Bench::new();
    // For root, su changes nothing; so root becomes another user first.
    let script = "[ $(id -u) != 0 ] || drop='setpriv --reuid 65534 --regid 65534 --clear-groups'; \
                  $drop su --version; echo $?";
    let programs = untraced(&bench, script);
    assert_eq!(programs.len(), 1, "{programs:?}");
    assert!(programs[0].ends_with("/su"), "{programs:?}");
}

#[test]
fn a_program_of_another_architecture_runs_natively_and_is_counted() {
    let bench = Bench::new();
    let program = bench.path("exit-7");
    fs::write(&program, exit_7()).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
    // Where the kernel cannot run it either, the shell says so, natively and recorded.
    let path = program.display().to_string();
    assert_eq!(untraced(&bench, &format!("{path} 2>/dev/null; echo $?")), [path]);
}

/// A 32-bit x86 program that exits with status 7.
fn exit_7() -> Vec<u8> {
    // mov eax, 1 (exit); mov ebx, 7; int 0x80
    let code = [0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80];
    let (base, start) = (0x0804_8000_u32, 52 + 32_u32);
    let halves = |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let length = start + code.len() as u32;
    [
        b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
        halves(&[2, 3]),
        words(&[1, base + start, 52, 0, 0]),
        halves(&[52, 32, 1, 0, 0, 0]),
        // One segment: the whole file, readable and executable.
        words(&[1, 0, base, base, length, length, 5, 4096]),
        code.to_vec(),
    ]
    .concat()
}
