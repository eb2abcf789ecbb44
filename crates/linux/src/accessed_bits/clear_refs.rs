//! Defines the scanner that needs no privilege over one's own programs: `clear_refs` and `smaps`.
//!
//! # Problem
//!
//! `/proc/PID/smaps` tells `Referenced` of each mapping, the sum over its present pages whose accessed bit is set (or
//! that were marked as referenced otherwise, by a read(2) of the file behind them, say); `1` written to
//! `/proc/PID/clear_refs` clears them. Two things stand between that and an answer.
//!
//! **The TLB.** `1` clears the bits and flushes nothing (`clear_refs_write` in fs/proc/task_mmu.c): pages whose
//! translations stay in a TLB set no bit. These are the hottest of all, and they vanish. `4` (clear soft-dirty) ends
//! with `flush_tlb_mm`, whatever the kernel was compiled with, and clears no accessed bits; so `1`, then `4`. Where
//! soft-dirty is compiled in, `4` also write-protects the pages, and each page's next store faults, at
//! [`FAULT`]; it also takes soft-dirty bits from others (CRIU) that may use them. Accesses between smaps' walk and
//! the flush, which follow each other at once, are missed or seen twice.
//!
//! **The resolution is the mapping**, and its number of accessed pages, not which. A mapping that was accessed in full,
//! or not at all, is exact. For one accessed in part the answer is a choice, [`Resolution`]:
//! - As accesses: pages of a mapping are delivered only if at least [`Resolution::sampled`] of its present pages were
//!   accessed, all of them then. So at most `1 - sampled` of what is delivered is wrong. Others deliver nothing, and
//!   their accessed pages are counted as undecided (`SourceStatistics::foreign`): spreading them evenly over the
//!   mapping would make up a uniform hotness that policies then act on.
//! - As accessed bits of ranges: a range is accessed if at least [`Resolution::accessed`] of its mapping's present pages
//!   were. With one half, the share of pages that are answered wrongly is the smaller of what was accessed and what was
//!   not.
//! - A mapping within one page of the run's size (2 MiB with huge pages) is decided by any access: exact.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use isotherm_core::{Nanos, PageSize};

use super::pagemap::{PAGE, Pagemap};
use super::process_files::ProcessFiles;
use super::smaps::{self, Mapping};
use super::{Found, Scanner, WALK};
use crate::LinuxError;
use crate::clock;
use crate::process::Pid;

/// What a store costs to a page that the flush has write-protected, where soft-dirty is compiled in.
pub const FAULT: Nanos = Nanos(700);

/// What is said of mappings that were accessed in part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// The share of a mapping's present pages from which on all of them are delivered as accesses.
    pub sampled: f64,
    /// The share from which on ranges of the mapping are called accessed.
    pub accessed: f64,
    /// The run's page size.
    pub page_size: PageSize,
}

impl Default for Resolution {
    /// At most 5 % of what is delivered is wrong; the majority decides about ranges; 4 KiB pages.
    fn default() -> Self {
        Self { sampled: 0.95, accessed: 0.5, page_size: PageSize::Base }
    }
}

/// Scans by `clear_refs` and `smaps`.
#[derive(Debug)]
pub struct ClearRefs {
    root: PathBuf,
    resolution: Resolution,
    walk: Nanos,
}

/// A process's open files and buffers.
#[derive(Debug)]
pub struct Target {
    files: ProcessFiles,
    clear: File,
    mappings: Vec<Mapping>,
}

impl ClearRefs {
    /// Fails if the kernel was compiled without it.
    pub fn new(resolution: Resolution) -> Result<Self, LinuxError> {
        Self::at(Path::new("/"), resolution)
    }

    /// As [`Self::new`], with the `proc` directory in `root`.
    pub fn at(root: &Path, resolution: Resolution) -> Result<Self, LinuxError> {
        if !root.join("proc/self/clear_refs").exists() {
            return Err(LinuxError::Unsupported {
                what: "clear_refs",
                remedy: "it needs /proc mounted and a kernel with CONFIG_PROC_PAGE_MONITOR=y".to_owned(),
            });
        }
        Ok(Self { root: root.to_owned(), resolution, walk: WALK })
    }

    /// Takes this as what it costs the program to have a bit set again, in place of [`WALK`].
    #[must_use]
    pub fn with_walk(self, walk: Nanos) -> Self {
        Self { walk, ..self }
    }

    /// Whether mappings accessed in part are delivered, called accessed, or neither.
    fn decide(&self, mapping: &Mapping) -> Verdict {
        let share = mapping.referenced as f64 / mapping.present.max(1) as f64;
        let shift = self.resolution.page_size.shift();
        let within_page = mapping.range.start >> shift == (mapping.range.end - 1) >> shift;
        match mapping.referenced {
            0 => Verdict { pages: 0, accessed: false },
            referenced if within_page => Verdict { pages: referenced, accessed: true },
            _ => Verdict {
                pages: if share >= self.resolution.sampled { mapping.present } else { 0 },
                accessed: share >= self.resolution.accessed,
            },
        }
    }
}

/// What is made of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Verdict {
    /// How many of its present pages, from the first on, are delivered.
    pages: u64,
    accessed: bool,
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
        smaps::read(&target.files, u64::MAX, &mut target.mappings)?;
        let began = clock::monotonic();
        // One write each: the kernel takes one digit at a time.
        for digit in [b"1", b"4"] {
            target.clear.write_all(digit).map_err(|error| target.files.error("clear_refs", error))?;
        }
        found.locked = clock::monotonic() - began;
        let mut pagemap = None;
        let mut protected = false;
        for mapping in &target.mappings {
            found.walked += mapping.present;
            found.referenced += mapping.referenced;
            protected |= mapping.flags.soft_dirty;
            let verdict = self.decide(mapping);
            if verdict.accessed {
                found.accessed.push(mapping.range.clone());
            }
            if verdict.pages == 0 {
                found.undecided += mapping.referenced;
            } else {
                deliver(mapping, verdict.pages, &target.files, &mut pagemap, &mut found.pages)?;
            }
        }
        let each = self.walk + if protected { FAULT } else { Nanos(0) };
        found.program_time = Nanos(found.referenced * each.0);
        Ok(())
    }
}

/// Appends the first `pages` present pages of the mapping.
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
