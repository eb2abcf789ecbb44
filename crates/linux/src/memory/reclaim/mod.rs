//! Reclaim to the slow tier by the kernel's own LRU: `/sys/devices/system/node/nodeN/reclaim` (Linux 6.17),
//! or `memory.reclaim` of the program's cgroup (Documentation/admin-guide/cgroup-v2.rst).
//!
//! Refused unless `/sys/kernel/mm/numa/demotion_enabled` is set: else both would swap and drop files.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use isotherm_core::Pages;

use super::BASE;
use crate::LinuxError;
use crate::process::Pid;

/// File that tells whether reclaim demotes.
pub const DEMOTION: &str = "sys/kernel/mm/numa/demotion_enabled";
/// Pages per request: a write returns only when its pages are gone, and signals must be seen meanwhile.
const PIECE: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The program's cgroup, by its directory, on every node.
    Program(PathBuf),
    /// Every program on one node, by its directory.
    Node(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaimed {
    /// Pages reclaimed: those asked for, or for a part what the kernel's counters show.
    pub pages: Pages,
    /// Pages demoted meanwhile by anybody, where the kernel counts them (Linux 5.18).
    pub demoted: Option<Pages>,
    pub complete: bool,
}

#[derive(Debug)]
pub struct Reclaimer {
    scope: Scope,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    stolen: Option<u64>,
    demoted: Option<u64>,
}

impl Reclaimed {
    /// Combines the answers and the counters for `asked` pages, of which `done` in whole pieces.
    fn of(asked: u64, done: u64, complete: bool, [before, after]: [Counted; 2]) -> Self {
        let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let demoted = grown(before.demoted, after.demoted);
        let seen = grown(before.stolen, after.stolen).max(demoted).unwrap_or(0);
        // The counters include other programs: they only refine a part, and never exceed the request.
        let pages = if complete { done } else { done.max(seen).min(asked) };
        Self { pages: Pages(pages), demoted: demoted.map(Pages), complete }
    }
}

impl Reclaimer {
    /// Finds a way to make room on `node` for a program: its own cgroup, unless it shares that with this
    /// process, `own`; else the node. `root` is `/`, or a fixture.
    pub fn find(root: &Path, program: Pid, own: Pid, node: u32) -> Result<Self, LinuxError> {
        check_demotion(root)?;
        let cgroup = |pid| cgroup_of(root, pid);
        let program = cgroup(program).filter(|found| cgroup(own).as_ref() != Some(found));
        let program = program.filter(|directory| directory.join("memory.reclaim").exists());
        let directory = root.join(format!("sys/devices/system/node/node{node}"));
        let scope = match program {
            Some(directory) => Scope::Program(directory),
            None if directory.join("reclaim").exists() => Scope::Node(directory),
            None => {
                return Err(LinuxError::Unsupported {
                    what: "reclaim by the kernel's LRU",
                    remedy: format!(
                        "needs {} (Linux 6.17), or a cgroup v2 of the program's own with memory.reclaim \
                         (Linux 5.19), as systemd-run --scope makes it",
                        directory.join("reclaim").display()
                    ),
                });
            }
        };
        Ok(Self { scope })
    }

    /// Returns a reclaimer for the programs of a cgroup v2, by its directory.
    ///
    /// # Errors
    /// Returns an error if the kernel does not demote, or the cgroup has no `memory.reclaim`.
    pub fn of_cgroup(root: &Path, directory: &Path) -> Result<Self, LinuxError> {
        check_demotion(root)?;
        let file = directory.join("memory.reclaim");
        match file.exists() {
            true => Ok(Self { scope: Scope::Program(directory.to_owned()) }),
            false => Err(LinuxError::Unsupported {
                what: "reclaim by the kernel's LRU",
                remedy: format!("needs {} (Linux 5.19, with the memory controller)", file.display()),
            }),
        }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Reclaims `pages` in pieces, until they are freed or the kernel finds no more.
    pub fn reclaim(&self, pages: Pages) -> Result<Reclaimed, LinuxError> {
        let before = self.count();
        let (mut done, mut complete) = (0, true);
        while done < pages.0 && complete {
            let piece = (pages.0 - done).min(PIECE);
            complete = self.ask(piece)?;
            done += if complete { piece } else { 0 };
        }
        Ok(Reclaimed::of(pages.0, done, complete, [before, self.count()]))
    }

    /// Makes one request; returns whether the kernel freed all of it.
    fn ask(&self, pages: u64) -> Result<bool, LinuxError> {
        let path = self.file("memory.reclaim", "reclaim");
        let file = OpenOptions::new().write(true).open(&path);
        let written = file.and_then(|mut file| file.write((pages * BASE).to_string().as_bytes()));
        meaning(written, path)
    }

    fn count(&self) -> Counted {
        // A missing file is like a kernel without the counters.
        let text = fs::read_to_string(self.file("memory.stat", "vmstat"));
        text.map(|text| counted(&text)).unwrap_or_default()
    }

    fn file(&self, of_program: &str, of_node: &str) -> PathBuf {
        match &self.scope {
            Scope::Program(directory) => directory.join(of_program),
            Scope::Node(directory) => directory.join(of_node),
        }
    }
}

/// EAGAIN: less was freed; EINTR: a signal came; EBUSY: others reclaim the node.
fn meaning(written: io::Result<usize>, path: PathBuf) -> Result<bool, LinuxError> {
    let Err(error) = written else { return Ok(true) };
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::EBUSY) => Ok(false),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Err(LinuxError::Permission {
            what: "reclaim by the kernel's LRU",
            needs: "write access to its file",
            remedy: format!("run as root, or let the user write to {}", path.display()),
        }),
        _ => Err(LinuxError::file(path, error)),
    }
}

/// Returns whether the kernel's reclaim demotes; `None` where it cannot (Linux 5.15, CONFIG_MIGRATION).
pub fn demotion_enabled(root: &Path) -> Option<bool> {
    let text = fs::read_to_string(root.join(DEMOTION)).ok()?;
    Some(matches!(text.trim(), "1" | "true"))
}

fn check_demotion(root: &Path) -> Result<(), LinuxError> {
    let remedy = match demotion_enabled(root) {
        Some(true) => return Ok(()),
        Some(false) => {
            format!("echo 1 > /{DEMOTION}; without, the kernel would swap and drop files instead of demoting")
        }
        None => format!("this kernel has no /{DEMOTION} (Linux 5.15 with CONFIG_NUMA and CONFIG_MIGRATION)"),
    };
    Err(LinuxError::Unsupported { what: "demotion by the kernel's LRU", remedy })
}

/// `memory.stat` has a total of `pgsteal` beside its parts, `vmstat` does not.
fn counted(text: &str) -> Counted {
    let entries = || text.lines().filter_map(|line| line.split_once(' '));
    let number = |value: &str| value.trim().parse::<u64>().ok();
    let sum = |prefix: &str| {
        let values = entries().filter(|(name, _)| name.starts_with(prefix));
        values.filter_map(|(_, value)| number(value)).reduce(u64::saturating_add)
    };
    let total = entries().find(|(name, _)| *name == "pgsteal").and_then(|(_, value)| number(value));
    Counted { stolen: total.or_else(|| kinds(text)), demoted: sum("pgdemote_") }
}

/// Sums `pgsteal_anon` and `pgsteal_file`, which count each page once, as the parts by reclaimer do.
fn kinds(text: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.trim().parse::<u64>().ok()
    };
    Some(value("pgsteal_anon")?.saturating_add(value("pgsteal_file")?))
}

/// Returns the directory of the process's cgroup v2, if it has one in this namespace beside the root.
pub(super) fn cgroup_of(root: &Path, pid: Pid) -> Option<PathBuf> {
    let text = fs::read(root.join(format!("proc/{}/cgroup", pid.0))).ok()?;
    let path = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::/"))?;
    if path.is_empty() || path.starts_with(b"..") {
        return None;
    }
    Some(mount_point(root)?.join(OsStr::from_bytes(path)))
}

/// Returns where cgroup v2 is mounted (`proc_pid_mountinfo(5)`).
fn mount_point(root: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mount = text.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4))?
    })?;
    Some(root.join(mount.trim_start_matches('/').replace("\\040", " ")))
}

#[cfg(test)]
mod tests;
