//! The programs of a machine: who runs what in which cgroup, read from `/proc`.
//!
//! A look costs one short read unless something forked since the last one; then new processes are read. At
//! every eighth look all are read again, since a process changes its cgroup, user or program without
//! a fork.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use isotherm_core::Bytes;

use super::{Pid, ProcRoot, ProcessStat};
use crate::LinuxError;
use crate::files::{Tree, decimal};

/// Looks between two complete readings.
const THOROUGH: u32 = 8;
/// Looks for which a new process is read again: it has not executed its program yet.
const YOUNG: u8 = 2;
/// Longest command that is kept, in bytes.
const MAX_COMMAND: usize = 256;

/// One process of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub pid: Pid,
    /// Start in clock ticks since boot: a reused number has another start.
    pub start: u64,
    /// Path in the cgroup v2 hierarchy: `/` without one.
    pub cgroup: String,
    /// Real user.
    pub user: u32,
    /// Name of the program's file, as it was called, or the name that it has given itself.
    pub command: String,
    /// Memory in use when the process was last read.
    pub resident: Bytes,
}

/// An entry of `/proc`; `None` for what has no memory of its own.
#[derive(Debug)]
struct Entry {
    start: u64,
    program: Option<Program>,
    looks: u8,
}

/// The programs that run now.
#[derive(Debug)]
pub struct Census {
    root: ProcRoot,
    own: Pid,
    known: BTreeMap<Pid, Entry>,
    loadavg: Option<File>,
    last: Option<String>,
    looks: u32,
    buffer: Vec<u8>,
}

impl Census {
    /// Counts the processes below `root`, without `own`.
    pub fn new(root: ProcRoot, own: Pid) -> Self {
        let (known, buffer) = (BTreeMap::new(), Vec::new());
        Self { root, own, known, loadavg: None, last: None, looks: 0, buffer }
    }

    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.known.values().filter_map(|entry| entry.program.as_ref())
    }

    /// Returns a process's program.
    pub fn program(&self, pid: Pid) -> Option<&Program> {
        self.known.get(&pid)?.program.as_ref()
    }

    /// Reads all processes again at the next look.
    pub fn refresh(&mut self) {
        self.looks = 0;
    }

    /// Looks at the machine. Processes that end meanwhile are left out.
    ///
    /// # Errors
    /// If `/proc` itself cannot be read.
    pub fn look(&mut self) -> Result<(), LinuxError> {
        let thorough = self.looks.is_multiple_of(THOROUGH);
        self.looks = self.looks.wrapping_add(1);
        let young = self.known.values().any(|entry| entry.looks < YOUNG);
        if !self.forked() && !thorough && !young {
            return Ok(());
        }
        let (own, listed) = (self.own, Tree::new(self.root.path()).numbered("", "")?);
        let mut before = std::mem::take(&mut self.known);
        for pid in listed.into_iter().map(Pid).filter(|&pid| pid != own) {
            let entry = match before.remove(&pid) {
                Some(entry) if !thorough && entry.looks >= YOUNG => Some(entry),
                known => self.read(pid, known),
            };
            self.known.extend(entry.map(|entry| (pid, entry)));
        }
        Ok(())
    }

    /// Returns whether the kernel has given out a process number since the last look (`proc_loadavg(5)`).
    fn forked(&mut self) -> bool {
        if self.loadavg.is_none() {
            self.loadavg = File::open(self.root.path().join("loadavg")).ok();
        }
        let mut text = [0; 128];
        let length = self.loadavg.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
        let last = text.and_then(|text| text.split_ascii_whitespace().next_back()).map(str::to_owned);
        let same = last.is_some() && last == self.last;
        self.last = last;
        !same
    }

    fn read(&mut self, pid: Pid, known: Option<Entry>) -> Option<Entry> {
        let stat = ProcessStat::read(&self.root, pid, &mut self.buffer).ok()?;
        if stat.has_ended() || stat.exiting {
            return None;
        }
        let looks = known.filter(|known| known.start == stat.start).map_or(0, |known| known.looks);
        let looks = looks.saturating_add(1);
        let has_memory = !stat.kernel && !stat.agent;
        let program = if has_memory { Some(self.read_program(pid, stat.start)?) } else { None };
        Some(Entry { start: stat.start, program, looks })
    }

    fn read_program(&mut self, pid: Pid, start: u64) -> Option<Program> {
        self.root.read(pid, "cgroup", &mut self.buffer).ok()?;
        let cgroup = cgroup(&self.buffer).unwrap_or_else(|| "/".into());
        self.root.read(pid, "status", &mut self.buffer).ok()?;
        let user = user(&self.buffer)?;
        let resident = resident(&self.buffer);
        let own_name = line(&self.buffer, "Name:").unwrap_or_default();
        self.root.read(pid, "cmdline", &mut self.buffer).ok()?;
        let first = self.buffer.split(|&byte| byte == 0 || byte == b' ').next().unwrap_or_default();
        let file = first.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let file = &file[..file.len().min(MAX_COMMAND)];
        let command = if file.is_empty() { own_name } else { String::from_utf8_lossy(file).into_owned() };
        Some(Program { pid, start, cgroup, user, command, resident })
    }
}

fn line(text: &[u8], key: &str) -> Option<String> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(key.as_bytes()))?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Returns the path in the v2 hierarchy: the line `0::PATH`.
fn cgroup(text: &[u8]) -> Option<String> {
    let path = line(text, "0::")?;
    // The kernel marks the path of a cgroup that was removed while processes were in it.
    Some(path.strip_suffix(" (deleted)").map_or(path.clone(), str::to_owned))
}

/// Returns the real user: the first of the four after `Uid:`.
fn user(text: &[u8]) -> Option<u32> {
    decimal(line(text, "Uid:")?.split_ascii_whitespace().next()?)
}

/// Returns the resident memory: the kibibytes after `VmRSS:`, which kernel threads lack.
fn resident(text: &[u8]) -> Bytes {
    let line = line(text, "VmRSS:").unwrap_or_default();
    Bytes(line.split_ascii_whitespace().next().and_then(decimal::<u64>).unwrap_or(0) << 10)
}

/// Reads the numbers of users from a file such as `/etc/passwd`; malformed lines are passed by.
pub fn users(text: &str) -> BTreeMap<String, u32> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), decimal(fields.nth(1)?)?))
    };
    text.lines().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A `/proc` of files.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"))
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn program(&self, pid: u32, start: u64, cgroup: &str, user: u32, command: &str) {
            let folder = self.path().join(pid.to_string());
            fs::create_dir_all(&folder).expect("a folder");
            let stat = format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 1 1 1 4096 1 8192");
            fs::write(folder.join("stat"), stat).expect("written");
            fs::write(folder.join("cgroup"), format!("1:cpu:/x\n0::{cgroup}\n")).expect("written");
            fs::write(folder.join("status"), format!("Name:\tself\nUid:\t{user}\t0\t0\t0\n"))
                .expect("written");
            fs::write(folder.join("cmdline"), command).expect("written");
        }

        fn forked(&self, last: u32) {
            fs::write(self.path().join("loadavg"), format!("0.1 0.2 0.3 1/2 {last}\n")).expect("written");
        }

        fn census(&self) -> Census {
            Census::new(ProcRoot::at(self.path()), Pid(1))
        }
    }

    fn seen(census: &mut Census) -> Vec<(u32, String, u32, String)> {
        census.look().expect("readable");
        census.programs().map(|one| (one.pid.0, one.cgroup.clone(), one.user, one.command.clone())).collect()
    }

    #[test]
    fn programs_have_cgroup_user_and_command() {
        let machine = Machine::new();
        machine.forked(9);
        machine.program(1, 5, "/", 0, "/sbin/init\0");
        machine.program(7, 5, "/system.slice/db.service", 26, "/usr/bin/postgres\0-D\0");
        machine.program(8, 5, "/gone (deleted)", 0, "");
        fs::create_dir(machine.path().join("9")).expect("a process that has just ended");
        let expected = [
            (7, "/system.slice/db.service".to_owned(), 26, "postgres".to_owned()),
            (8, "/gone".to_owned(), 0, "self".to_owned()),
        ];
        assert_eq!(seen(&mut machine.census()), expected, "without the engine's own process");
    }

    #[test]
    fn programs_come_go_and_change_their_cgroup() {
        let machine = Machine::new();
        machine.forked(9);
        machine.program(7, 5, "/a", 0, "one");
        let mut census = machine.census();
        for _ in 0..4 {
            assert_eq!(seen(&mut census).len(), 1);
        }
        machine.program(7, 5, "/b", 0, "one");
        machine.program(8, 6, "/a", 0, "two");
        assert_eq!(seen(&mut census).len(), 1, "nothing forked, so nothing is read");
        machine.forked(10);
        let cgroups = |census: &mut Census| -> Vec<String> {
            seen(census).into_iter().map(|program| program.1).collect()
        };
        assert_eq!(cgroups(&mut census), ["/a", "/a"], "the known one is not read again");
        for _ in 1..THOROUGH {
            census.look().expect("readable");
        }
        assert_eq!(cgroups(&mut census), ["/b", "/a"]);
        fs::remove_dir_all(machine.path().join("7")).expect("ended");
        machine.forked(11);
        assert_eq!(cgroups(&mut census), ["/a"]);
    }

    /// The number of a process that ended may be another's at the next look.
    #[test]
    fn a_reused_number_is_another_program() {
        let machine = Machine::new();
        machine.forked(9);
        machine.program(7, 5, "/a", 0, "one");
        let mut census = machine.census();
        census.look().expect("readable");
        machine.program(7, 99, "/a", 0, "two");
        for _ in 0..=THOROUGH {
            census.look().expect("readable");
        }
        let program = census.programs().next().expect("a program");
        assert_eq!((program.start, program.command.as_str()), (99, "two"));
    }

    #[test]
    fn this_machines_programs_are_found() {
        let mut census = Census::new(ProcRoot::default(), Pid(0));
        census.look().expect("readable");
        let own = census.programs().find(|one| one.pid.0 == std::process::id()).expect("this test");
        assert!(own.cgroup.starts_with('/') && own.command.contains("isotherm_linux"), "{own:?}");
    }

    #[test]
    fn users_are_read_line_by_line() {
        let users = users("root:x:0:0::/:/bin/sh\n\nnonsense\npostgres:x:26:26::/:\n:x:1:\nbad:x:y:\n");
        assert_eq!(users.into_iter().collect::<Vec<_>>(), [("postgres".into(), 26), ("root".into(), 0)]);
    }
}
