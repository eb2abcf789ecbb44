//! Present and swapped pages of a process, by PAGEMAP_SCAN or reads
//! (Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::BASE;
use crate::LinuxError;
use crate::process::{Pid, ProcRoot};
use crate::sys::pagemap::{self as sys, PageRegion, category, entry};
use crate::sys::range::Range64;

/// Most entries per read: 512 KiB hide the call's own cost and still fit the second-level cache.
const ENTRIES: usize = 64 << 10;
/// Fewest entries per read: below 4 KiB the call's own cost shows.
const MIN_ENTRIES: usize = 512;
/// Regions per scan: 12 KiB.
const REGIONS: usize = 512;
/// Written by [`Pagemap::frames`] where no page is present.
pub const ABSENT: u64 = 0;

/// Neighbouring pages that are present, or that are in swap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageRun {
    pub start: u64,
    /// Number of 4 KiB pages.
    pub pages: u64,
    /// Whether huge pages map them (2 MiB, whole or in the part asked for), where the kernel tells.
    pub huge: Option<bool>,
    /// Whether they are in swap, compressed memory before it included.
    pub swapped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    pub runs: usize,
    /// Address to go on from; the range's end when the scan is complete.
    pub next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// PAGEMAP_SCAN (Linux 6.7): the kernel makes the runs. Leaves out the shared page of zeros.
    Scan,
    /// Reads of eight bytes per page.
    Read,
}

/// The page table of one address space: after exec or exit every call returns [`LinuxError::Ended`].
#[derive(Debug)]
pub struct Pagemap {
    file: File,
    pid: Pid,
    root: ProcRoot,
    method: Method,
    entries: Vec<u64>,
    regions: Vec<PageRegion>,
}

impl Pagemap {
    /// Opens a process's page table, with the fastest method that the kernel has.
    pub fn open(root: &ProcRoot, pid: Pid) -> Result<Self, LinuxError> {
        let file = root.open(pid, "pagemap")?;
        let mut pagemap = Self {
            file,
            pid,
            root: root.clone(),
            method: Method::Read,
            entries: Vec::new(),
            regions: vec![PageRegion::default(); REGIONS],
        };
        // Also keeps the ioctl away from a zombie, which has no memory.
        pagemap.check_alive()?;
        if scan_present(&pagemap.file, 0..BASE, &mut pagemap.regions).is_ok() {
            pagemap.method = Method::Scan;
        }
        Ok(pagemap)
    }

    /// Selects a method other than the fastest, for comparison.
    #[must_use]
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// Writes the present and the swapped pages of `range`, widened to whole pages, in address order until
    /// `runs` is full.
    pub fn scan(&mut self, range: Range<u64>, runs: &mut [PageRun]) -> Result<Scanned, LinuxError> {
        let (start, end) = (range.start & !(BASE - 1), range.end.next_multiple_of(BASE));
        let mut done = Scanned { runs: 0, next: start };
        while done.next < end && done.runs < runs.len() {
            let free = &mut runs[done.runs..];
            let step = match self.method {
                Method::Scan => self.scan_regions(done.next..end, free)?,
                Method::Read => self.scan_entries(done.next..end, free)?,
            };
            done = Scanned { runs: done.runs + step.runs, next: step.next };
        }
        Ok(done)
    }

    /// Writes the frame behind each page from `start` on, or [`ABSENT`]; needs CAP_SYS_ADMIN.
    pub fn frames(&mut self, start: u64, frames: &mut [u64]) -> Result<(), LinuxError> {
        let mut address = start & !(BASE - 1);
        for piece in frames.chunks_mut(ENTRIES) {
            self.read_entries(address, piece.len())?;
            for (frame, &entry) in piece.iter_mut().zip(&self.entries) {
                *frame = if entry & entry::PRESENT == 0 { ABSENT } else { entry & entry::FRAME };
                if entry & entry::PRESENT != 0 && *frame == 0 {
                    return Err(LinuxError::Permission {
                        what: "reading frame numbers from /proc/PID/pagemap",
                        needs: "CAP_SYS_ADMIN",
                        remedy: "run as root, or setcap cap_sys_admin+ep \"$(command -v isotherm)\"".into(),
                    });
                }
            }
            address += piece.len() as u64 * BASE;
        }
        Ok(())
    }

    /// Writes whether each of these addresses is in swap.
    pub fn swapped(&mut self, addresses: &[u64], swapped: &mut Vec<bool>) -> Result<(), LinuxError> {
        for &address in addresses {
            self.read_entries(address & !(BASE - 1), 1)?;
            swapped.push(self.entries[0] & (entry::PRESENT | entry::SWAPPED) == entry::SWAPPED);
        }
        Ok(())
    }

    fn scan_regions(&mut self, range: Range<u64>, runs: &mut [PageRun]) -> Result<Scanned, LinuxError> {
        let room = runs.len().min(REGIONS);
        let scanned = scan_present(&self.file, range.clone(), &mut self.regions[..room]);
        let (found, next) = scanned.map_err(|error| self.failure(error))?;
        if found == 0 {
            self.check_alive()?;
        }
        for (run, region) in runs.iter_mut().zip(&self.regions[..found]) {
            *run = PageRun {
                start: region.range.start,
                pages: region.range.length() / BASE,
                huge: Some(region.categories & category::HUGE != 0),
                swapped: region.categories & category::SWAPPED != 0,
            };
        }
        // A walk that makes no progress would never end.
        Ok(Scanned { runs: found, next: if next > range.start { next } else { range.end } })
    }

    fn scan_entries(&mut self, range: Range<u64>, runs: &mut [PageRun]) -> Result<Scanned, LinuxError> {
        // Entries without a free run would be read again; at worst every other page starts a run.
        let useful = (2 * runs.len()).clamp(MIN_ENTRIES, ENTRIES);
        let pages = ((range.end - range.start) / BASE).min(useful as u64) as usize;
        self.read_entries(range.start, pages)?;
        let (runs_found, covered) = runs_of(&self.entries, range.start, runs);
        Ok(Scanned { runs: runs_found, next: range.start + covered as u64 * BASE })
    }

    /// Reads `count` entries; entries beyond the address space are absent.
    fn read_entries(&mut self, start: u64, count: usize) -> Result<(), LinuxError> {
        self.entries.resize(count, 0);
        let bytes = sys::bytes_of(&mut self.entries);
        let (mut done, first) = (0, start / BASE * 8);
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], first + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
        bytes[done..].fill(0);
        if done == 0 && count > 0 { self.check_alive() } else { Ok(()) }
    }

    /// Checks that the address space still exists: then the first page's entry can be read.
    fn check_alive(&self) -> Result<(), LinuxError> {
        match self.file.read_at(&mut [0; 8], 0) {
            Ok(0) => Err(LinuxError::Ended(self.pid.0)),
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: io::Error) -> LinuxError {
        self.root.failure(self.pid, self.root.file(self.pid, "pagemap"), error)
    }
}

/// Finds present and swapped pages except the page of zeros.
fn scan_present(pagemap: &File, range: Range<u64>, regions: &mut [PageRegion]) -> io::Result<(usize, u64)> {
    let range = Range64 { start: range.start, end: range.end };
    let categories = (category::PRESENT | category::SWAPPED, category::ZERO);
    sys::scan(pagemap.as_fd(), range, categories, regions).map_err(io::Error::from_raw_os_error)
}

/// Joins present entries to runs, and swapped ones; returns how many runs and entries covered: all, unless
/// `runs` is full.
fn runs_of(entries: &[u64], start: u64, runs: &mut [PageRun]) -> (usize, usize) {
    let (mut found, mut at) = (0, 0);
    loop {
        let kind = |entry: u64| entry & (entry::PRESENT | entry::SWAPPED);
        at += entries[at..].iter().take_while(|&&entry| kind(entry) == 0).count();
        if at == entries.len() || found == runs.len() {
            return (found, at);
        }
        let first = kind(entries[at]);
        let pages = entries[at..].iter().take_while(|&&entry| kind(entry) == first).count();
        let swapped = first & entry::SWAPPED != 0;
        runs[found] = PageRun { start: start + at as u64 * BASE, pages: pages as u64, huge: None, swapped };
        (found, at) = (found + 1, at + pages);
    }
}

#[cfg(test)]
mod tests;
