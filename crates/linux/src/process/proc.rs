//! Reads files of `/proc` while their processes come and go.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Pid;
use crate::LinuxError;
use crate::files::decimal;

/// Smallest room for a read: the kernel fills `/proc` files by the page; small reads can tear a list apart.
const ROOM: usize = 16 << 10;

/// The `/proc` file system, or a directory of the same layout.
#[derive(Debug, Clone)]
pub struct ProcRoot(PathBuf);

impl Default for ProcRoot {
    fn default() -> Self {
        Self("/proc".into())
    }
}

impl ProcRoot {
    /// Returns a tree of the same layout elsewhere.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns whether its processes are those that system calls reach.
    pub fn is_real(&self) -> bool {
        self.0 == Path::new("/proc")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, pid: Pid, name: &str) -> PathBuf {
        self.0.join(pid.0.to_string()).join(name)
    }

    /// Opens a process's file; [`LinuxError::Ended`] if the process has ended.
    pub fn open(&self, pid: Pid, name: &str) -> Result<File, LinuxError> {
        let path = self.file(pid, name);
        File::open(&path).map_err(|error| self.failure(pid, path, error))
    }

    /// Reads a process's whole file into `buffer`, which is emptied first and keeps its memory.
    pub fn read(&self, pid: Pid, name: &str, buffer: &mut Vec<u8>) -> Result<(), LinuxError> {
        let mut file = self.open(pid, name)?;
        read_all(&mut file, buffer).map_err(|error| self.failure(pid, self.file(pid, name), error))
    }

    /// Returns the process that a thread belongs to: itself for a process's first thread.
    pub fn process_of(&self, thread: Pid) -> Result<Pid, LinuxError> {
        let mut text = Vec::new();
        self.read(thread, "status", &mut text)?;
        let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"));
        let number = line.and_then(|line| decimal(std::str::from_utf8(line).ok()?.trim()));
        number.map(Pid).ok_or_else(|| LinuxError::Format {
            path: self.file(thread, "status"),
            expected: "a line 'Tgid: NUMBER'",
            found: excerpt(&text),
        })
    }

    pub(crate) fn failure(&self, pid: Pid, path: PathBuf, error: io::Error) -> LinuxError {
        match error.raw_os_error() {
            Some(libc::ESRCH) => LinuxError::Ended(pid.0),
            // The kernel may lack the file while the process lives.
            Some(libc::ENOENT) if !self.0.join(pid.0.to_string()).exists() => LinuxError::Ended(pid.0),
            Some(libc::EACCES | libc::EPERM) => LinuxError::Permission {
                what: "reading the memory map of another user's process",
                needs: "CAP_SYS_PTRACE",
                remedy: "run as the program's user or as root, or \
                         setcap cap_sys_ptrace+ep \"$(command -v isotherm)\""
                    .into(),
            },
            _ => LinuxError::file(path, error),
        }
    }
}

/// Reads to the end in large pieces.
fn read_all(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    let mut length = 0;
    loop {
        if buffer.len() < length + ROOM {
            buffer.resize((length + ROOM).max(2 * length), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// Returns the start of a malformed file, short enough for one line.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(60)];
    String::from_utf8_lossy(shown).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_missing_process_has_ended_and_a_missing_file_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = ProcRoot::at(directory.path());
        assert!(matches!(root.open(Pid(7), "maps"), Err(LinuxError::Ended(7))));
        fs::create_dir(directory.path().join("7")).expect("a directory");
        let error = root.open(Pid(7), "maps").expect_err("no such file");
        assert!(error.to_string().contains("7/maps"), "{error}");
    }

    #[test]
    fn files_longer_than_a_piece_are_read_whole() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("7")).expect("a directory");
        let content: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        fs::write(directory.path().join("7/maps"), &content).expect("written");
        let mut buffer = vec![1; 5];
        ProcRoot::at(directory.path()).read(Pid(7), "maps", &mut buffer).expect("read");
        assert_eq!(buffer, content);
    }
}
