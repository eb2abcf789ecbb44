//! Defines sources that learn accesses from outside of a program, from the accessed bits of its page table.
//!
//! # What the bits say
//!
//! The processor sets a page-table entry's accessed bit when it walks the page table for a load or a store: once the
//! bit was cleared *and* the translation left the TLB, the next access sets it again. So a scan that reads and clears
//! the bits learns, of each page, whether it was accessed at all since the scan before: not how often, not when, not by
//! which instruction. Two mechanisms let a user space program do so:
//!
//! | source | resolution | needs |
//! |---|---|---|
//! | [`ClearRefs`]: `/proc/PID/clear_refs` and `smaps` | a mapping (a line of `/proc/PID/maps`) | nothing, for one's own programs |
//! | [`IdlePages`]: `/sys/kernel/mm/page_idle/bitmap` | a page | root, `CONFIG_IDLE_PAGE_TRACKING` |
//!
//! Programs whose mappings are large are seen by `ClearRefs` only after an agent inside of them has split those
//! mappings into [`grains`].
//!
//! # What is made of them
//!
//! - `Signal::AccessedBits` ([`AccessSource::accessed`](crate::source::AccessSource::accessed)): the marks of all scans
//!   since the range was last asked about.
//! - `Signal::LoadSamples`: each scan delivers one access for each page found accessed. Its weight is a lower bound: a
//!   page accessed once and one accessed a million times look the same, and stores count as loads. The time is that of
//!   the scan. The `Period` of a [`Sampling`](isotherm_core::Sampling) request cannot be kept, since accesses are not
//!   counted; `Off` and `Frequency` (samples a second of a process, not of a thread) are. If more pages were accessed
//!   than may be delivered, every n-th is, with weight n.
//!
//! The first scan of a process only clears: what happened before is no news.
//!
//! # What it costs
//!
//! Scans run on a thread of the source's own, which takes at most [`Pace::budget`] of one processor: after a scan that
//! took *c*, none begins before *c* / budget is over. The program pays too: each cleared bit is set again by the
//! processor's page walker, and the flush empties its TLB. `SourceStatistics::program_time` is an estimate of that, a
//! constant for each page that was found accessed, [`WALK`] or what [`measure_walk`] says of this machine; and
//! [`Pace::program_budget`] bounds it as the other budget bounds scans. With many pages in use it is the larger of the
//! two. What it does not hold: while `clear_refs` walks, page faults and changes of mappings wait (the kernel takes the
//! address space's lock for writing); [`ScanStatistics::locked`] has the sum of these times.
//!
//! # Who else sees it
//!
//! The bits are one per page, not one per reader. Clearing them makes pages look colder than they are to the kernel's
//! own LRU (it may reclaim or demote them earlier), to idle page tracking, to DAMON and to other programs that read
//! `Referenced`; they, in turn, clear bits that these sources then miss. Nothing but accounting is affected, never
//! contents. Two of these sources on one process disturb each other.

mod clear_refs;
pub mod grains;
mod idle_bitmap;
mod idle_pages;
mod pagemap;
mod process_files;
mod range_set;
mod sampler;
mod schedule;
mod smaps;
mod source;
mod walk;

use std::ops::Range;

use isotherm_core::Nanos;

use crate::LinuxError;
use crate::process::Pid;

pub use clear_refs::{ClearRefs, FAULT, Resolution};
pub use idle_pages::IdlePages;
pub use schedule::Pace;
pub use source::{BitSource, ScanStatistics};
pub use walk::{WALK, measure_walk};

/// A way to read and clear accessed bits.
pub trait Scanner: Send + Sync + 'static {
    /// What it keeps of each process.
    type Target: Send;

    /// A kebab-case name, as in `--source`.
    fn name(&self) -> &'static str;

    /// Opens what is needed of a process, and finds out whether it is allowed.
    fn open(&self, process: Pid) -> Result<Self::Target, LinuxError>;

    /// Reads what was accessed since the scan before and clears the bits.
    fn scan(&self, target: &mut Self::Target, found: &mut Found) -> Result<(), LinuxError>;
}

/// What a scan found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Present pages that were accessed, to be delivered as accesses, in the order of addresses.
    pub pages: Vec<Range<u64>>,
    /// Ranges to be called accessed when asked; may hold addresses that have no page.
    pub accessed: Vec<Range<u64>>,
    /// Present pages whose bits were looked at.
    pub walked: u64,
    /// Those of them that were accessed.
    pub referenced: u64,
    /// Accessed pages of which it is not known which they are, so that they are not delivered.
    pub undecided: u64,
    /// How long faults and changes of mappings had to wait.
    pub locked: Nanos,
    /// What it costs the program's threads to have the bits set again: an estimate.
    pub program_time: Nanos,
}

impl Found {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.accessed.clear();
        *self = Self {
            pages: std::mem::take(&mut self.pages),
            accessed: std::mem::take(&mut self.accessed),
            ..Self::default()
        };
    }
}
