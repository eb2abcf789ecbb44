//! An agent that cannot work arms nothing and names the remedy.
#![allow(unsafe_code)]

mod support;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isotherm_core::SamplingRate;
use isotherm_linux::hint_faults::{HintFaultOptions, HintFaultSource};
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;
use support::{example, generous, library, sampling};

/// Drains until a refusal comes, or for ten seconds.
fn refusal(source: &mut HintFaultSource) -> Option<(Pid, String)> {
    let start = Instant::now();
    while source.refusals().is_empty() && start.elapsed() < Duration::from_secs(10) {
        source.drain(&mut Vec::new()).expect("to drain");
        std::thread::sleep(Duration::from_millis(5));
    }
    source.refusals().first().cloned()
}

/// A hello of another version, written byte by byte.
#[test]
fn another_version_is_refused() {
    let mut source = HintFaultSource::open(HintFaultOptions::default()).expect("a source");
    let mut agent = UnixStream::connect(source.socket()).expect("to connect");
    let mut hello = [0u8; 16];
    hello[..4].copy_from_slice(&0x4953_4f54u32.to_ne_bytes());
    hello[4..8].copy_from_slice(&99u32.to_ne_bytes());
    agent.write_all(&hello).expect("to write");
    let (process, reason) = refusal(&mut source).expect("a refusal");
    assert_eq!(process, Pid(std::process::id()));
    assert!(reason.contains("version 99") && !reason.contains('\n'), "{reason}");
}

#[test]
fn a_stranger_is_sent_away() {
    let mut source = HintFaultSource::open(HintFaultOptions::default()).expect("a source");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"x", b""] {
        let mut stranger = UnixStream::connect(source.socket()).expect("to connect");
        stranger.write_all(bytes).expect("to write");
        drop(stranger);
        for _ in 0..3 {
            source.drain(&mut Vec::new()).expect("to drain");
        }
    }
    assert_eq!((source.refusals(), source.counted().agents), (&[][..], 0));
}

#[test]
fn settings_out_of_bounds_are_refused() {
    let good = HintFaultOptions::default();
    for bad in [
        HintFaultOptions { program_budget: 0.0, ..good },
        HintFaultOptions { program_budget: 1.5, ..good },
        HintFaultOptions { agent_budget: f64::NAN, ..good },
        HintFaultOptions { window: 0, ..good },
        HintFaultOptions { window: 65, ..good },
    ] {
        assert!(HintFaultSource::open(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn the_socket_is_private_and_goes_with_the_source() {
    use std::os::unix::fs::PermissionsExt;
    let source = HintFaultSource::open(HintFaultOptions::default()).expect("a source");
    let folder = source.socket().parent().expect("a directory").to_owned();
    assert_eq!(std::fs::metadata(&folder).expect("to look").permissions().mode() & 0o777, 0o700);
    drop(source);
    assert!(!folder.exists());
}

/// Drops every right: the program that is executed has none.
fn without_rights(command: &mut Command) {
    // SAFETY: only system calls between fork and exec, as is allowed there.
    unsafe {
        command.pre_exec(|| {
            for capability in 0..64 {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            Ok(())
        });
    }
}

/// User-mode faults alone would make system calls fail, and forks would not be told: the program is left
/// alone, and the remedy is named.
#[test]
fn a_program_without_rights_is_left_alone() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: needs rights to drop");
        return;
    }
    let mut source = HintFaultSource::open(generous()).expect("a source");
    source.request(&sampling(SamplingRate::Frequency(1_000_000))).expect("a rate");
    let mut command = Command::new(example("victim"));
    command.arg("read").envs(source.environment(&library())).stdin(Stdio::piped()).stdout(Stdio::null());
    without_rights(&mut command);
    let mut child = command.spawn().expect("it starts");
    source.follow(Pid(child.id())).expect("to follow");
    let refused = refusal(&mut source);
    drop(child.stdin.take());
    assert!(child.wait().expect("to wait").success());
    let (process, reason) = refused.expect("a refusal");
    assert_eq!(process, Pid(child.id()));
    assert!(reason.contains("CAP_SYS_PTRACE"), "{reason}");
    assert_eq!(source.counted().armed, 0);
}
