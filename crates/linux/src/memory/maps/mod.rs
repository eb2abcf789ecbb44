//! Mappings of a process, from `/proc/PID/maps` (`proc_pid_maps(5)`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;

use crate::LinuxError;
use crate::process::{Pid, ProcRoot};

const EXPECTED: &str = "'start-end perms offset major:minor inode path'";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MappingKind {
    /// Anonymous memory, named ones (`[anon:...]`) included.
    Anonymous,
    /// The heap that `brk(2)` grows.
    Heap,
    Stack,
    /// A file, its path as the kernel writes it: newlines as `\012`, ` (deleted)` behind a removed one.
    File(PathBuf),
    /// Anonymous memory that processes share: `MAP_SHARED`, memfd, System V, `/dev/shm`.
    SharedMemory,
    /// Anonymous memory of the kernel's reserve of huge pages (`MAP_HUGETLB`), private or shared.
    Hugetlb,
    /// Pages of the kernel in every process (`[vdso]`, `[vvar]`, `[vsyscall]`), which never move.
    Vdso,
    /// Devices, and unknown names in brackets.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mapping {
    pub start: u64,
    /// First address after it.
    pub end: u64,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    /// Whether writes reach others that map the same.
    pub shared: bool,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// The file system's device, major and minor.
    pub device: (u32, u32),
    /// The file's inode; 0 without a file.
    pub inode: u64,
    pub kind: MappingKind,
}

impl Mapping {
    pub fn size(&self) -> Bytes {
        Bytes(self.end - self.start)
    }

    /// Returns whether its pages can be moved between nodes.
    pub fn is_movable(&self) -> bool {
        !matches!(self.kind, MappingKind::Vdso | MappingKind::Other)
    }
}

#[derive(Debug, Default)]
pub struct MapsReader {
    root: ProcRoot,
    buffer: Vec<u8>,
}

impl MapsReader {
    pub fn new(root: ProcRoot) -> Self {
        Self { root, buffer: Vec::new() }
    }

    /// Replaces `mappings` by the process's, in address order; [`LinuxError::Ended`] if it has none.
    pub fn read(&mut self, pid: Pid, mappings: &mut Vec<Mapping>) -> Result<(), LinuxError> {
        mappings.clear();
        self.root.read(pid, "maps", &mut self.buffer)?;
        parse(&self.buffer, &self.root.file(pid, "maps"), mappings)?;
        if mappings.is_empty() { Err(LinuxError::Ended(pid.0)) } else { Ok(()) }
    }
}

/// Appends the mappings of a file's text; `path` is named in errors.
pub fn parse(text: &[u8], path: &Path, mappings: &mut Vec<Mapping>) -> Result<(), LinuxError> {
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let mapping = parse_line(line).ok_or_else(|| LinuxError::Format {
            path: path.into(),
            expected: EXPECTED,
            found: crate::process::excerpt(line),
        })?;
        mappings.push(mapping);
    }
    Ok(())
}

/// Parses one line of `maps`, which is also the first line of a mapping in `smaps`.
pub(crate) fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail.get(1..).unwrap_or_default();
        word
    };
    let [range, permissions, offset, device, inode] = [word(), word(), word(), word(), word()];
    let (start, end) = pair(range, b'-')?;
    let (major, minor) = pair(device, b':')?;
    let [r, w, x, s] = *permissions else { return None };
    let flag = |found: u8, set: u8, unset: u8| (found == set || found == unset).then_some(found == set);
    Some(Mapping {
        start: (start < end).then_some(start)?,
        end,
        readable: flag(r, b'r', b'-')?,
        writable: flag(w, b'w', b'-')?,
        executable: flag(x, b'x', b'-')?,
        shared: flag(s, b's', b'p')?,
        offset: number(offset, 16)?,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode: number(inode, 10)?,
        kind: kind(rest.trim_ascii_start()),
    })
}

/// Parses digits: `from_str_radix` alone accepts a sign too.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().all(|byte| char::from(byte).is_digit(radix));
    if digits { u64::from_str_radix(text, radix).ok() } else { None }
}

fn pair(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((number(&text[..at], 16)?, number(&text[at + 1..], 16)?))
}

fn kind(name: &[u8]) -> MappingKind {
    let starts = |prefix: &str| name.starts_with(prefix.as_bytes());
    match name {
        b"" => MappingKind::Anonymous,
        b"[heap]" => MappingKind::Heap,
        b"[stack]" => MappingKind::Stack,
        b"[vdso]" | b"[vsyscall]" => MappingKind::Vdso,
        _ if starts("[vvar") => MappingKind::Vdso,
        _ if starts("[stack:") => MappingKind::Stack,
        _ if starts("[anon:") => MappingKind::Anonymous,
        _ if starts("/anon_hugepage") => MappingKind::Hugetlb,
        _ if is_shared_memory(name) => MappingKind::SharedMemory,
        _ if starts("/dev/") || !starts("/") => MappingKind::Other,
        _ => MappingKind::File(OsStr::from_bytes(name).into()),
    }
}

fn is_shared_memory(name: &[u8]) -> bool {
    let names = ["[anon_shmem:", "/memfd:", "/SYSV", "/dev/shm/", "/dev/zero"];
    names.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests;
