//! Huge pages of a process, split and made (Documentation/admin-guide/mm/transhuge.rst).

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::HUGE;
use crate::LinuxError;
use crate::process::Pid;
use crate::sys::pages;
use crate::sys::process::pidfd_open;
use crate::sys::range::Range64;

/// The kernel's file that splits what a line names. No other interface splits another process's huge pages.
const SPLIT: &str = "sys/kernel/debug/split_huge_pages";

/// Splits and makes huge pages of other processes.
#[derive(Debug)]
pub struct HugePages {
    split: PathBuf,
}

impl HugePages {
    /// `root` is `/`.
    pub fn new(root: &Path) -> Self {
        Self { split: root.join(SPLIT) }
    }

    /// Asks the kernel to split the huge page that begins at the address into base pages, which stay where
    /// they are. It passes over one that others hold: `pagemap` tells afterwards.
    ///
    /// # Errors
    /// Without debugfs or root, or [`LinuxError::Ended`].
    pub fn split(&self, pid: Pid, start: u64) -> Result<(), LinuxError> {
        let line = format!("{},0x{start:x},0x{:x}", pid.0, start + HUGE);
        let file = OpenOptions::new().write(true).open(&self.split);
        let done = file.and_then(|mut file| file.write(line.as_bytes()));
        done.map(drop).map_err(|error| match (error.raw_os_error(), error.kind()) {
            (Some(libc::ESRCH), _) => LinuxError::Ended(pid.0),
            (_, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => LinuxError::Unsupported {
                what: "splitting huge pages",
                remedy: format!(
                    "needs {} (mount -t debugfs debugfs /sys/kernel/debug, as root)",
                    self.split.display()
                ),
            },
            _ => LinuxError::file(&self.split, error),
        })
    }

    /// Makes a huge page of the 2 MiB from the address on, on the node where most of them are. Returns
    /// whether the kernel did: it refuses where nothing is mapped, and where it finds no memory.
    ///
    /// # Errors
    /// Before Linux 6.1, without the right to it, or [`LinuxError::Ended`].
    pub fn collapse(&self, pid: Pid, start: u64) -> Result<bool, LinuxError> {
        let range = Range64 { start, end: start + HUGE };
        let done = pidfd_open(pid).and_then(|process| pages::collapse(&process, range));
        let Err(error) = done else { return Ok(true) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::EINVAL | libc::ENOMEM) => Ok(false),
            Some(libc::ESRCH) => Err(LinuxError::Ended(pid.0)),
            Some(libc::EPERM) => Err(LinuxError::Permission {
                what: "making huge pages of another process",
                needs: "CAP_SYS_NICE and the right to trace it",
                remedy: "run as root".into(),
            }),
            _ => Err(LinuxError::of_call("process_madvise")(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::pagemap::{PageRun, Pagemap};
    use crate::process::ProcRoot;
    use crate::sys::testing::Memory;

    /// Returns whether a huge page maps the memory's first 2 MiB.
    fn is_huge(memory: &Memory) -> bool {
        let own = Pid(std::process::id());
        let mut runs = [PageRun::default(); 4];
        let mut pagemap = Pagemap::open(&ProcRoot::default(), own).expect("own page table");
        let scanned = pagemap.scan(memory.page(0)..memory.page(512), &mut runs).expect("scanned");
        scanned.runs == 1 && runs[0].huge == Some(true)
    }

    #[test]
    fn base_pages_become_a_huge_page_and_it_is_split_again() {
        let (own, huge) = (Pid(std::process::id()), HugePages::new(Path::new("/")));
        let memory = Memory::new(2 << 20, true);
        assert_eq!(huge.collapse(own, memory.page(0)).ok(), Some(false), "nothing is mapped there");
        // Pages that are dropped from a huge page leave base pages.
        (0..512).for_each(|page| memory.touch(page));
        memory.drop_pages(7..8);
        memory.touch(7);
        assert!(!is_huge(&memory));
        match huge.collapse(own, memory.page(0)) {
            Ok(true) => assert!(is_huge(&memory)),
            other => return println!("skipped: this kernel makes no huge pages: {other:?}"),
        }
        assert_eq!([memory.read(0), memory.read(7)], [1, 7]);
        match huge.split(own, memory.page(0)) {
            Ok(()) => assert!(!is_huge(&memory)),
            Err(error) => {
                assert!(
                    error.to_string().starts_with("splitting huge pages is not supported here"),
                    "{error}"
                );
                println!("skipped: {error}");
            }
        }
        assert_eq!([memory.read(0), memory.read(7)], [1, 7]);
    }

    #[test]
    fn a_process_that_has_ended_is_told() {
        let huge = HugePages::new(Path::new("/"));
        assert!(matches!(huge.collapse(Pid(4_000_000), 0), Err(LinuxError::Ended(4_000_000))));
    }
}
