//! Defines grains: a program's own large mappings, split so that accesses are seen more finely from outside.
//!
//! The kernel accounts accesses (`Referenced` in smaps) by mapping. Two neighbours become one mapping if all of their
//! flags are the same, so advice that changes a flag of every other grain splits a mapping into grains, and
//! [`ClearRefs`](super::ClearRefs) then sees each of them, exactly at 4 KiB. Only the program itself can do so: this is
//! for an agent inside of it.
//!
//! # Which flag
//!
//! One whose change has no effect on this machine ([`Mark::harmless`]), the first of these:
//! - [`Mark::CoreDump`] (`MADV_DONTDUMP`) leaves half of the grains out of core dumps: harmless where core files are
//!   off. It is undone without a trace.
//! - [`Mark::HugePages`] (`MADV_HUGEPAGE` against `MADV_NOHUGEPAGE`): harmless where transparent huge pages are off, or
//!   given on request only and no size that is fits into a grain. There is no advice for "neither", so that after a
//!   join the range has `MADV_NOHUGEPAGE`.
//!
//! # What is refused
//!
//! - Grains so many that the process would have more than [`MAX_OF_LIMIT`] of `vm.max_map_count`: at the limit, the
//!   program's own mmap, mprotect and even free fail.
//! - Grains below 2 MiB in mappings that the kernel backs with huge pages: it could not any more.
//!
//! Stacks, devices, hugetlb, shared and file mappings, and those with one of the flags already, are passed over.
//!
//! # What the program must not do meanwhile
//!
//! mremap(2) of more than one grain fails (`EFAULT`): whoever splits must [`join`](Grains::join) before, or intercept
//! it. Everything else (mprotect, munmap, madvise over many grains, fork) works, and takes longer the more mappings
//! there are. The C library falls back to a copy where its mremap in realloc(3) fails. Joined grains that had their
//! first pages while split can remain mappings of their own: the kernel merges only what has a common reverse map.
//!
//! Splitting and joining 2 GiB of present pages takes 0.12 s with grains of 2 MiB and 0.4 s with 64 KiB on a busy
//! machine (`benches/accessed.rs`). Much of that is the kernel's walk for smaps, which alone tells a mapping's flags.

use std::fs;
use std::ops::Range;
use std::path::Path;

use isotherm_core::Bytes;

use super::pagemap::PAGE;
use super::process_files::ProcessFiles;
use super::smaps::{self, Mapping};
use crate::LinuxError;
use crate::process::Pid;
use crate::sys::pages::{Advice, advise};
use crate::sys::process::core_files_are_off;

/// The share of `vm.max_map_count` that a process may have in mappings after a split: the rest is the program's.
pub const MAX_OF_LIMIT: f64 = 0.75;

const HUGE: u64 = 2 << 20;
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const WHAT: &str = "splitting mappings into grains";

/// The flag that tells neighbours apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Every other grain is left out of core dumps.
    CoreDump,
    /// Grains are in turn advised for and against huge pages.
    HugePages,
}

/// A range that was split, and what it takes to join it again.
///
/// Dropping it leaves the grains as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Grains {
    mark: Mark,
    grain: u64,
    /// The split parts of the range.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    range: Range<u64>,
    /// It was advised for huge pages before.
    huge: bool,
}

impl Mark {
    /// The mark that changes nothing on this machine for grains of this size.
    pub fn harmless(grain: Bytes) -> Result<Self, LinuxError> {
        if core_dumps_are_off() {
            Ok(Self::CoreDump)
        } else if huge_advice_is_void(Path::new(THP), grain) {
            Ok(Self::HugePages)
        } else {
            let remedy = "turn core files off (ulimit -c 0, and no '|' in /proc/sys/kernel/core_pattern) or \
                          transparent huge pages (echo never > /sys/kernel/mm/transparent_hugepage/enabled)";
            Err(LinuxError::Unsupported { what: WHAT, remedy: remedy.to_owned() })
        }
    }
}

/// Splits the mappings of this process in `range` into grains, with the harmless mark.
///
/// `grain` is a power of two of at least 4 KiB; grains begin at multiples of it. Either all is split or, on an error,
/// nothing.
pub fn split(range: Range<u64>, grain: Bytes) -> Result<Grains, LinuxError> {
    split_with(Mark::harmless(grain)?, range, grain)
}

/// As [`split`], with a mark that the caller answers for.
pub fn split_with(mark: Mark, range: Range<u64>, grain: Bytes) -> Result<Grains, LinuxError> {
    if !grain.0.is_power_of_two() || grain.0 < PAGE {
        let remedy = format!("a grain is a power of two of at least {PAGE} bytes, not {}", grain.0);
        return Err(LinuxError::Unsupported { what: WHAT, remedy });
    }
    let files = ProcessFiles::open(Path::new("/"), Pid(std::process::id()))?;
    let mut mappings = Vec::new();
    smaps::read(&files, range.end, &mut mappings)?;
    let parts: Vec<Part> = mappings.iter().filter_map(|mapping| part(mapping, &range, mark, grain)).collect();
    allow(&files, &parts, grain)?;
    let grains = Grains { mark, grain: grain.0, parts };
    match grains.advise() {
        Ok(()) => Ok(grains),
        Err(error) => {
            grains.join()?;
            Err(error)
        }
    }
}

/// The part of the mapping to split.
fn part(mapping: &Mapping, range: &Range<u64>, mark: Mark, grain: Bytes) -> Option<Part> {
    let flags = mapping.flags;
    let marked = match mark {
        Mark::CoreDump => flags.no_dump,
        Mark::HugePages => flags.no_huge && flags.huge,
    };
    let divides_huge = mapping.huge_eligible && grain.0 < HUGE;
    if !mapping.anonymous || flags.special || marked || divides_huge {
        return None;
    }
    let range = mapping.range.start.max(range.start)..mapping.range.end.min(range.end);
    (range.start < range.end).then_some(Part { range, huge: flags.huge })
}

/// Refuses more mappings than may be.
fn allow(files: &ProcessFiles, parts: &[Part], grain: Bytes) -> Result<(), LinuxError> {
    let mut ranges = Vec::new();
    smaps::ranges(files, &mut ranges)?;
    let limit = most_mappings()?;
    let most = ((limit as f64 * MAX_OF_LIMIT) as u64).saturating_sub(ranges.len() as u64);
    let bytes: u64 = parts.iter().map(|part| part.range.end - part.range.start).sum();
    let wanted = bytes / grain.0 + parts.len() as u64;
    if wanted <= most {
        return Ok(());
    }
    let finest = (bytes / most.saturating_sub(parts.len() as u64).max(1)).max(1).next_power_of_two() * 2;
    let remedy = format!(
        "{wanted} more mappings exceed {:.0} % of vm.max_map_count ({limit}): take grains of {} KiB, or \
         sysctl vm.max_map_count={}",
        MAX_OF_LIMIT * 100.0,
        finest >> 10,
        ((wanted + ranges.len() as u64) as f64 / MAX_OF_LIMIT).ceil(),
    );
    Err(LinuxError::Unsupported { what: WHAT, remedy })
}

fn most_mappings() -> Result<u64, LinuxError> {
    let path = "/proc/sys/vm/max_map_count";
    let text = fs::read_to_string(path).map_err(|error| LinuxError::file(path, error))?;
    let malformed = |_| LinuxError::Format { path: path.into(), expected: "a number", found: text.clone() };
    text.trim().parse().map_err(malformed)
}

impl Grains {
    /// The number of grains.
    pub fn count(&self) -> usize {
        self.parts.iter().map(|part| self.of(part).count()).sum()
    }

    /// The grains of all parts, in the order of addresses.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.parts.iter().flat_map(|part| self.of(part))
    }

    /// The grains of one part; the first and the last may be smaller.
    fn of(&self, part: &Part) -> impl Iterator<Item = Range<u64>> + use<> {
        let (grain, Range { start, end }) = (self.grain, part.range.clone());
        (start / grain..end.div_ceil(grain))
            .map(move |at| (at * grain).max(start)..((at + 1) * grain).min(end))
    }

    fn advise(&self) -> Result<(), LinuxError> {
        let odd = |range: &Range<u64>| (range.start / self.grain) % 2 == 1;
        let [even, other] = match self.mark {
            Mark::CoreDump => [None, Some(Advice::NoDump)],
            Mark::HugePages => [Some(Advice::NoHugePages), Some(Advice::HugePages)],
        };
        for range in self.ranges() {
            if let Some(advice) = if odd(&range) { other } else { even } {
                given(&range, advice)?;
            }
        }
        Ok(())
    }

    /// Takes the marks back, so that the kernel can merge the grains. What was unmapped meanwhile is passed over.
    pub fn join(&self) -> Result<(), LinuxError> {
        for part in &self.parts {
            let advice = match self.mark {
                Mark::CoreDump => Advice::Dump,
                Mark::HugePages if part.huge => Advice::HugePages,
                Mark::HugePages => Advice::NoHugePages,
            };
            match advise(&part.range, advice) {
                Err(error) if error.raw_os_error() != Some(libc::ENOMEM) => {
                    return Err(LinuxError::Call { call: "madvise", error });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Joins grains: [`Grains::join`].
pub fn join(grains: &Grains) -> Result<(), LinuxError> {
    grains.join()
}

fn given(range: &Range<u64>, advice: Advice) -> Result<(), LinuxError> {
    advise(range, advice).map_err(|error| LinuxError::Call { call: "madvise", error })
}

/// Whether this process leaves no core file. A program that a `|` names gets the core whatever the limit.
fn core_dumps_are_off() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern");
    core_files_are_off() && pattern.is_ok_and(|pattern| !pattern.starts_with('|'))
}

/// Whether advice for or against huge pages changes nothing for mappings of at most the grain's size
/// (Documentation/admin-guide/mm/transhuge.rst).
fn huge_advice_is_void(directory: &Path, grain: Bytes) -> bool {
    let selected = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
    };
    let Some(top) = selected(&directory.join("enabled")) else {
        return !directory.exists(); // compiled without
    };
    if !directory.join(format!("hugepages-{}kB", HUGE >> 10)).exists() {
        return top == "never" || (top == "madvise" && grain.0 < HUGE); // a kernel with one size
    }
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.flatten().all(|entry| {
        let name = entry.file_name();
        let Some(kilobytes) =
            name.to_str().and_then(|name| name.strip_prefix("hugepages-")?.strip_suffix("kB"))
        else {
            return true;
        };
        let fits = kilobytes.parse::<u64>().is_ok_and(|kilobytes| kilobytes << 10 <= grain.0);
        match selected(&entry.path().join("enabled")).as_deref() {
            Some("never") => true,
            Some("inherit") => top == "never" || (top == "madvise" && !fits),
            Some("madvise") => !fits,
            _ => false,
        }
    }) && top != "always"
}

#[cfg(test)]
mod tests;
