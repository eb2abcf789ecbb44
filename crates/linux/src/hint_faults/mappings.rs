//! The program's mappings and which of them may be armed: `/proc/self/maps`, read whole or for one address.

use crate::sys::agent as sys;
use crate::sys::pagemap::{VmaFlags, mapping_at};
use crate::sys::range::Range64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range64,
    /// Private, anonymous, readable, writable and not executable; not the main stack.
    pub(super) plain: bool,
    /// Whether it maps a file of the C library or the loader, whose memory the agent itself may touch.
    pub(super) library: bool,
    pub(super) file: bool,
}

/// Parses one line of `/proc/PID/maps` (`proc_pid_maps(5)`).
pub(super) fn parse(line: &[u8]) -> Option<Mapping> {
    let (start, rest) = hexadecimal(line, b'-')?;
    let (end, rest) = hexadecimal(rest, b' ')?;
    let (access, rest) = rest.split_at_checked(4)?;
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let (_offset, _device, inode) = (fields.next()?, fields.next()?, fields.next()?);
    let name = fields.next().unwrap_or(b"");
    let anonymous = inode == b"0" && is_anonymous(name);
    Some(Mapping {
        range: Range64 { start, end },
        plain: access == b"rw-p" && anonymous && start < end,
        library: is_library(name),
        file: inode != b"0",
    })
}

/// Parses a hexadecimal number up to `stop`; also returns the text behind it.
fn hexadecimal(text: &[u8], stop: u8) -> Option<(u64, &[u8])> {
    let length = text.iter().position(|byte| *byte == stop)?;
    let digits = std::str::from_utf8(text.get(..length)?).ok()?;
    Some((u64::from_str_radix(digits, 16).ok()?, text.get(length + 1..)?))
}

#[cfg(fuzzing)]
pub fn fuzz(line: &[u8]) {
    let _ = parse(line);
}

fn is_library(name: &[u8]) -> bool {
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    [&b"libc.so"[..], b"libc-", b"ld-", b"ld.so", b"ld64", b"libpthread", b"libgcc_s", b"libisotherm"]
        .iter()
        .any(|prefix| file.starts_with(prefix))
}

pub(super) struct Maps(pub(super) OwnedFd);

/// Bytes per read; longer than any line.
pub(super) const BUFFER: usize = 32 << 10;

impl Maps {
    pub(super) fn open() -> Result<Self, i32> {
        sys::open(c"/proc/self/maps").map(Self)
    }

    /// Calls `see` with each mapping until it returns false. The zeroed variables of a library, which lie
    /// right behind its file, count as the library's.
    pub(super) fn walk(&self, buffer: &mut [u8; BUFFER], mut see: impl FnMut(Mapping) -> bool) {
        let (mut offset, mut kept) = (0, 0);
        let mut library_end = None;
        loop {
            let got = sys::read_at(self.0.as_raw_fd(), &mut buffer[kept..], offset);
            offset += got as u64;
            let text = &buffer[..kept + got];
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            for line in text[..whole].split(|byte| *byte == b'\n') {
                let Some(mut mapping) = parse(line) else { continue };
                mapping.library |= !mapping.file && library_end == Some(mapping.range.start);
                library_end = mapping.library.then_some(mapping.range.end);
                if !see(mapping) {
                    return;
                }
            }
            if got == 0 || whole == 0 {
                return;
            }
            kept = text.len() - whole;
            buffer.copy_within(whole..whole + kept, 0);
        }
    }

    /// Returns the mapping at the address or the next one: by `PROCMAP_QUERY` (Linux 6.11) or a walk.
    pub(super) fn at(&self, buffer: &mut [u8; BUFFER], address: u64) -> Option<Mapping> {
        let mut name = [0; 64];
        match mapping_at(self.0.as_fd(), address, &mut name) {
            Ok(area) => {
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let plain =
                    area.flags == VmaFlags::READ | VmaFlags::WRITE && area.inode == 0 && is_anonymous(name);
                let (library, file) = (is_library(name), area.inode != 0);
                return Some(Mapping { range: area.range, plain, library, file });
            }
            Err(libc::ENOENT) => return None,
            Err(_) => {}
        }
        let mut found = None;
        self.walk(buffer, |mapping| {
            found = (mapping.range.end > address).then_some(mapping);
            found.is_none()
        });
        found
    }
}

/// Returns whether a mapping of this name is memory that a program takes for itself.
fn is_anonymous(name: &[u8]) -> bool {
    name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let heap = parse(b"55d0a7e2c000-55d0a7e4d000 rw-p 00000000 00:00 0                          [heap]");
        let range = Range64 { start: 0x55d0_a7e2_c000, end: 0x55d0_a7e4_d000 };
        assert_eq!(heap, Some(Mapping { range, plain: true, library: false, file: false }));
        let file =
            parse(b"7f0000000000-7f0000001000 rw-p 00001000 fe:01 123      /usr/lib/libc.so.6").unwrap();
        assert!(!file.plain && file.library && file.file);
        for other in [
            &b"7ffd5000-7ffd6000 rw-p 00000000 00:00 0      [stack]"[..],
            b"7000-8000 r--p 00000000 00:00 0 ",
            b"7000-8000 rw-s 00000000 00:00 0 ",
            b"7000-8000 rwxp 00000000 00:00 0 ",
            b"7000-8000 rw-p 00000000 00:01 9 /dev/zero (deleted)",
        ] {
            assert!(!parse(other).unwrap().plain);
        }
    }

    #[test]
    fn this_process_has_the_mapping_of_its_own_heap() {
        let (maps, mut buffer) = (Maps::open().unwrap(), Box::new([0; BUFFER]));
        let value = Box::new([1u8; 1 << 20]);
        let address = value.as_ptr() as u64;
        let mapping = maps.at(&mut buffer, address).unwrap();
        let range = mapping.range;
        assert!(range.contains(address) && mapping.plain);
        let mut seen = 0;
        maps.walk(&mut buffer, |mapping| {
            seen += u64::from(mapping.range == range && mapping.plain);
            true
        });
        assert_eq!(seen, 1);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line: Vec<u8>) {
            let _ = parse(&line);
        }

        #[test]
        fn no_text_of_the_right_letters_panics(line in "[0-9a-f]{0,18}-[0-9a-f]{0,18} [rwxps-]{0,5}[ 0-9:a-z\\[\\]/]{0,40}") {
            let _ = parse(line.as_bytes());
        }
    }
}
