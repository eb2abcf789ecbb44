//! The interface to the kernel's address spaces.

use std::ops::Range;
use std::path::PathBuf;

use isotherm_core::{Bytes, MoveStatus, TierId};
use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;

/// Neighbouring pages that are mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentRun {
    pub range: Range<u64>,
    /// Whether they are in swap, where no move reaches them.
    pub swapped: bool,
    /// Whether huge pages map them, whole or in part.
    pub huge: bool,
}

/// The address spaces of processes: queries and page migration.
pub trait AddressSpaces: Send {
    /// Appends the mapped memory of the process that may be tiered, in address order.
    ///
    /// # Errors
    /// If the process has ended or may not be read.
    fn present(&mut self, process: Pid, found: &mut Vec<PresentRun>) -> Result<(), LinuxError>;

    /// Appends each address's tier, or `None` if nothing is mapped or its node belongs to no tier.
    fn tiers(
        &mut self,
        process: Pid,
        addresses: &[u64],
        tiers: &mut Vec<Option<TierId>>,
    ) -> Result<(), LinuxError>;

    /// Appends whether each address is in swap.
    fn swapped(&mut self, process: Pid, addresses: &[u64], swapped: &mut Vec<bool>) {
        let _ = process;
        swapped.resize(swapped.len() + addresses.len(), false);
    }

    /// Returns the process's cgroup, and how much memory of its programs the kernel's zswap holds, before
    /// compression; `None` if that is unknown.
    fn zswapped(&mut self, process: Pid) -> Option<(PathBuf, Bytes)> {
        let _ = process;
        None
    }

    /// Moves pages of one process, each to its tier, and appends the status of each. The first address of a
    /// huge page stands for all of it.
    fn migrate(&mut self, process: Pid, moves: &[(u64, TierId)], statuses: &mut Vec<MoveStatus>);

    /// Returns whether a huge page maps the 2 MiB that begin at the address.
    fn is_huge(&mut self, process: Pid, start: u64) -> bool {
        let _ = (process, start);
        false
    }

    /// Splits the huge page that begins at the address; returns whether base pages map it now.
    fn split(&mut self, process: Pid, start: u64) -> bool {
        let _ = (process, start);
        false
    }

    /// Makes a huge page of the 2 MiB that begin at the address; returns whether there is one now.
    fn collapse(&mut self, process: Pid, start: u64) -> bool {
        let _ = (process, start);
        false
    }

    /// Forgets a process that has ended or executed another program.
    fn forget(&mut self, process: Pid) {
        let _ = process;
    }

    fn name(&mut self, process: Pid) -> Option<String> {
        let _ = process;
        None
    }

    /// Returns how much memory programs can still get on a tier; `None` if that is unknown.
    fn room(&mut self, tier: TierId) -> Option<Bytes> {
        let _ = tier;
        None
    }

    /// Whether the kernel's own LRU can make room on a tier.
    fn reclaims(&self) -> bool;

    /// Makes the kernel's LRU take bytes off a tier; returns how many it freed.
    fn reclaim(&mut self, from: TierId, bytes: u64) -> u64;

    /// Returns the problems since the last call, each reason once.
    fn warnings(&mut self) -> Vec<LinuxError> {
        Vec::new()
    }
}
