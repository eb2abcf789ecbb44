//! Watches one process: for its end, a reused number, and exec.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use super::super::{Pid, ProcRoot, ProcessStat};
use crate::LinuxError;
use crate::sys::process as sys;

/// Polls for which a new process is read thoroughly: vfork shares the parent's memory until exec.
const YOUNG: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Executed,
    Ended,
}

#[derive(Debug)]
pub(super) struct Watched {
    start: u64,
    /// Starts of its code and its stack: both move at exec, unless addresses are not randomised.
    places: (u64, u64),
    age: u32,
    /// Readable when the process has ended.
    pub(super) pidfd: Option<OwnedFd>,
    /// The page table, which ends with the memory, hence at exec, even of the same program at the same place.
    memory: Option<File>,
}

impl Watched {
    /// The descriptor is the number's present owner's; if that is another process, the next look tells.
    pub(super) fn new(root: &ProcRoot, pid: Pid, stat: &ProcessStat, descriptors: bool) -> Self {
        let (start, places) = (stat.start, (stat.code, stat.stack));
        let pidfd = if descriptors { sys::pidfd_open(pid).ok() } else { None };
        let memory = if descriptors { memory_of(root, pid) } else { None };
        Self { start, places, age: 0, pidfd, memory }
    }

    /// Looks for changes: `thorough`ly, or as cheaply as the descriptors allow.
    pub(super) fn look(
        &mut self,
        root: &ProcRoot,
        pid: Pid,
        thorough: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<Change, LinuxError> {
        self.age = self.age.saturating_add(1);
        let replaced = self.memory.as_ref().is_some_and(|memory| !is_alive(memory));
        let certain = self.pidfd.is_some() && self.memory.is_some() && !replaced;
        if certain && !thorough && self.age > YOUNG {
            return Ok(Change::None);
        }
        let stat = match ProcessStat::read(root, pid, buffer) {
            Ok(stat) if stat.start == self.start && !stat.has_ended() => stat,
            Ok(_) | Err(LinuxError::Ended(_)) => return Ok(Change::Ended),
            Err(error) => return Err(error),
        };
        let places = (stat.code, stat.stack);
        // While it dies, the memory goes first and the places read as zero: no exec.
        let moved = places != self.places && places.0 > 1;
        if !moved && !replaced {
            return Ok(Change::None);
        }
        if replaced || self.memory.is_some() {
            self.memory = memory_of(root, pid);
        }
        if places.0 > 1 {
            self.places = places;
        }
        let executed = moved || self.memory.is_some();
        Ok(if executed { Change::Executed } else { Change::None })
    }
}

fn memory_of(root: &ProcRoot, pid: Pid) -> Option<File> {
    root.open(pid, "pagemap").ok().filter(is_alive)
}

/// Returns whether the address space still exists: then the first page's entry can be read.
fn is_alive(memory: &File) -> bool {
    matches!(memory.read_at(&mut [0; 8], 0), Ok(8))
}
