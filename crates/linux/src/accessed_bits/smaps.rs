//! Defines what `/proc/PID/smaps` and `maps` say of each mapping (the kernel's Documentation/filesystems/proc.rst).

use std::io::{BufRead, BufReader};
use std::ops::Range;

use super::process_files::ProcessFiles;
use crate::LinuxError;
use crate::memory::maps::{self, MappingKind};

const NAME: &str = "smaps";
const MAPS: &str = "maps";
const HEADER: &str = "a mapping 'START-END rwxp OFFSET DEVICE INODE [NAME]'";
/// The kernel hands out one mapping a read at most, about 1 KiB of text.
const BUFFER: usize = 16 << 10;

/// A mapping and its pages, counted in 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    /// Its addresses.
    pub(super) range: Range<u64>,
    /// How many pages are present: `Rss`.
    pub(super) present: u64,
    /// How many of them were accessed since the bits were cleared: `Referenced`.
    pub(super) referenced: u64,
    /// Private and of no file.
    pub(super) anonymous: bool,
    /// Whether the kernel would back it with huge pages: `THPeligible`.
    pub(super) huge_eligible: bool,
    /// `VmFlags`.
    pub(super) flags: Flags,
}

/// Those of the kernel's two-letter flags of a mapping that matter here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// `hg`: `MADV_HUGEPAGE` was given.
    pub(super) huge: bool,
    /// `nh`: `MADV_NOHUGEPAGE` was given.
    pub(super) no_huge: bool,
    /// `dd`: left out of core dumps.
    pub(super) no_dump: bool,
    /// `sd`: the kernel tracks soft-dirty pages.
    pub(super) soft_dirty: bool,
    /// `io`, `pf`, `ht` or `gd`: a device's, a hugetlb mapping or a stack that grows.
    pub(super) special: bool,
}

/// Reads the mappings in the order of addresses, up to those that begin at `end` or later. Those of the kernel itself
/// (`[vdso]` and its kind) are left out. A process that has no memory (any more) has [`LinuxError::Ended`].
pub(super) fn read(files: &ProcessFiles, end: u64, mappings: &mut Vec<Mapping>) -> Result<(), LinuxError> {
    mappings.clear();
    let mut reader = BufReader::with_capacity(BUFFER, files.read(NAME)?);
    let mut parser = Parser::default();
    let (mut line, mut lines) = (Vec::with_capacity(256), 0u64);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|error| files.error(NAME, error))?;
        if length == 0 || parser.past(end) {
            break;
        }
        lines += 1;
        parser
            .line(line.trim_ascii_end(), mappings)
            .map_err(|expected| malformed(files, NAME, expected, &line))?;
    }
    if lines == 0 { Err(LinuxError::Ended(files.process().0)) } else { Ok(()) }
}

/// Reads the addresses of the mappings alone, from `maps`; the same are left out, and the same error for no memory.
pub(super) fn ranges(files: &ProcessFiles, ranges: &mut Vec<Range<u64>>) -> Result<(), LinuxError> {
    ranges.clear();
    let mut reader = BufReader::with_capacity(BUFFER, files.read(MAPS)?);
    let (mut line, mut lines) = (Vec::with_capacity(256), 0u64);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|error| files.error(MAPS, error))?;
        if length == 0 {
            break;
        }
        lines += 1;
        let mapping = header(line.trim_ascii_end()).ok_or_else(|| malformed(files, MAPS, HEADER, &line))?;
        ranges.extend(mapping.map(|mapping| mapping.range));
    }
    if lines == 0 { Err(LinuxError::Ended(files.process().0)) } else { Ok(()) }
}

fn malformed(files: &ProcessFiles, name: &str, expected: &'static str, line: &[u8]) -> LinuxError {
    let found = String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().to_owned();
    LinuxError::Format { path: files.path(name), expected, found }
}

/// Puts lines together to mappings. One whose last line, `VmFlags`, is missing (its process ended meanwhile) is dropped.
#[derive(Debug, Default)]
struct Parser {
    current: Option<Mapping>,
}

impl Parser {
    /// Whether the mapping at hand begins at `end` or later.
    fn past(&self, end: u64) -> bool {
        self.current.as_ref().is_some_and(|mapping| mapping.range.start >= end)
    }

    fn line(&mut self, line: &[u8], mappings: &mut Vec<Mapping>) -> Result<(), &'static str> {
        // Header lines begin with an address in lower case, fields with a capital.
        if line.first().is_some_and(|first| first.is_ascii_digit() || first.is_ascii_lowercase()) {
            self.current = header(line).ok_or(HEADER)?;
            return Ok(());
        }
        let Some(mapping) = &mut self.current else { return Ok(()) };
        if let Some(value) = line.strip_prefix(b"Rss:") {
            mapping.present = kilobytes(value).ok_or("'Rss: N kB'")? / 4;
        } else if let Some(value) = line.strip_prefix(b"Referenced:") {
            mapping.referenced = kilobytes(value).ok_or("'Referenced: N kB'")? / 4;
        } else if let Some(value) = line.strip_prefix(b"THPeligible:") {
            mapping.huge_eligible = value.trim_ascii() == b"1";
        } else if let Some(value) = line.strip_prefix(b"VmFlags:") {
            mapping.flags = flags(value);
            mappings.extend(self.current.take());
        }
        Ok(())
    }
}

/// The mapping, with nothing counted yet; `Some(None)` for one of the kernel's.
fn header(line: &[u8]) -> Option<Option<Mapping>> {
    let mapping = maps::parse_line(line)?;
    if mapping.kind == MappingKind::Vdso {
        return Some(None);
    }
    Some(Some(Mapping {
        range: mapping.start..mapping.end,
        present: 0,
        referenced: 0,
        anonymous: !mapping.shared && mapping.inode == 0,
        huge_eligible: false,
        flags: Flags::default(),
    }))
}

fn flags(text: &[u8]) -> Flags {
    let mut flags = Flags::default();
    for flag in text.split(|&byte| byte == b' ') {
        match flag {
            b"hg" => flags.huge = true,
            b"nh" => flags.no_huge = true,
            b"dd" => flags.no_dump = true,
            b"sd" => flags.soft_dirty = true,
            b"io" | b"pf" | b"ht" | b"gd" => flags.special = true,
            _ => {}
        }
    }
    flags
}

fn kilobytes(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &[u8]) -> Result<Vec<Mapping>, &'static str> {
        let (mut parser, mut mappings) = (Parser::default(), Vec::new());
        for line in text.split(|&byte| byte == b'\n') {
            parser.line(line.trim_ascii_end(), &mut mappings)?;
        }
        Ok(mappings)
    }

    const TWO: &str = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0 
Size:               2048 kB
Rss:                 400 kB
Referenced:          100 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac dd hg sd 
7ffd1c5e1000-7ffd1c5e5000 r--p 00000000 00:00 0                          [vvar]
Rss:                   0 kB
VmFlags: rd mr pf io de dd 
7f0000300000-7f0000301000 r-xs 00001000 fe:00 247278   /usr/bin/with space
Rss:                   4 kB
Referenced:            0 kB
VmFlags: rd ex mr nh gd
";

    #[test]
    fn fields_of_each_mapping() {
        let found = parse(TWO.as_bytes()).unwrap();
        assert_eq!(found.len(), 2, "the kernel's own mapping is left out");
        assert_eq!(found[0].range, 0x7f00_0000_0000..0x7f00_0020_0000);
        assert_eq!((found[0].present, found[0].referenced), (100, 25));
        assert!(found[0].anonymous && found[0].huge_eligible);
        let flags = Flags { huge: true, no_dump: true, soft_dirty: true, ..Flags::default() };
        assert_eq!(found[0].flags, flags);
        assert!(!found[1].anonymous && !found[1].huge_eligible);
        assert_eq!(found[1].flags, Flags { no_huge: true, special: true, ..Flags::default() });
    }

    #[test]
    fn a_mapping_cut_off_is_dropped() {
        let cut = TWO.find("VmFlags: rd ex").unwrap();
        assert_eq!(parse(&TWO.as_bytes()[..cut]).unwrap().len(), 1);
    }

    #[test]
    fn malformed_lines_are_named() {
        assert!(parse(b"7f00 rw-p\n").unwrap_err().contains("START-END"));
        assert!(parse(b"2000-1000 rw-p 0 00:00 0\n").is_err());
        assert!(parse(b"1000-2000 rw-p 0 00:00 0\nRss: many kB\n").unwrap_err().contains("Rss"));
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_damaged_text_panics(at in 0..TWO.len(), byte in any::<u8>()) {
            let mut text = TWO.as_bytes().to_vec();
            text[at] = byte;
            let _ = parse(&text);
        }
    }
}
