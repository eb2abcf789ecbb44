//! The memory that a verb will need: said before it begins, and refused if there is less.

use std::fs;
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;

use crate::args::MemoryArgs;
use crate::failure::Failure;
use crate::output::say;

/// Memory of the tool itself: its code, threads and tables.
const OWN: u64 = 48 << 20;

/// The memory that a run may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    most: Bytes,
    quiet: bool,
}

impl Memory {
    pub(crate) fn new(args: &MemoryArgs, quiet: bool) -> Self {
        Self { most: args.max_memory.unwrap_or_else(|| available(Path::new("/"))), quiet }
    }

    /// Returns how many items of so many bytes fit beside what else is needed.
    pub(crate) fn room(&self, beside: Bytes, bytes: u64) -> u64 {
        self.most.0.saturating_sub(beside.0.saturating_add(OWN)) / bytes
    }

    /// Says that `what` needs so much beside the tool itself; fails if there is less.
    pub(crate) fn say(&self, what: &str, need: Bytes, expected: &str) -> Result<(), Failure> {
        self.check(what, need, expected)?;
        if !self.quiet {
            let need = whole(need);
            say(&format!("isotherm: memory: about {need} for {what}, of {}\n", whole(self.most)));
        }
        Ok(())
    }

    /// Fails if there is less than so much beside the tool itself.
    pub(crate) fn check(&self, what: &str, need: Bytes, expected: &str) -> Result<(), Failure> {
        if need.0.saturating_add(OWN) <= self.most.0 {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{what}: needs about {} of memory, and {} may be taken (--max-memory); expected {expected}",
            Bytes(need.0.saturating_add(OWN)),
            self.most
        )))
    }
}

/// Rounds up to whole MiB, for people.
fn whole(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.checked_next_multiple_of(1 << 20).unwrap_or(bytes.0))
}

/// Returns what this process may still take: of the machine's free memory, of its control groups' and within
/// its own limits. `root` is `/`.
fn available(root: &Path) -> Bytes {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let machine = kilobytes(&read("proc/meminfo"), "MemAvailable:");
    let status = read("proc/self/status");
    let limits = read("proc/self/limits");
    let limit = |name: &str, used: &str| {
        let most = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
        Some(most.parse::<u64>().ok()?.saturating_sub(kilobytes(&status, used)?))
    };
    let own = [limit("Max address space", "VmSize:"), limit("Max data size", "VmData:")];
    let groups = groups(&root.join("sys/fs/cgroup"), &read("proc/self/cgroup"));
    let all = groups.into_iter().chain(own).chain([machine]);
    Bytes(all.flatten().min().unwrap_or(u64::MAX))
}

/// Parses a line such as `MemAvailable:   1024 kB` as bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns what is left in each control group (version 2) that this process is in: its limit less what it
/// takes, where what it takes for files can be taken back.
fn groups(mount: &Path, own: &str) -> Vec<Option<u64>> {
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let left = |group: PathBuf| {
        let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let (most, taken) = (number("memory.max")?, number("memory.current")?);
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
        Some(most.saturating_sub(taken.saturating_sub(files.unwrap_or(0))))
    };
    Path::new(path).ancestors().map(|group| left(mount.join(group))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_machine_groups_and_limits_is_available() {
        let root = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let found = || available(root.path()).0;
        assert_eq!(found(), u64::MAX, "nothing is known");
        file("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        assert_eq!(found(), 8000 << 10);
        file("proc/self/cgroup", "0::/a/b\n");
        file("sys/fs/cgroup/a/memory.max", "7000000\n");
        file("sys/fs/cgroup/a/memory.current", "3000000\n");
        file("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1000000\n");
        file("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(found(), 5_000_000);
        file("proc/self/status", "VmSize:\t 1000 kB\nVmData:\t 500 kB\n");
        file(
            "proc/self/limits",
            "Max address space  3000000  unlimited  bytes\nMax data size  unlimited  unlimited  bytes\n",
        );
        assert_eq!(found(), 3_000_000 - 1000 * 1024);
    }

    #[test]
    fn more_than_there_is_is_refused_in_one_line() {
        let memory = Memory { most: Bytes(100 << 20), quiet: true };
        assert_eq!(memory.room(Bytes(20 << 20), 32), 1 << 20);
        assert!(memory.say("x", Bytes(52 << 20), "less").is_ok());
        let refused = memory.say("x", Bytes(53 << 20), "less").expect_err("too much").to_string();
        assert_eq!(
            refused,
            "x: needs about 101M of memory, and 100M may be taken (--max-memory); expected less"
        );
        assert!(memory.check("x", Bytes(u64::MAX), "less").is_err());
    }
}
