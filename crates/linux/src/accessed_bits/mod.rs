//! Sources that learn accesses from outside a program, from the accessed bits of its page table.
//!
//! # What the bits tell
//!
//! The processor sets a page-table entry's accessed bit when it walks the page table. Once the bit is cleared
//! *and* the translation has left the TLB, the next access sets it again. A scan thus learns whether each
//! page was accessed since the last one, not how often. User space has three mechanisms:
//!
//! | source | resolution | needs |
//! |---|---|---|
//! | [`ClearRefs`]: `/proc/PID/clear_refs` and `smaps` | a mapping (a line of `/proc/PID/maps`) | nothing, for one's own programs |
//! | [`IdlePages`]: `/sys/kernel/mm/page_idle/bitmap` | a page | root, `CONFIG_IDLE_PAGE_TRACKING` |
//! | [`Damon`]: `/sys/kernel/mm/damon/admin` | a region that the kernel chooses, with its heat | root, `CONFIG_DAMON_SYSFS` |
//!
//! # Signals
//!
//! - `Signal::AccessedBits` ([`AccessSource::accessed`](crate::source::AccessSource::accessed)): the marks of
//!   all scans since the range was last queried.
//! - `Signal::LoadSamples`: each scan delivers one access per page found accessed, stores as loads, at the
//!   time of the scan. A `Period` is ignored, since accesses are not counted; `Off` and `Frequency` (per
//!   second and process) are honoured. Of too many pages every n-th is delivered, with weight n. [`Damon`]
//!   delivers those of a region as often as their heat says, and with each how many others rest on the same
//!   look ([`Cause::Region`](crate::source::Cause::Region)): the looks at a region are as many whether it has
//!   one page or a million.
//!
//! The first scan of a process only clears the bits.
//!
//! Beside hint faults ([`BitSource::beside`]) [`ClearRefs`] delivers no accesses. It tells how many pages of
//! each mapping were accessed ([`AccessSource::mappings`](crate::source::AccessSource::mappings)), so that
//! no windows are wasted on memory that nobody uses.
//!
//! # Cost
//!
//! A separate thread takes at most [`Pace::budget`] of one processor. The program pays too: the page walker
//! sets each cleared bit again, and the flush empties the TLB. `SourceStatistics::program_time` estimates
//! that as [`WALK`] per page found accessed, and [`Pace::program_budget`] limits it. Neither covers the time
//! for which `clear_refs` locks the address space for writing; [`ScanStatistics::locked`] sums that.
//!
//! # Interference
//!
//! There is one bit per page, not one per reader: the kernel's own LRU, idle page tracking, DAMON and these
//! sources take accesses from each other, so the kernel may reclaim or demote a page earlier. Only accounting
//! is affected, never contents.

mod clear_refs;
mod damon;
mod idle_bitmap;
mod idle_pages;
mod pagemap;
mod process_files;
mod range_set;
mod sampler;
mod schedule;
mod settings;
mod smaps;
mod source;

use std::ops::Range;

use isotherm_core::Nanos;

use crate::LinuxError;
use crate::process::Pid;

pub use clear_refs::{ClearRefs, FAULT};
pub use damon::{Damon, KDAMONDS};
pub use idle_pages::IdlePages;
pub use settings::{Pace, Resolution};
#[cfg(fuzzing)]
pub use smaps::fuzz as fuzz_smaps;
pub use source::{BitSource, ScanStatistics};

/// Time for the page walker to set a cleared accessed bit again: its locked write to the entry.
///
/// Measured in a virtual machine with nested paging on a busy AMD EPYC (`benches/accessed.rs`, `program/`):
/// 265 ns per page in sequence, up to 1,100 ns at random, without page faults.
pub const WALK: Nanos = Nanos(300);

pub trait Scanner: Send + Sync + 'static {
    /// State that it keeps per process.
    type Target: Send;

    /// Returns the name in kebab-case, as in `--source`.
    fn name(&self) -> &'static str;

    fn open(&self, process: Pid) -> Result<Self::Target, LinuxError>;

    /// Reads what was accessed since the last scan and clears the bits.
    fn scan(&self, target: &mut Self::Target, found: &mut Found) -> Result<(), LinuxError>;
}

/// How much each page of a range was accessed, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat {
    /// Accesses that each page stands for: looks at which the page looked at was accessed.
    pub accesses: u32,
    /// Pages that each such look speaks for.
    pub pages: u64,
}

impl Heat {
    /// The heat of a page that was looked at itself, once.
    const SEEN: Self = Self { accesses: 1, pages: 1 };
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Present accessed pages, to be delivered as accesses, in the order of addresses.
    pub pages: Vec<Range<u64>>,
    /// Heat of each range of `pages`; empty if each page was looked at once and found accessed.
    pub heat: Vec<Heat>,
    /// Ranges to report as accessed when queried; they may contain addresses without a page.
    pub accessed: Vec<Range<u64>>,
    /// Mappings with present pages, where the scanner tells: their pages, and how many were accessed.
    pub mappings: Vec<(Range<u64>, u64, u64)>,
    /// Present pages whose bits were read.
    pub walked: u64,
    /// Walked pages that were accessed.
    pub referenced: u64,
    /// Accessed pages that cannot be told apart from others, and hence are not delivered.
    pub undecided: u64,
    /// Time for which faults and changes of mappings were blocked.
    pub locked: Nanos,
    /// Estimated time that the program's threads lose to the bits being set again.
    pub program_time: Nanos,
    /// Processor time of the kernel's own thread since the last scan: it works at its own pace, however often
    /// this scans.
    pub kernel_cpu: Nanos,
    /// Time that the program's threads lost to it.
    pub lost_to_kernel: Nanos,
}

impl Found {
    pub fn clear(&mut self) {
        let Self { mut pages, mut heat, mut accessed, mut mappings, .. } = std::mem::take(self);
        pages.clear();
        heat.clear();
        accessed.clear();
        mappings.clear();
        *self = Self { pages, heat, accessed, mappings, ..Self::default() };
    }
}
