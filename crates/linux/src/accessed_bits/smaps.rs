//! Mappings in `/proc/PID/smaps` and `maps` (the kernel's Documentation/filesystems/proc.rst).

use std::io::{BufRead, BufReader};
use std::ops::Range;

use super::process_files::ProcessFiles;
use crate::LinuxError;
use crate::memory::maps::{self, MappingKind};

const HEADER: &str = "a mapping 'START-END rwxp OFFSET DEVICE INODE [NAME]'";
/// Buffer size: the kernel returns at most one mapping per read, about 1 KiB of text.
const BUFFER: usize = 16 << 10;

/// Mapping and its pages of 4 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    /// Present pages: `Rss`.
    pub(super) present: u64,
    /// Present pages accessed since the bits were cleared: `Referenced`.
    pub(super) referenced: u64,
    /// Whether the kernel tracks soft-dirty pages: `sd` of `VmFlags`.
    pub(super) soft_dirty: bool,
}

/// Reads the mappings in the order of addresses, without the kernel's own (`[vdso]` and its kind).
/// Fails with [`LinuxError::Ended`] if the process has no memory (any more).
pub(super) fn read(files: &ProcessFiles, mappings: &mut Vec<Mapping>) -> Result<(), LinuxError> {
    mappings.clear();
    let mut parser = Parser::default();
    each_line(files, "smaps", |line| parser.line(line, mappings))
}

/// Reads only the addresses of the mappings, from `maps`; otherwise as [`read`].
pub(super) fn ranges(files: &ProcessFiles, ranges: &mut Vec<Range<u64>>) -> Result<(), LinuxError> {
    ranges.clear();
    each_line(files, "maps", |line| {
        ranges.extend(header(line)?);
        Ok(())
    })
}

/// Calls `visit` for each line; its error says what it expected.
fn each_line(
    files: &ProcessFiles,
    name: &str,
    mut visit: impl FnMut(&[u8]) -> Result<(), &'static str>,
) -> Result<(), LinuxError> {
    let mut reader = BufReader::with_capacity(BUFFER, files.read(name)?);
    let (mut line, mut empty) = (Vec::with_capacity(256), true);
    while reader.read_until(b'\n', &mut line).map_err(|error| files.error(name, error))? > 0 {
        empty = false;
        visit(line.trim_ascii_end()).map_err(|expected| {
            let found = String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().to_owned();
            LinuxError::Format { path: files.path(name), expected, found }
        })?;
        line.clear();
    }
    if empty { Err(LinuxError::Ended(files.process().0)) } else { Ok(()) }
}

/// Parser of smaps. It drops a mapping without its last line, `VmFlags`, whose process has ended meanwhile.
#[derive(Debug, Default)]
struct Parser {
    current: Option<Mapping>,
}

impl Parser {
    fn line(&mut self, line: &[u8], mappings: &mut Vec<Mapping>) -> Result<(), &'static str> {
        // Header lines begin with an address in lower case, fields with a capital.
        if line.first().is_some_and(|first| first.is_ascii_digit() || first.is_ascii_lowercase()) {
            self.current = header(line)?.map(|range| Mapping { range, ..Mapping::default() });
            return Ok(());
        }
        let Some(mapping) = &mut self.current else { return Ok(()) };
        if let Some(value) = line.strip_prefix(b"Rss:") {
            mapping.present = kilobytes(value).ok_or("'Rss: N kB'")? / 4;
        } else if let Some(value) = line.strip_prefix(b"Referenced:") {
            mapping.referenced = kilobytes(value).ok_or("'Referenced: N kB'")? / 4;
        } else if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            mapping.soft_dirty = flags.split(|&byte| byte == b' ').any(|flag| flag == b"sd");
            mappings.extend(self.current.take());
        }
        Ok(())
    }
}

/// Parses a mapping's first line; `None` for one of the kernel's own.
fn header(line: &[u8]) -> Result<Option<Range<u64>>, &'static str> {
    let mapping = maps::parse_line(line).ok_or(HEADER)?;
    Ok((mapping.kind != MappingKind::Vdso).then_some(mapping.start..mapping.end))
}

fn kilobytes(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

#[cfg(any(test, fuzzing))]
fn parse(text: &[u8]) -> Result<Vec<Mapping>, &'static str> {
    let (mut parser, mut mappings) = (Parser::default(), Vec::new());
    for line in text.split(|&byte| byte == b'\n') {
        parser.line(line.trim_ascii_end(), &mut mappings)?;
    }
    Ok(mappings)
}

#[cfg(fuzzing)]
pub fn fuzz(text: &[u8]) {
    let _ = parse(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        assert!(found[0].soft_dirty && !found[1].soft_dirty);
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
