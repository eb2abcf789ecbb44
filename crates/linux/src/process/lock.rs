//! The lock that allows one engine per process: `flock(2)` on the process's `/proc/PID/maps`.
//!
//! Only who may read the process's memory can open that file (`PTRACE_MODE_READ`), so no other user can hold
//! the lock. It leaves nothing behind: the kernel frees it when its holder dies, and the file is the
//! process's own, which one that gets the same number does not share.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use super::{Pid, ProcRoot};
use crate::LinuxError;

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
        let pid = root.process_of(thread)?;
        let file = root.open(pid, FILE)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file, pid }),
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(LOOK),
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
    let find = || {
        let (file, locks) = (file.metadata().ok()?, std::fs::read_to_string(root.path().join("locks")).ok()?);
        holder(&locks, file.dev(), file.ino())
    };
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

/// Finds a file's holder in `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 7727 00:15:851137 0 EOF`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<Pid> {
    let file = format!("{:02x}:{:02x}:{inode}", libc::major(device), libc::minor(device));
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
        assert_eq!(holder(locks, 0x15, 851_137), Some(Pid(7727)));
        assert_eq!(holder(locks, 0x15, 851_138), None);
        assert_eq!(holder("nonsense\n\n1:\n", 0x15, 851_137), None);
    }
}
