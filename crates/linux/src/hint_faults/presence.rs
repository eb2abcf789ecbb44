//! Present pages: `PAGEMAP_SCAN` (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst).

use crate::sys::agent as sys;
use crate::sys::pagemap::{PageRegion, category, scan};
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;
use std::os::fd::{AsFd, OwnedFd};

/// Most runs per call.
pub(super) const RUNS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Present {
    pub(super) range: Range64,
    /// Whether they are huge pages of the page table.
    pub(super) huge: bool,
}

pub(super) struct Presence(pub(super) OwnedFd);

impl Presence {
    pub(super) fn open() -> Result<Self, i32> {
        let presence = Self(sys::open(c"/proc/self/pagemap")?);
        // Fails before Linux 6.7.
        presence.scan(Range64 { start: PAGE, end: 2 * PAGE }, &mut [Present::default(); RUNS])?;
        Ok(presence)
    }

    /// Finds present, anonymous pages but that of zeros; returns the number of runs and where to go on.
    pub(super) fn scan(&self, range: Range64, runs: &mut [Present; RUNS]) -> Result<(usize, u64), i32> {
        let mut regions = [PageRegion::default(); RUNS];
        let categories = (category::PRESENT, category::FILE | category::SWAPPED | category::ZERO);
        let (found, next) = scan(self.0.as_fd(), range, categories, &mut regions)?;
        for (run, region) in runs.iter_mut().zip(&regions[..found]) {
            *run = Present { range: region.range, huge: region.categories & category::HUGE != 0 };
        }
        Ok((found, next.max(range.start)))
    }

    /// Returns how many pages from the start of the range are `there`, present or in swap, or are not.
    pub(super) fn leading(&self, range: Range64, there: bool) -> u64 {
        let mut region = [PageRegion::default()];
        let categories = (category::PRESENT | category::SWAPPED, 0);
        let mut end = range.start;
        while end < range.end {
            let Ok((found, _)) =
                scan(self.0.as_fd(), Range64 { start: end, ..range }, categories, &mut region)
            else {
                break;
            };
            let next = if found > 0 { region[0].range } else { Range64 { start: range.end, end: range.end } };
            match there {
                true if next.start == end => end = next.end,
                true => break,
                false => return (next.start - range.start) / PAGE,
            }
        }
        (end - range.start) / PAGE
    }

    /// Counts present pages of any kind.
    pub(super) fn count(&self, range: Range64) -> u64 {
        let mut regions = [PageRegion::default(); RUNS];
        let (mut pages, mut start) = (0, range.start);
        while start < range.end {
            let rest = Range64 { start, end: range.end };
            let Ok((found, next)) = scan(self.0.as_fd(), rest, (category::PRESENT, 0), &mut regions) else {
                break;
            };
            pages += regions[..found].iter().map(|region| region.range.length() / PAGE).sum::<u64>();
            if next <= start {
                break;
            }
            start = next;
        }
        pages
    }
}
