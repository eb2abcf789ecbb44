//! Scanner by idle page tracking, exact for each page.
//!
//! Frames (physical pages) are marked idle in `/sys/kernel/mm/page_idle/bitmap`, which shows which are idle
//! still when it is read (the kernel's Documentation/admin-guide/mm/idle_page_tracking.rst).
//! `/proc/PID/pagemap` maps pages to frames, for root only. Three peculiarities (mm/page_idle.c):
//! - A huge page has one mark, on its first frame; its other frames read as not idle. `/proc/kpageflags`
//!   identifies them.
//! - A frame on no LRU list (hugetlb pages, pages in a CPU's batch on their way to a list, the kernel's own)
//!   cannot be marked and reads as not idle: it counts as undecided, not as accessed.
//! - Marking clears accessed bits without a TLB flush, so the hottest pages would stay idle: `4` in
//!   `clear_refs` flushes, as in [`super::ClearRefs`].
//!
//! A frame that several processes share is accessed if any of them accessed it. A page mapped since the last
//! scan counts as accessed.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isotherm_core::Nanos;

use super::idle_bitmap::{self, has};
use super::pagemap::{PAGE, Pagemap, extend};
use super::process_files::ProcessFiles;
use super::{Found, Scanner, WALK, smaps};
use crate::LinuxError;
use crate::process::Pid;

const BITMAP: &str = "sys/kernel/mm/page_idle/bitmap";
const FLAGS: &str = "proc/kpageflags";
/// Bytes of addresses per batch: a multiple of 2 MiB, so that huge pages are not divided.
const CHUNK: u64 = 256 << 20;
/// Frames whose flags are read together: those of a huge page.
const WINDOW: u64 = 512;
/// `KPF_LRU` and `KPF_COMPOUND_TAIL` (include/uapi/linux/kernel-page-flags.h).
const LRU: u64 = 1 << 5;
const TAIL: u64 = 1 << 16;

#[derive(Debug)]
pub struct IdlePages {
    root: PathBuf,
    bitmap: File,
    flags: File,
}

#[derive(Debug)]
pub struct Target {
    files: ProcessFiles,
    pagemap: Pagemap,
    clear: File,
    ranges: Vec<Range<u64>>,
    pages: Vec<Page>,
}

/// Page of the process, and the frame that carries its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Page {
    address: u64,
    frame: u64,
    tracked: bool,
}

impl IdlePages {
    /// Fails if the kernel was compiled without idle page tracking, or the user is not root.
    pub fn new() -> Result<Self, LinuxError> {
        Self::at(Path::new("/"))
    }

    /// As [`Self::new`], with the `proc` and `sys` directories below `root`.
    pub fn at(root: &Path) -> Result<Self, LinuxError> {
        let open = |name: &str, write| {
            let path = root.join(name);
            File::options().read(true).write(write).open(&path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => LinuxError::Unsupported {
                    what: "idle page tracking",
                    remedy: "use a kernel with CONFIG_IDLE_PAGE_TRACKING=y and CONFIG_PROC_PAGE_MONITOR=y"
                        .to_owned(),
                },
                ErrorKind::PermissionDenied => denied(),
                _ => LinuxError::file(path, error),
            })
        };
        Ok(Self { root: root.to_owned(), bitmap: open(BITMAP, true)?, flags: open(FLAGS, false)? })
    }

    /// Reads the marks of one chunk's pages and marks them again.
    fn chunk(&self, target: &mut Target, range: &Range<u64>, found: &mut Found) -> Result<(), LinuxError> {
        let Target { files, pagemap, pages, .. } = target;
        pages.clear();
        let mut hidden = false;
        pagemap.entries(files, range, |address, entry| {
            hidden |= entry.present() && entry.frame().is_none();
            pages.extend(entry.frame().map(|frame| Page { address, frame, tracked: false }));
        })?;
        if hidden {
            return Err(denied());
        }
        self.resolve(pages)?;
        let mut frames = pages.iter().filter(|page| page.tracked).map(|page| page.frame).collect();
        let marks = idle_bitmap::words(&mut frames);
        let mut idle = marks.clone();
        let error = |error| LinuxError::file(self.root.join(BITMAP), error);
        idle_bitmap::read(&self.bitmap, &mut idle).map_err(error)?;
        idle_bitmap::set(&self.bitmap, &marks).map_err(error)?;
        pages.sort_unstable_by_key(|page| page.address);
        let first = found.pages.len();
        for page in pages.iter() {
            found.walked += 1;
            if !page.tracked {
                found.undecided += 1;
            } else if !has(&idle, page.frame) {
                found.referenced += 1;
                extend(&mut found.pages, first, page.address..page.address + PAGE);
            }
        }
        Ok(())
    }

    /// Replaces frames inside huge pages by their first frame, and finds which can be marked. Sorts by frame.
    fn resolve(&self, pages: &mut [Page]) -> Result<(), LinuxError> {
        pages.sort_unstable_by_key(|page| page.frame);
        let mut flags = [0; WINDOW as usize];
        let mut window = None;
        for page in pages {
            let start = page.frame / WINDOW * WINDOW;
            if window != Some(start) {
                self.read_flags(start, &mut flags)?;
                window = Some(start);
            }
            // Huge pages are aligned to their size: one of at most 2 MiB lies whole in the window.
            let at = (page.frame - start) as usize;
            let head = (0..=at).rev().find(|&at| flags[at] & TAIL == 0);
            page.tracked = head.is_some_and(|head| flags[head] & LRU != 0);
            page.frame = start + head.unwrap_or(at) as u64;
        }
        Ok(())
    }

    fn read_flags(&self, start: u64, flags: &mut [u64; WINDOW as usize]) -> Result<(), LinuxError> {
        let mut bytes = [0; WINDOW as usize * 8];
        let read = self.flags.read_at(&mut bytes, start * 8);
        read.map_err(|error| LinuxError::file(self.root.join(FLAGS), error))?;
        for (flags, bytes) in flags.iter_mut().zip(bytes.as_chunks().0) {
            *flags = u64::from_ne_bytes(*bytes);
        }
        Ok(())
    }
}

fn denied() -> LinuxError {
    LinuxError::Permission {
        what: "idle page tracking",
        needs: "root in the first user namespace (CAP_SYS_ADMIN)",
        remedy: "run isotherm with sudo".to_owned(),
    }
}

impl Scanner for IdlePages {
    type Target = Target;

    fn name(&self) -> &'static str {
        "idle-pages"
    }

    fn open(&self, process: Pid) -> Result<Target, LinuxError> {
        let files = ProcessFiles::open(&self.root, process)?;
        let pagemap = Pagemap::open(&files)?;
        let clear = files.write("clear_refs")?;
        Ok(Target { pagemap, clear, ranges: Vec::new(), pages: Vec::new(), files })
    }

    fn scan(&self, target: &mut Target, found: &mut Found) -> Result<(), LinuxError> {
        // Reopened each time: execve replaces the address space.
        target.pagemap = Pagemap::open(&target.files)?;
        let mut ranges = std::mem::take(&mut target.ranges);
        smaps::ranges(&target.files, &mut ranges)?;
        for range in &ranges {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min((start / CHUNK + 1) * CHUNK);
                self.chunk(target, &(start..end), found)?;
                start = end;
            }
        }
        target.ranges = ranges;
        target.clear.write_all(b"4").map_err(|error| target.files.error("clear_refs", error))?;
        found.accessed.clone_from(&found.pages);
        found.program_time = Nanos(found.referenced * WALK.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
