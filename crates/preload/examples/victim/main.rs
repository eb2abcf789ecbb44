//! A program whose memory is armed when something happens to it.
//!
//! `victim DUTY` fills memory, prints `ready ADDRESS PAGES`, and waits for a line on standard input; by then
//! all of it is armed. Then it performs the duty, checks its memory and prints `ok`. It exits with 1 and one
//! line on a fault, and with 77 if the system cannot do the duty.

mod changes;
mod memory;
mod processes;

use std::process::ExitCode;

use memory::Area;

/// A duty's failure.
pub(crate) enum Failure {
    Wrong(String),
    Impossible(String),
}

pub(crate) type Result = std::result::Result<(), Failure>;

/// Fails unless `holds`.
pub(crate) fn ensure(holds: bool, what: &str) -> Result {
    if holds { Ok(()) } else { Err(Failure::Wrong(format!("{what} ({})", std::io::Error::last_os_error()))) }
}

type Duty = fn(&mut Area) -> Result;

const DUTIES: [(&str, Duty); 41] = [
    ("read", |area| area.check()),
    ("write", changes::write),
    ("unmap", changes::unmap),
    ("fixed", changes::fixed),
    ("dontneed", changes::dont_need),
    ("free", changes::free),
    ("remap", changes::remap),
    ("remap-part", changes::remap_part),
    ("grow", changes::grow),
    ("dontunmap", changes::dont_unmap),
    ("protect", changes::protect),
    ("lock", changes::lock),
    ("lock-all", changes::lock_all),
    ("guard", changes::guard),
    ("direct", changes::direct),
    ("own-userfaultfd", |area| area.check()),
    ("huge", changes::huge),
    ("fork", processes::fork),
    ("raw-fork", processes::raw_fork),
    ("dont-fork", processes::dont_fork),
    ("spawn", processes::spawn),
    ("exec", processes::exec),
    ("exit", processes::exit_now),
    ("abort", processes::abort_now),
    ("kill", processes::kill_now),
    ("close-all", processes::close_all),
    ("identity", processes::identity),
    ("threads", processes::threads),
    ("raw-fork-changes", processes::raw_fork_changes),
    ("filter-error", |area| processes::filter(area, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32)),
    ("filter-thread", |area| processes::filter(area, libc::SECCOMP_RET_KILL_THREAD)),
    ("filter-process", |area| processes::filter(area, libc::SECCOMP_RET_KILL_PROCESS)),
    ("single", processes::single),
    ("childless", processes::childless),
    ("drop-rights", processes::drop_rights),
    ("robust", processes::robust),
    ("thread-words", processes::thread_words),
    ("vfork-exits", processes::vfork_exits),
    ("short-threads", processes::short_threads),
    ("remap-two", changes::remap_two),
    ("register", changes::register),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "stack" {
        return processes::stack();
    }
    let Some((name, duty)) = DUTIES.iter().find(|duty| duty.0 == name) else {
        eprintln!("victim: no duty '{name}'");
        return ExitCode::from(2);
    };
    let mut area = if *name == "huge" { Area::huge() } else { Area::new(memory::PAGES) };
    let owner = (*name == "own-userfaultfd").then(|| area.own_userfaultfd());
    area.announce();
    let outcome = match owner {
        Some(Err(failure)) => Err(failure),
        _ => duty(&mut area),
    };
    match outcome {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(Failure::Wrong(message)) => {
            eprintln!("victim: {name}: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Impossible(message)) => {
            eprintln!("victim: {name}: skipped: {message}");
            ExitCode::from(77)
        }
    }
}
