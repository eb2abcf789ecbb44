//! Files of one process in `/proc`, which can never become those of another process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::LinuxError;
use crate::process::{Pid, ProcessStat};

/// Open directory of a process in `/proc`, whose files are gone once it ends, even if its number is reused.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    process: Pid,
    directory: File,
    path: PathBuf,
}

impl ProcessFiles {
    pub(super) fn open(root: &Path, process: Pid) -> Result<Self, LinuxError> {
        let path = root.join("proc").join(process.0.to_string());
        let directory = File::open(&path).map_err(|error| classify(&path, process, error))?;
        Ok(Self { process, directory, path })
    }

    pub(super) fn process(&self) -> Pid {
        self.process
    }

    /// Returns the file's path for messages.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn read(&self, name: &str) -> Result<File, LinuxError> {
        self.opened(name, OpenOptions::new().read(true))
    }

    pub(super) fn write(&self, name: &str) -> Result<File, LinuxError> {
        self.opened(name, OpenOptions::new().write(true))
    }

    /// Opens relative to this process's own descriptor, as openat(2) does.
    fn opened(&self, name: &str, options: &OpenOptions) -> Result<File, LinuxError> {
        options.open(self.descriptor_path(name)).map_err(|error| self.error(name, error))
    }

    fn descriptor_path(&self, name: &str) -> String {
        format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd())
    }

    /// Explains an error on one of the files. Once a process is ending, the kernel gives its files to root.
    pub(super) fn error(&self, name: &str, error: io::Error) -> LinuxError {
        if error.kind() == ErrorKind::PermissionDenied && self.is_ending() {
            return LinuxError::Ended(self.process.0);
        }
        classify(&self.path(name), self.process, error)
    }

    fn is_ending(&self) -> bool {
        fs::read(self.descriptor_path("stat")).map_or(true, |stat| says_ending(&stat))
    }
}

/// Returns whether `/proc/PID/stat` says zombie, dead or exiting (proc_pid_stat(5)).
fn says_ending(stat: &[u8]) -> bool {
    ProcessStat::parse(stat).is_some_and(|stat| matches!(stat.state, b'Z' | b'X') || stat.exiting)
}

fn classify(path: &Path, process: Pid, error: io::Error) -> LinuxError {
    if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) {
        return LinuxError::Ended(process.0);
    }
    if error.kind() == ErrorKind::PermissionDenied {
        return LinuxError::Permission {
            what: "seeing another user's memory",
            needs: "the same user, or CAP_SYS_PTRACE and CAP_DAC_OVERRIDE",
            remedy: "run isotherm as the program's user, or as root".to_owned(),
        };
    }
    LinuxError::file(path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: i32) -> LinuxError {
        classify(Path::new("/proc/7/smaps"), Pid(7), io::Error::from_raw_os_error(code))
    }

    #[test]
    fn a_process_about_to_end_is_told_by_its_state() {
        let stat = |name: &str, state: &str, flags: u64| {
            format!("7 ({name}) {state} 1 7 7 0 -1 {flags} 90{}", " 0".repeat(40))
        };
        assert!(says_ending(stat("a", "Z", 0x40_0000).as_bytes()));
        assert!(says_ending(stat("a", "R", 0x40_0004).as_bytes()));
        assert!(!says_ending(stat("a) Z 1", "R", 0x40_0040).as_bytes()));
        assert!(!says_ending(b"") && !says_ending(b"7 (a)") && !says_ending(b")"));
        assert!(!ProcessFiles::open(Path::new("/"), Pid(std::process::id())).unwrap().is_ending());
    }

    #[test]
    fn errors_say_what_they_mean() {
        assert!(matches!(class(libc::ENOENT), LinuxError::Ended(7)));
        assert!(matches!(class(libc::ESRCH), LinuxError::Ended(7)));
        for code in [libc::EACCES, libc::EPERM] {
            assert!(class(code).to_string().contains("CAP_SYS_PTRACE"));
        }
        assert!(class(libc::EIO).to_string().starts_with("/proc/7/smaps: "));
    }
}
