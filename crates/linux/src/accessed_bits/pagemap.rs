//! Entries of `/proc/PID/pagemap` (the kernel's Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::process_files::ProcessFiles;
use crate::LinuxError;
use crate::sys::pagemap::entry;

/// Bytes of a page, as pagemap counts them.
pub(super) const PAGE: u64 = 4096;
const NAME: &str = "pagemap";
const BATCH: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    /// Returns bit 63: whether the page is in memory.
    pub(super) fn present(self) -> bool {
        self.0 & entry::PRESENT != 0
    }

    /// Returns bits 0 to 54, the page frame; `None` if the page is not in memory or its frame is hidden (0).
    pub(super) fn frame(self) -> Option<u64> {
        let frame = self.0 & entry::FRAME;
        (self.present() && frame != 0).then_some(frame)
    }
}

#[derive(Debug)]
pub(super) struct Pagemap {
    file: File,
    buffer: Vec<u8>,
}

impl Pagemap {
    pub(super) fn open(files: &ProcessFiles) -> Result<Self, LinuxError> {
        Ok(Self { file: files.read(NAME)?, buffer: vec![0; BATCH * 8] })
    }

    /// Calls `each` with the address and entry of every page of `range`, in order.
    pub(super) fn entries(
        &mut self,
        files: &ProcessFiles,
        range: &Range<u64>,
        mut each: impl FnMut(u64, Entry),
    ) -> Result<(), LinuxError> {
        let mut page = range.start / PAGE;
        let end = range.end.div_ceil(PAGE);
        while page < end {
            let wanted = ((end - page) as usize).min(BATCH) * 8;
            let read = self.file.read_at(&mut self.buffer[..wanted], page * 8);
            let read = read.map_err(|error| files.error(NAME, error))?;
            if read < 8 {
                break; // The address space or the process has ended.
            }
            for entry in self.buffer[..read].as_chunks().0 {
                each(page * PAGE, Entry(u64::from_ne_bytes(*entry)));
                page += 1;
            }
        }
        Ok(())
    }

    /// Appends the runs of pages of `range` that are in memory, of at most `max` pages in all.
    pub(super) fn present(
        &mut self,
        files: &ProcessFiles,
        range: &Range<u64>,
        max: u64,
        runs: &mut Vec<Range<u64>>,
    ) -> Result<(), LinuxError> {
        let (first, mut left) = (runs.len(), max);
        self.entries(files, range, |address, entry| {
            if entry.present() && left > 0 {
                left -= 1;
                extend(runs, first, address..address + PAGE);
            }
        })
    }
}

/// Appends `page`, merged with the last range if that ends where it begins; leaves those before `first`.
pub(super) fn extend(runs: &mut Vec<Range<u64>>, first: usize, page: Range<u64>) {
    match runs[first..].last_mut() {
        Some(last) if last.end == page.start => last.end = page.end,
        _ => runs.push(page),
    }
}
