//! Errors for a user without rights.

use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::AccessSource;

use super::support::{Program, every, page_faults};

/// Follows a process of root, then itself, as a user without rights.
pub(crate) fn unprivileged(process: u32, say: impl Fn(&str)) {
    let mut source = page_faults(8);
    say(&format!("READY {} 0 0", std::process::id()));
    let answer =
        |result: Result<(), LinuxError>| result.map_or_else(|error| error.to_string(), |()| "ok".into());
    say(&format!("ROOTS {}", answer(source.follow(Pid(process)))));
    let own = source.follow(Pid(std::process::id())).and_then(|()| source.request(&every(1)));
    let grants: Vec<_> = source.sampled().map(|(_, grant)| grant).collect();
    say(&format!("OWN {} {grants:?}", answer(own)));
}

#[test]
fn another_users_program_needs_rights_and_the_message_says_which() {
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        println!("skipped: only root can give rights away");
        return;
    }
    let mut program = Program::start(&format!("unprivileged {}", std::process::id()));
    let answer = program.expect("ROOTS");
    assert!(answer.contains("CAP_PERFMON") && answer.contains("sudo setcap"), "{answer}");
    let own = program.expect("OWN");
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("perf is there");
    match paranoid.trim().parse::<i32>().expect("a number") {
        2 => assert!(own.starts_with("ok") && own.contains("exclude_kernel: true"), "{own}"),
        3.. => assert!(own.contains("perf_event_paranoid"), "{own}"),
        _ => assert!(own.starts_with("ok") && own.contains("exclude_kernel: false"), "{own}"),
    }
}

#[test]
fn a_process_that_does_not_exist_has_ended() {
    let mut source = page_faults(1);
    let error = source.follow(Pid(0x7fff_fff0)).expect_err("no such process");
    assert!(matches!(error, LinuxError::Ended(0x7fff_fff0)), "{error}");
}
