//! One batch of the mover: the addresses behind its moves, and the meaning of the kernel's answers.

use std::io;
use std::ops::Range;

use isotherm_core::{Bytes, MOVED_AT_ONCE, MoveStatus};

use super::{PageMove, Shape};
use crate::LinuxError;
use crate::memory::nodes::{MovePages, Residence, query, query_failed};
use crate::memory::{BASE, HUGE};
use crate::process::Pid;

/// Marks a status that the kernel did not write.
const UNSET: i32 = i32::MIN;
/// An address where no program has memory: the kernel moves what a call has before it at once
/// (`do_pages_move` in mm/migrate.c).
const NOWHERE: u64 = u64::MAX - (BASE - 1);
/// Status of a page that others hold, or this same call.
const BUSY: i32 = -libc::EBUSY;

#[derive(Debug)]
pub(super) enum Answer {
    /// Every page was tried; pages that stay open are busy.
    Tried,
    /// The node has no room.
    NoRoom,
    Denied(Denial),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    Process,
    Shared,
    Cpuset,
    Nice,
}

impl Denial {
    pub(super) fn error(self) -> LinuxError {
        const MOVING_SHARED: &str = "moving pages that several processes map";
        const GRANT: &str = "run as root, or setcap cap_sys_nice+ep \"$(command -v isotherm)\"";
        let (what, needs, remedy) = match self {
            Self::Process => return query_failed(Pid(0), io::Error::from_raw_os_error(libc::EPERM)),
            Self::Shared => (MOVING_SHARED, "CAP_SYS_NICE and the option to move shared pages", GRANT),
            Self::Nice => (MOVING_SHARED, "CAP_SYS_NICE", GRANT),
            Self::Cpuset => (
                "moving pages to a node outside of the program's cpuset",
                "that node in cpuset.mems",
                "write the nodes of all tiers to cpuset.mems of the program's cgroup (see /proc/PID/cgroup)",
            ),
        };
        LinuxError::Permission { what, needs, remedy: remedy.into() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Page {
    address: u64,
    bytes: u64,
    /// Index of its move in the batch.
    owner: usize,
    status: Option<MoveStatus>,
}

impl Page {
    fn new(address: u64, bytes: u64, owner: usize) -> Self {
        Self { address, bytes, owner, status: None }
    }

    /// Returns the last base page of a huge page.
    fn tail(&self) -> u64 {
        self.address + HUGE - BASE
    }
}

/// A batch, reused between steps.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pages: Vec<Page>,
    open: Vec<usize>,
    addresses: Vec<u64>,
    nodes: Vec<i32>,
    status: Vec<i32>,
}

impl Batch {
    /// Takes the first moves of one target, up to about `limit` addresses; returns how many moves.
    pub(super) fn load(&mut self, moves: &[PageMove], limit: usize) -> usize {
        self.pages.clear();
        let node = moves[0].node;
        let mut owners = 0;
        for request in moves.iter().take_while(|request| request.node == node) {
            let pages = if request.shape == Shape::HugeRange { HUGE / BASE } else { 1 };
            if owners > 0 && self.pages.len() + pages as usize > limit {
                break;
            }
            let bytes = request.shape.bytes() / pages;
            let page = |number: u64| Page::new(request.address + number * BASE, bytes, owners);
            self.pages.extend((0..pages).map(page));
            owners += 1;
        }
        owners
    }

    /// Forgets the moves behind the first `owners`.
    pub(super) fn keep(&mut self, owners: usize) {
        let end = self.pages.partition_point(|page| page.owner < owners);
        self.pages.truncate(end);
    }

    /// Sets the status of pages that need no move or cannot move.
    pub(super) fn locate<K: MovePages>(
        &mut self,
        kernel: &mut K,
        pid: Pid,
        node: u32,
    ) -> Result<Option<Denial>, LinuxError> {
        self.addresses.clear();
        self.addresses.extend(self.pages.iter().map(|page| page.address));
        // A huge page is where both of its ends are; otherwise the kernel has split it.
        self.addresses.extend(self.pages.iter().filter(|page| page.bytes == HUGE).map(Page::tail));
        if let Err(error) = query(kernel, pid, &self.addresses, &mut self.status) {
            return match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => Ok(Some(Denial::Process)),
                _ => Err(query_failed(pid, error)),
            };
        }
        let (heads, tails) = self.status.split_at(self.pages.len());
        let mut tails = tails.iter();
        for (page, &head) in self.pages.iter_mut().zip(heads) {
            let tail = if page.bytes == HUGE { tails.next().copied().unwrap_or(head) } else { head };
            let ends = [head, tail].map(Residence::from_status);
            page.status = match ends {
                [Residence::Node(one), Residence::Node(other)] if one == node && other == node => {
                    Some(MoveStatus::AlreadyThere)
                }
                [Residence::Gone, Residence::Gone] => Some(MoveStatus::Gone),
                _ => None,
            };
        }
        Ok(None)
    }

    /// Returns how many of the first `owners` moves cost at most `budget` together, and what they cost.
    pub(super) fn affordable(&self, owners: usize, budget: Bytes) -> (usize, Bytes) {
        let (mut cost, mut pages) = (0, self.pages.iter().peekable());
        for owner in 0..owners {
            let mut own = 0;
            while let Some(page) = pages.next_if(|page| page.owner == owner) {
                own += if page.status.is_none() { page.bytes } else { 0 };
            }
            if cost + own > budget.0 {
                return (owner, Bytes(cost));
            }
            cost += own;
        }
        (owners, Bytes(cost))
    }

    /// Collects pages without a status; returns how many.
    pub(super) fn collect_open(&mut self) -> usize {
        self.open.clear();
        self.open.extend((0..self.pages.len()).filter(|&index| self.pages[index].status.is_none()));
        self.open.len()
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn open_bytes(&self) -> Bytes {
        Bytes(self.open.iter().map(|&index| self.pages[index].bytes).sum())
    }

    pub(super) fn settle_open(&mut self, status: MoveStatus) {
        for &index in &self.open {
            self.pages[index].status.get_or_insert(status);
        }
    }

    /// Makes the kernel move some open pages, [`MOVED_AT_ONCE`] at a time. Also returns how many it tried, at
    /// least one, and whether one was denied as shared.
    pub(super) fn call<K: MovePages>(
        &mut self,
        kernel: &mut K,
        pid: Pid,
        node: u32,
        all: bool,
        part: Range<usize>,
    ) -> Result<(Answer, usize, bool), LinuxError> {
        let open = &self.open[part.clone()];
        self.addresses.clear();
        for together in open.chunks(MOVED_AT_ONCE) {
            if !self.addresses.is_empty() {
                self.addresses.push(NOWHERE);
            }
            self.addresses.extend(together.iter().map(|&index| self.pages[index].address));
        }
        self.nodes.clear();
        self.nodes.resize(self.addresses.len(), i32::try_from(node).unwrap_or(i32::MAX));
        self.status.clear();
        self.status.resize(self.addresses.len(), UNSET);
        let result = kernel.move_pages(pid, &self.addresses, Some(&self.nodes), &mut self.status, all);
        let answer = match result {
            Ok(_) => Answer::Tried,
            Err(error) => meaning_of_failure(pid, node, all, error)?,
        };
        let mut place = 0;
        self.status.retain(|_| {
            place += 1;
            place % (MOVED_AT_ONCE + 1) != 0
        });
        // A call ends with the first pages of which one does not move.
        let silent = self.status.iter().position(|&status| status == UNSET).unwrap_or(part.len());
        let tried = part.len().min((silent / MOVED_AT_ONCE + 1) * MOVED_AT_ONCE);
        let (short, shared) = self.apply(node, part.clone());
        self.find_moved(kernel, pid, node, part)?;
        let answer = if short && matches!(answer, Answer::Tried) { Answer::NoRoom } else { answer };
        Ok((answer, tried, shared))
    }

    /// Applies the kernel's statuses; returns whether a page found no room, and whether one is shared.
    fn apply(&mut self, node: u32, part: Range<usize>) -> (bool, bool) {
        let (mut short, mut shared) = (false, false);
        for (&index, &status) in self.open[part].iter().zip(&self.status) {
            let page = &mut self.pages[index].status;
            match Residence::from_status(status) {
                Residence::Node(found) if found == node => *page = Some(MoveStatus::Moved),
                Residence::Gone => *page = Some(MoveStatus::Gone),
                Residence::Unknown(libc::EACCES | libc::EPERM) => {
                    (*page, shared) = (Some(MoveStatus::Denied), true);
                }
                Residence::Unknown(libc::ENOMEM) => short = true,
                // EBUSY and other passing errors: tried again, then reported as busy.
                Residence::Unknown(_) | Residence::Node(_) => {}
            }
        }
        (short, shared)
    }

    /// Queries pages left silent by a call that ended early, and busy ones, which may be in huge pages it
    /// moved.
    fn find_moved<K: MovePages>(
        &mut self,
        kernel: &mut K,
        pid: Pid,
        node: u32,
        part: Range<usize>,
    ) -> Result<(), LinuxError> {
        let words = self.open[part].iter().zip(&self.status);
        let silent: Vec<usize> =
            words.filter(|&(_, &status)| matches!(status, UNSET | BUSY)).map(|(&index, _)| index).collect();
        if silent.is_empty() {
            return Ok(());
        }
        self.addresses.clear();
        self.addresses.extend(silent.iter().map(|&index| self.pages[index].address));
        match query(kernel, pid, &self.addresses, &mut self.status) {
            // The call itself reports the denial.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Ok(()),
            result => result.map_err(|error| query_failed(pid, error))?,
        }
        for (&index, &status) in silent.iter().zip(&self.status) {
            match Residence::from_status(status) {
                Residence::Node(found) if found == node => {
                    self.pages[index].status = Some(MoveStatus::Moved);
                }
                Residence::Gone => self.pages[index].status = Some(MoveStatus::Gone),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the base pages of huge pages that the kernel had split, of which only the first moved, if any.
    pub(super) fn expand_split<K: MovePages>(
        &mut self,
        kernel: &mut K,
        pid: Pid,
        node: u32,
    ) -> Result<bool, LinuxError> {
        let tried = |page: &Page| {
            page.bytes == HUGE && matches!(page.status, Some(MoveStatus::Moved | MoveStatus::Gone))
        };
        let huge: Vec<usize> = (0..self.pages.len()).filter(|&index| tried(&self.pages[index])).collect();
        if huge.is_empty() {
            return Ok(false);
        }
        self.addresses.clear();
        self.addresses.extend(huge.iter().map(|&index| self.pages[index].tail()));
        query(kernel, pid, &self.addresses, &mut self.status).map_err(|error| query_failed(pid, error))?;
        let before = self.pages.len();
        for (&index, &status) in huge.iter().zip(&self.status) {
            if matches!(Residence::from_status(status), Residence::Node(found) if found != node) {
                let Page { address, owner, .. } = self.pages[index];
                self.pages[index].bytes = BASE;
                let rest = (1..HUGE / BASE).map(|number| Page::new(address + number * BASE, BASE, owner));
                self.pages.extend(rest);
            }
        }
        Ok(self.pages.len() > before)
    }

    pub(super) fn moved_bytes(&self) -> Bytes {
        let moved = self.pages.iter().filter(|page| page.status == Some(MoveStatus::Moved));
        Bytes(moved.map(|page| page.bytes).sum())
    }

    /// Appends the status of each of the first `owners` moves: of several pages, the weightiest.
    pub(super) fn statuses(&self, owners: usize, statuses: &mut Vec<MoveStatus>) {
        let first = statuses.len();
        statuses.resize(first + owners, MoveStatus::Gone);
        for page in &self.pages {
            let whole = &mut statuses[first + page.owner];
            let part = page.status.unwrap_or(MoveStatus::Busy);
            if weight(part) > weight(*whole) {
                *whole = part;
            }
        }
    }
}

/// Ranks statuses for a range of several pages: reasons that kept a page from moving come before success.
fn weight(status: MoveStatus) -> u8 {
    match status {
        MoveStatus::Gone => 0,
        MoveStatus::AlreadyThere => 1,
        MoveStatus::Moved => 2,
        MoveStatus::Busy => 3,
        MoveStatus::NoRoom => 4,
        MoveStatus::Denied => 5,
    }
}

/// Interprets the failure of a whole call (`move_pages(2)`; mm/migrate.c where the manual is silent).
fn meaning_of_failure(pid: Pid, node: u32, all: bool, error: io::Error) -> Result<Answer, LinuxError> {
    match error.raw_os_error() {
        Some(libc::ENOMEM) => Ok(Answer::NoRoom),
        Some(libc::EBUSY | libc::EAGAIN | libc::EINTR) => Ok(Answer::Tried),
        Some(libc::EPERM) => Ok(Answer::Denied(if all { Denial::Nice } else { Denial::Process })),
        Some(libc::EACCES) => Ok(Answer::Denied(Denial::Cpuset)),
        Some(libc::ENODEV) => Err(LinuxError::Unsupported {
            what: "moving pages to a node without memory",
            remedy: format!(
                "node {node} is not one of /sys/devices/system/node/has_memory; name those of the tiers"
            ),
        }),
        // ESRCH and EINVAL: the process has ended or is a zombie.
        _ => Err(query_failed(pid, error)),
    }
}
