//! The lock that allows one engine per process: `flock(2)` on the process's `/proc/PID/maps`.
//!
//! Only who may read the process's memory can open that file (`PTRACE_MODE_READ`), so no other user can hold
//! the lock. It leaves nothing behind: the kernel frees it when its holder dies, and the file is the
//! process's own, which one that gets the same number does not share.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use super::{Pid, ProcRoot};
use crate::LinuxError;
use crate::files::Tree;

const FILE: &str = "maps";
/// Longest wait for the lock: where a process executes another program, an agent that was just being started
/// in the old one holds a copy for a moment.
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: u32 = 3;

/// The right to tier one process, released on drop.
#[derive(Debug)]
pub struct EngineLock {
    _file: File,
    pid: Pid,
}

impl EngineLock {
    /// Takes the lock of the process that `thread` belongs to; refused, naming the holder, while another
    /// engine has it, and without the right to read the process's memory.
    pub fn take(root: &ProcRoot, thread: Pid) -> Result<Self, LinuxError> {
        Self::take_within(root, thread, PATIENCE)
    }

    /// Takes the lock as [`Self::take`] does, but waits for it no longer than `patience`.
    pub fn take_within(root: &ProcRoot, thread: Pid, patience: Duration) -> Result<Self, LinuxError> {
        let pid = root.process_of(thread)?;
        let file = root.open(pid, FILE)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file, pid }),
                Err(TryLockError::WouldBlock) if begin.elapsed() < patience => std::thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => return Err(refused(root, pid, &file)),
                Err(TryLockError::Error(error)) => return Err(LinuxError::file(root.file(pid, FILE), error)),
            }
        }
    }

    /// Returns the process, also where a thread was named.
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

fn refused(root: &ProcRoot, pid: Pid, file: &File) -> LinuxError {
    let find = || holder(&locks(root).ok()?, &file.metadata().ok()?);
    // A line can be missed while locks above it are freed.
    let holder = match (0..LOOKS).find_map(|_| find()) {
        Some(holder) if holder == pid => "the program itself, through libisotherm.so".into(),
        Some(holder) => format!("process {}", holder.0),
        None => "another process".into(),
    };
    LinuxError::Unsupported {
        what: "a second engine on one process",
        remedy: format!("process {} is tiered by {holder}; end that engine first", pid.0),
    }
}

/// A process that an engine tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiered {
    pub process: Pid,
    /// The engine's process: the same one if it runs inside the program.
    pub engine: Pid,
}

/// Returns the processes that engines tier, ascending.
pub fn tiered(root: &ProcRoot) -> Result<Vec<Tiered>, LinuxError> {
    let locks = locks(root)?;
    let of = |process: Pid| {
        let engine = holder(&locks, &std::fs::metadata(root.file(process, FILE)).ok()?)?;
        Some(Tiered { process, engine })
    };
    let processes = Tree::new(root.path()).numbered("", "")?;
    Ok(processes.into_iter().filter_map(|process| of(Pid(process))).collect())
}

/// Returns the engines that tier processes. None are seen where `/proc` hides other users' processes.
pub fn engines(root: &ProcRoot) -> Result<BTreeSet<Pid>, LinuxError> {
    Ok(tiered(root)?.into_iter().map(|tiered| tiered.engine).collect())
}

fn locks(root: &ProcRoot) -> Result<String, LinuxError> {
    Tree::new(root.path()).text("locks")
}

/// Finds a file's holder in `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 7727 00:15:851137 0 EOF`.
fn holder(locks: &str, file: &Metadata) -> Option<Pid> {
    let (major, minor) = (libc::major(file.dev()), libc::minor(file.dev()));
    find(locks, &format!("{major:02x}:{minor:02x}:{}", file.ino()))
}

fn find(locks: &str, file: &str) -> Option<Pid> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (kind, holder, place) = (words.next()?, words.nth(2)?, words.next()?);
        (kind == "FLOCK" && place == file).then(|| holder.parse().ok().map(Pid)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_other_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 12 00:15:851137 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 13 00:15:851137 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 14 08:15:851137 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 7727 00:15:851137 0 EOF\n";
        assert_eq!(find(locks, "00:15:851137"), Some(Pid(7727)));
        assert_eq!(find(locks, "00:15:851138"), None);
        assert_eq!(find("nonsense\n\n1:\n", "00:15:851137"), None);
    }

    #[test]
    fn each_engine_is_seen_once_by_the_locks_that_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut locks = String::new();
        for (process, engine) in [(7, Some(3)), (8, Some(3)), (9, Some(4)), (10, None)] {
            let maps = folder.path().join(format!("{process}/{FILE}"));
            std::fs::create_dir(maps.parent().expect("a folder")).expect("made");
            std::fs::write(&maps, "").expect("written");
            let file = maps.metadata().expect("a file");
            let place =
                format!("{:02x}:{:02x}:{}", libc::major(file.dev()), libc::minor(file.dev()), file.ino());
            locks.extend(engine.map(|engine| format!("1: FLOCK  ADVISORY  WRITE {engine} {place} 0 EOF\n")));
        }
        std::fs::write(folder.path().join("locks"), locks).expect("written");
        let found = engines(&ProcRoot::at(folder.path())).expect("readable");
        assert_eq!(found, BTreeSet::from([Pid(3), Pid(4)]));
    }
}
