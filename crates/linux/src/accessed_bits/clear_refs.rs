//! Scanner that needs no privilege over one's own programs: `clear_refs` and `smaps`.
//!
//! `Referenced` in `/proc/PID/smaps` sums, for each mapping, its present pages whose accessed bit is set;
//! writing `1` to `/proc/PID/clear_refs` clears the bits. Two things stand between that and an answer.
//!
//! **The TLB.** `1` clears the bits and flushes nothing (`clear_refs_write` in fs/proc/task_mmu.c): pages
//! whose translations stay in a TLB set no bit, so the hottest pages would vanish. `4` (clear soft-dirty)
//! ends with `flush_tlb_mm` in every configuration and clears no accessed bits; hence `1`, then `4`. Where
//! soft-dirty is compiled in, `4` also write-protects the pages, so that the next store to each faults, at
//! [`FAULT`], and it takes soft-dirty bits from others (CRIU) that may use them. Accesses between the walk of
//! smaps and the flush are missed or seen twice.
//!
//! **The resolution is the mapping**: the number of its accessed pages, not which. A mapping accessed in full
//! or not at all is exact. For others [`Resolution`] chooses:
//! - As accesses: the pages of a mapping are delivered only if at least [`Resolution::sampled`] of its
//!   present pages were accessed, and then all of them. Other mappings deliver nothing, and their accessed
//!   pages count as undecided: spreading them over the mapping would make up a uniform hotness.
//! - As accessed bits of ranges: a range is accessed if at least [`Resolution::accessed`] of its mapping's
//!   present pages were.
//! - A mapping within one page of the run's size (2 MiB with huge pages) is decided by any access, exactly.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use isotherm_core::Nanos;

use super::pagemap::{PAGE, Pagemap};
use super::process_files::ProcessFiles;
use super::smaps::{self, Mapping};
use super::{Found, Resolution, Scanner, WALK};
use crate::process::Pid;
use crate::{LinuxError, clock};

/// Cost of a store to a page that the flush has write-protected, where soft-dirty is compiled in.
pub const FAULT: Nanos = Nanos(700);

#[derive(Debug)]
pub struct ClearRefs {
    root: PathBuf,
    resolution: Resolution,
}

#[derive(Debug)]
pub struct Target {
    files: ProcessFiles,
    clear: File,
    mappings: Vec<Mapping>,
}

impl ClearRefs {
    /// Fails if the kernel was compiled without `clear_refs`.
    pub fn new(resolution: Resolution) -> Result<Self, LinuxError> {
        Self::at(Path::new("/"), resolution)
    }

    /// As [`Self::new`], with the `proc` directory below `root`.
    pub fn at(root: &Path, resolution: Resolution) -> Result<Self, LinuxError> {
        if !root.join("proc/self/clear_refs").exists() {
            return Err(LinuxError::Unsupported {
                what: "clear_refs",
                remedy: "mount /proc, or use a kernel with CONFIG_PROC_PAGE_MONITOR=y".to_owned(),
            });
        }
        Ok(Self { root: root.to_owned(), resolution })
    }

    /// Returns how many of a mapping's present pages are delivered, from the first, and whether it counts as
    /// accessed.
    fn decide(&self, mapping: &Mapping) -> (u64, bool) {
        let share = mapping.referenced as f64 / mapping.present.max(1) as f64;
        let shift = self.resolution.page_size.shift();
        let within_page = mapping.range.start >> shift == (mapping.range.end - 1) >> shift;
        match mapping.referenced {
            0 => (0, false),
            referenced if within_page => (referenced, true),
            _ => {
                let pages = if share >= self.resolution.sampled { mapping.present } else { 0 };
                (pages, share >= self.resolution.accessed)
            }
        }
    }
}

impl Scanner for ClearRefs {
    type Target = Target;

    fn name(&self) -> &'static str {
        "accessed-bits"
    }

    fn open(&self, process: Pid) -> Result<Target, LinuxError> {
        let files = ProcessFiles::open(&self.root, process)?;
        let clear = files.write("clear_refs")?;
        files.read("smaps")?;
        Ok(Target { files, clear, mappings: Vec::new() })
    }

    fn scan(&self, target: &mut Target, found: &mut Found) -> Result<(), LinuxError> {
        smaps::read(&target.files, &mut target.mappings)?;
        let began = clock::monotonic();
        // One write each: the kernel reads one digit per write.
        for digit in [b"1", b"4"] {
            target.clear.write_all(digit).map_err(|error| target.files.error("clear_refs", error))?;
        }
        found.locked = clock::monotonic() - began;
        let (mut pagemap, mut protected) = (None, false);
        for mapping in &target.mappings {
            found.walked += mapping.present;
            found.referenced += mapping.referenced;
            protected |= mapping.soft_dirty;
            if mapping.present > 0 {
                found.mappings.push((mapping.range.clone(), mapping.present, mapping.referenced));
            }
            let (pages, accessed) = self.decide(mapping);
            if accessed {
                found.accessed.push(mapping.range.clone());
            }
            if pages == 0 {
                found.undecided += mapping.referenced;
            } else {
                deliver(mapping, pages, &target.files, &mut pagemap, &mut found.pages)?;
            }
        }
        let each = WALK + if protected { FAULT } else { Nanos(0) };
        found.program_time = Nanos(found.referenced * each.0);
        Ok(())
    }
}

fn deliver(
    mapping: &Mapping,
    pages: u64,
    files: &ProcessFiles,
    pagemap: &mut Option<Pagemap>,
    runs: &mut Vec<Range<u64>>,
) -> Result<(), LinuxError> {
    let Range { start, end } = mapping.range;
    if mapping.present * PAGE >= end - start {
        runs.push(start..end.min(start + pages * PAGE));
        return Ok(());
    }
    let pagemap = match pagemap {
        Some(pagemap) => pagemap,
        None => pagemap.insert(Pagemap::open(files)?),
    };
    pagemap.present(files, &mapping.range, pages, runs)
}
