//! Scanner by DAMON, which learns the heat of regions from one page of each.
//!
//! A kernel thread (kdamond) looks at one page of each region every [`SAMPLE`]. It joins regions of like heat
//! and splits others ([`REGIONS`] of them, whatever the memory's size), and counts over [`CHECKS`] looks how
//! often the page was accessed (the kernel's Documentation/admin-guide/mm/damon/usage.rst and
//! Documentation/mm/damon/design.rst). A scan asks for the regions as they are and delivers their present
//! pages with that count as heat. A look says as much of a region of a million pages as of one of a single
//! page: the region's mean is known to as many accesses as looks found, however many pages are delivered.
//!
//! Each process has a kdamond of its own, since regions do not say whose they are. The kernel sets up all of
//! them at once, and only while none runs: there is one user of DAMON at a time. [`Damon`] refuses where
//! another's kdamond runs, replaces those that are stopped, and leaves none.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isotherm_core::Nanos;

use super::pagemap::{PAGE, Pagemap};
use super::process_files::ProcessFiles;
use super::{Found, Heat, Scanner, WALK, smaps};
use crate::files::{Tree, decimal};
use crate::process::Pid;
use crate::sys::agent;
use crate::{LinuxError, clock};

/// Folder of the kernel threads, of all users, each under its number.
pub const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Time between two looks at a region, and looks until its count is taken: the kernel's defaults.
const SAMPLE: Nanos = Nanos(5 * Nanos::MILLISECOND.0);
const CHECKS: u64 = 20;
/// Name of the operations that observe the memory of processes.
const OPERATIONS: &str = "vaddr";
/// Fewest and most regions: the kernel's defaults.
const REGIONS: [u64; 2] = [10, 1000];
/// Time until the kernel looks at the process's mappings again.
const UPDATE: Nanos = Nanos::SECOND;
/// Kdamonds that are set up at first; twice as many whenever a process has none.
const FIRST: usize = 4;

/// The machine's DAMON. Drop stops and removes the kdamonds.
#[derive(Debug)]
pub struct Damon {
    root: PathBuf,
    kdamonds: Arc<Mutex<Kdamonds>>,
}

/// Kdamond of a process, which is stopped on drop.
#[derive(Debug)]
pub struct Target {
    files: ProcessFiles,
    kdamonds: Arc<Mutex<Kdamonds>>,
    /// Processor time of the kdamond as of the last scan.
    cpu: Nanos,
    scanned: Nanos,
    regions: Vec<Region>,
}

/// The kdamonds of this process, by number, and the processes that they observe.
#[derive(Debug)]
struct Kdamonds {
    root: PathBuf,
    observed: Vec<Option<Pid>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Region {
    start: u64,
    end: u64,
    /// Looks at which it was accessed, of [`CHECKS`].
    accesses: u32,
}

impl Damon {
    /// Fails if the kernel lacks DAMON, the user may not use it, or another does.
    pub fn new() -> Result<Self, LinuxError> {
        Self::at(Path::new("/"))
    }

    /// As [`Self::new`], with the `proc` and `sys` directories below `root`.
    pub fn at(root: &Path) -> Result<Self, LinuxError> {
        let mut kdamonds = Kdamonds { root: root.to_owned(), observed: Vec::new() };
        kdamonds.check()?;
        kdamonds.set_up(FIRST)?;
        kdamonds.check_operations()?;
        Ok(Self { root: root.to_owned(), kdamonds: Arc::new(Mutex::new(kdamonds)) })
    }
}

impl Scanner for Damon {
    type Target = Target;

    fn name(&self) -> &'static str {
        "damon"
    }

    fn open(&self, process: Pid) -> Result<Target, LinuxError> {
        let files = ProcessFiles::open(&self.root, process)?;
        Pagemap::open(&files)?;
        lock(&self.kdamonds).observe(process)?;
        Ok(Target {
            files,
            kdamonds: Arc::clone(&self.kdamonds),
            cpu: Nanos(0),
            scanned: clock::monotonic(),
            regions: Vec::new(),
        })
    }

    fn scan(&self, target: &mut Target, found: &mut Found) -> Result<(), LinuxError> {
        let Target { files, kdamonds, cpu, scanned, regions } = target;
        let used = lock(kdamonds).read(files.process(), regions)?;
        let now = clock::monotonic();
        // Each look that found an access had cleared the bit, which the page walker set again.
        let accesses: u64 = regions.iter().map(|region| u64::from(region.accesses)).sum();
        let rounds = (now - *scanned).0 / (CHECKS * SAMPLE.0);
        found.kernel_cpu = used - *cpu;
        found.lost_to_kernel = Nanos(rounds * accesses * WALK.0);
        (*cpu, *scanned) = (used, now);
        let mut pagemap = Pagemap::open(files)?;
        for region in regions.iter() {
            found.walked += (region.end - region.start) / PAGE;
            if region.accesses == 0 {
                continue;
            }
            let first = found.pages.len();
            pagemap.present(files, &(region.start..region.end), u64::MAX, &mut found.pages)?;
            let pages = found.pages[first..].iter().map(|range| (range.end - range.start) / PAGE).sum();
            found.heat.resize(found.pages.len(), Heat { accesses: region.accesses, pages });
            found.accessed.extend_from_slice(&found.pages[first..]);
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        lock(&self.kdamonds).release(self.files.process());
    }
}

impl Kdamonds {
    /// Fails if DAMON cannot be used.
    fn check(&self) -> Result<(), LinuxError> {
        let tree = Tree::new(&self.root);
        if !tree.path(KDAMONDS).exists() {
            return Err(unsupported(
                "use a kernel with CONFIG_DAMON_SYSFS=y and CONFIG_DAMON_VADDR=y, of Linux 6.2 or newer",
            ));
        }
        for number in tree.numbered(KDAMONDS, "").map_err(denied)? {
            if tree.text(&file(number as usize, "state")).map_err(denied)? == "on" {
                return Err(unsupported(&format!(
                    "another user's kdamond{number} runs; ask its owner to stop it, or stop it: echo off > {}",
                    file(number as usize, "state")
                )));
            }
        }
        Ok(())
    }

    /// Fails if DAMON cannot observe the memory of processes. Only a kdamond with a context tells.
    fn check_operations(&self) -> Result<(), LinuxError> {
        self.set(&file(0, "contexts/nr_contexts"), "1")?;
        let known = Tree::new(&self.root).text(&file(0, "contexts/0/avail_operations")).map_err(denied)?;
        match known.split_whitespace().any(|operations| operations == OPERATIONS) {
            true => Ok(()),
            false => Err(unsupported("use a kernel with CONFIG_DAMON_VADDR=y")),
        }
    }

    /// Sets up so many kdamonds, with those that observe processes started again.
    fn set_up(&mut self, count: usize) -> Result<(), LinuxError> {
        (0..self.observed.len()).for_each(|number| self.stop(number));
        self.write("nr_kdamonds", count as u64)?;
        self.observed.resize(count, None);
        let running: Vec<(usize, Pid)> =
            self.observed.iter().enumerate().filter_map(|(number, pid)| Some((number, (*pid)?))).collect();
        // One whose process has ended is released by its target.
        for (number, process) in running {
            ended_is_fine(self.start(number, process))?;
        }
        Ok(())
    }

    /// Starts a kdamond for the process.
    fn observe(&mut self, process: Pid) -> Result<(), LinuxError> {
        let free = self.observed.iter().position(Option::is_none);
        let number = match free {
            Some(number) => number,
            None => {
                let count = self.observed.len();
                self.set_up(2 * count)?;
                count
            }
        };
        self.start(number, process)?;
        self.observed[number] = Some(process);
        Ok(())
    }

    fn start(&self, number: usize, process: Pid) -> Result<(), LinuxError> {
        let own = |name: &str| file(number, name);
        let context = |name: &str| own(&format!("contexts/0/{name}"));
        self.set(&own("contexts/nr_contexts"), "1")?;
        self.set(&context("operations"), OPERATIONS)?;
        let attributes = [
            ("intervals/sample_us", SAMPLE.0 / 1000),
            ("intervals/aggr_us", CHECKS * SAMPLE.0 / 1000),
            ("intervals/update_us", UPDATE.0 / 1000),
            ("nr_regions/min", REGIONS[0]),
            ("nr_regions/max", REGIONS[1]),
        ];
        for (name, value) in attributes {
            self.set(&context(&format!("monitoring_attrs/{name}")), &value.to_string())?;
        }
        self.set(&context("targets/nr_targets"), "1")?;
        self.set(&context("targets/0/pid_target"), &process.0.to_string())?;
        // A scheme that does nothing to regions of any size, heat and age: its regions can be read.
        self.set(&context("schemes/nr_schemes"), "1")?;
        self.set(&context("schemes/0/action"), "stat")?;
        for (name, most) in [("sz", u64::MAX), ("nr_accesses", u32::MAX.into()), ("age", u32::MAX.into())] {
            self.set(&context(&format!("schemes/0/access_pattern/{name}/max")), &most.to_string())?;
        }
        let state = own("state");
        self.set(&state, "on").map_err(|error| if ended(&self.root, process) { gone(process) } else { error })
    }

    /// Reads the regions of a process, and the processor time of its kdamond so far.
    fn read(&self, process: Pid, regions: &mut Vec<Region>) -> Result<Nanos, LinuxError> {
        let number = self.observed.iter().position(|&observed| observed == Some(process));
        let Some(number) = number else { return Err(gone(process)) };
        let tree = Tree::new(&self.root);
        let asked = self.set(&file(number, "state"), "update_schemes_tried_regions");
        if tree.text_if_there(&file(number, "state"))?.is_none_or(|state| state == "off") {
            // A kdamond ends with its process.
            return Err(if ended(&self.root, process) { gone(process) } else { stopped(number) });
        }
        asked?;
        let folder = file(number, "contexts/0/schemes/0/tried_regions");
        regions.clear();
        for region in tree.numbered(&folder, "")? {
            let number =
                |name: &str| tree.parsed(&format!("{folder}/{region}/{name}"), "a number", decimal::<u64>);
            let (start, end) = (number("start")?, number("end")?);
            let accesses = number("nr_accesses")?.min(CHECKS) as u32;
            regions.extend((start < end).then_some(Region { start, end, accesses }));
        }
        regions.sort_unstable_by_key(|region| region.start);
        let pid: Option<i64> = tree.text(&file(number, "pid"))?.parse().ok();
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        Ok(Nanos(pid.map_or(0, agent::processor_time)))
    }

    /// Stops the kdamond of a process; another may have it then.
    fn release(&mut self, process: Pid) {
        if let Some(number) = self.observed.iter().position(|&observed| observed == Some(process)) {
            self.stop(number);
            self.observed[number] = None;
        }
    }

    fn stop(&self, number: usize) {
        if self.observed[number].is_some() {
            // One that has ended with its process cannot be stopped, and need not be.
            let _ = self.set(&file(number, "state"), "off");
        }
    }

    fn write(&self, name: &str, value: u64) -> Result<(), LinuxError> {
        self.set(&format!("{KDAMONDS}/{name}"), &value.to_string())
    }

    fn set(&self, name: &str, value: &str) -> Result<(), LinuxError> {
        let path = Tree::new(&self.root).path(name);
        fs::write(&path, value).map_err(|error| denied(LinuxError::file(path, error)))
    }
}

impl Drop for Kdamonds {
    fn drop(&mut self) {
        (0..self.observed.len()).for_each(|number| self.stop(number));
        if !self.observed.is_empty() {
            // Fails only where another user's runs by now: then they are not ours to remove.
            let _ = self.write("nr_kdamonds", 0);
        }
    }
}

fn lock(kdamonds: &Mutex<Kdamonds>) -> MutexGuard<'_, Kdamonds> {
    kdamonds.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file(kdamond: usize, name: &str) -> String {
    format!("{KDAMONDS}/{kdamond}/{name}")
}

fn stopped(kdamond: usize) -> LinuxError {
    let what = format!("kdamond{kdamond} was stopped by another user of DAMON: nothing is sampled any more");
    LinuxError::Device(what.into())
}

fn gone(process: Pid) -> LinuxError {
    LinuxError::Ended(process.0)
}

/// Returns whether a process has ended: it has no memory any more, though it may wait for its parent.
fn ended(root: &Path, process: Pid) -> bool {
    let ranges = ProcessFiles::open(root, process).and_then(|files| smaps::ranges(&files, &mut Vec::new()));
    matches!(ranges, Err(LinuxError::Ended(_)))
}

fn ended_is_fine(outcome: Result<(), LinuxError>) -> Result<(), LinuxError> {
    match outcome {
        Err(LinuxError::Ended(_)) => Ok(()),
        outcome => outcome,
    }
}

fn unsupported(remedy: &str) -> LinuxError {
    LinuxError::Unsupported { what: "DAMON", remedy: remedy.to_owned() }
}

/// Explains an error of DAMON's files.
fn denied(error: LinuxError) -> LinuxError {
    match &error {
        LinuxError::File { error: cause, .. } if cause.kind() == ErrorKind::PermissionDenied => {
            LinuxError::Permission {
                what: "DAMON",
                needs: "root in the first user namespace",
                remedy: "run isotherm with sudo".to_owned(),
            }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
