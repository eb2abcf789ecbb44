//! Defines which pages are there: `PAGEMAP_SCAN` (Linux 6.7, `Documentation/admin-guide/mm/pagemap.rst`).

use std::os::fd::{AsRawFd, OwnedFd};

use super::sys;
use super::userfault::Range64;

const IOC_SCAN: u64 = 0xc060_6610;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO: u64 = 1 << 5;
const IS_HUGE: u64 = 1 << 6;

/// Runs that one call returns at most.
pub(super) const RUNS: usize = 64;

/// Present pages side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Present {
    pub(super) range: Range64,
    /// Whether they are huge pages of the page table.
    pub(super) huge: bool,
}

/// `/proc/self/pagemap`, kept open.
pub(super) struct Presence {
    file: OwnedFd,
}

impl Presence {
    pub(super) fn open() -> Result<Self, i32> {
        let presence = Self { file: sys::open(c"/proc/self/pagemap")? };
        // Asks for nothing: fails if the kernel does not know how.
        presence.scan(Range64 { start: sys::PAGE, end: 2 * sys::PAGE }, &mut [Present::default(); RUNS])?;
        Ok(presence)
    }

    /// Finds present pages of the range that are anonymous and not the page of zeros; returns how many runs and where
    /// to go on.
    pub(super) fn scan(&self, range: Range64, runs: &mut [Present; RUNS]) -> Result<(usize, u64), i32> {
        let mut regions = [0u64; 3 * RUNS];
        let not = IS_FILE | IS_SWAPPED | IS_ZERO;
        // struct pm_scan_arg: size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
        // category_mask, category_anyof_mask, return_mask.
        let buffer = regions.as_mut_ptr() as usize as u64;
        let mut words =
            [96, 0, range.start, range.end, 0, buffer, RUNS as u64, 0, not, IS_PRESENT | not, 0, IS_HUGE];
        let found = sys::ioctl_words(self.file.as_raw_fd(), IOC_SCAN, &mut words)? as usize;
        let found = found.min(RUNS);
        for (run, region) in runs.iter_mut().zip(regions.chunks_exact(3)).take(found) {
            *run = Present {
                range: Range64 { start: region[0], end: region[1] },
                huge: region[2] & IS_HUGE != 0,
            };
        }
        Ok((found, words[4].max(range.start)))
    }
}
