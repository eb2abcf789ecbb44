//! Nodes of a process's pages, by the status query of `move_pages(2)`.

use std::io;
use std::time::Duration;

use isotherm_core::Nanos;

use crate::LinuxError;
use crate::process::Pid;
use crate::sys::pages;

/// Pages per query: addresses and answers stay in the first-level cache; more only spreads the call's cost.
const BATCH: usize = 4096;

/// The system call that moves pages; tests replace it to inject errors.
pub trait MovePages {
    /// Moves pages to `nodes`, or writes where they are (`move_pages(2)`). All slices have one length; `all`
    /// is `MPOL_MF_MOVE_ALL`. Returns how many pages did not move.
    fn move_pages(
        &mut self,
        pid: Pid,
        addresses: &[u64],
        nodes: Option<&[i32]>,
        status: &mut [i32],
        all: bool,
    ) -> io::Result<u64>;

    /// Waits before busy pages are tried again.
    fn pause(&mut self, time: Nanos);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

impl MovePages for Kernel {
    fn move_pages(
        &mut self,
        pid: Pid,
        addresses: &[u64],
        nodes: Option<&[i32]>,
        status: &mut [i32],
        all: bool,
    ) -> io::Result<u64> {
        pages::move_pages(pid, addresses, nodes, status, all)
    }

    fn pause(&mut self, time: Nanos) {
        std::thread::sleep(Duration::from_nanos(time.0));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Residence {
    Node(u32),
    /// Not mapped, not present (swapped, never touched), or the shared page of zeros.
    Gone,
    /// The kernel answered with this error number.
    Unknown(i32),
}

impl Residence {
    pub fn from_status(status: i32) -> Self {
        match (u32::try_from(status), status.saturating_neg()) {
            (Ok(node), _) => Self::Node(node),
            (_, libc::ENOENT | libc::EFAULT) => Self::Gone,
            (_, error) => Self::Unknown(error),
        }
    }
}

#[derive(Debug, Default)]
pub struct NodeReader<K = Kernel> {
    kernel: K,
    status: Vec<i32>,
}

impl<K: MovePages> NodeReader<K> {
    pub fn new(kernel: K) -> Self {
        Self { kernel, status: Vec::new() }
    }

    pub fn locate(
        &mut self,
        pid: Pid,
        addresses: &[u64],
        residences: &mut Vec<Residence>,
    ) -> Result<(), LinuxError> {
        residences.reserve(addresses.len());
        for batch in addresses.chunks(BATCH) {
            query(&mut self.kernel, pid, batch, &mut self.status)
                .map_err(|error| query_failed(pid, error))?;
            residences.extend(self.status.iter().map(|&status| Residence::from_status(status)));
        }
        Ok(())
    }
}

/// Replaces `status` by the state of each page.
pub(super) fn query<K: MovePages>(
    kernel: &mut K,
    pid: Pid,
    addresses: &[u64],
    status: &mut Vec<i32>,
) -> io::Result<()> {
    status.clear();
    status.resize(addresses.len(), -libc::ENOENT);
    kernel.move_pages(pid, addresses, None, status, false).map(drop)
}

/// Interprets a failed query. EINVAL: the process is a zombie, without memory.
pub(super) fn query_failed(pid: Pid, error: io::Error) -> LinuxError {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::EINVAL) => LinuxError::Ended(pid.0),
        Some(libc::EPERM | libc::EACCES) => LinuxError::Permission {
            what: "looking for and moving the pages of another user's process",
            needs: "CAP_SYS_PTRACE (before Linux 4.13 CAP_SYS_NICE)",
            remedy: "run as the program's user or as root, or \
                     setcap cap_sys_ptrace,cap_sys_nice+ep \"$(command -v isotherm)\""
                .into(),
        },
        _ => LinuxError::Call { call: "move_pages", error },
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::sys::testing::Memory;

    fn locate(pid: Pid, addresses: &[u64]) -> Result<Vec<Residence>, LinuxError> {
        let mut residences = Vec::new();
        NodeReader::new(Kernel).locate(pid, addresses, &mut residences).map(|()| residences)
    }

    #[test]
    fn present_pages_have_a_node_and_others_do_not() {
        let memory = Memory::new(64 << 20, false);
        let addresses: Vec<u64> = (0..3 * BATCH as u64).map(|page| memory.page(page)).collect();
        (0..addresses.len() as u64).step_by(3).for_each(|page| memory.touch(page));
        memory.read(1);
        let residences = locate(Pid(std::process::id()), &addresses).expect("located");
        assert_eq!(residences.len(), addresses.len());
        for (page, residence) in residences.into_iter().enumerate() {
            assert_eq!(matches!(residence, Residence::Node(_)), page % 3 == 0, "{page}: {residence:?}");
            assert!(page % 3 == 0 || residence == Residence::Gone, "{page}: {residence:?}");
        }
    }

    #[test]
    fn addresses_outside_of_mappings_are_gone() {
        let unmapped = [0, 0x1000, 0xffff_8000_0000_0000];
        assert_eq!(locate(Pid(std::process::id()), &unmapped).expect("located"), [Residence::Gone; 3]);
    }

    #[test]
    fn zombies_and_waited_for_processes_have_ended() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep");
        let pid = Pid(child.id());
        assert!(locate(pid, &[0x1000]).is_ok());
        child.kill().expect("killed");
        let zombie = loop {
            match locate(pid, &[0x1000]) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert!(matches!(zombie, LinuxError::Ended(_)), "{zombie}");
        child.wait().expect("waited for");
        assert!(matches!(locate(pid, &[0x1000]), Err(LinuxError::Ended(_))));
    }
}
