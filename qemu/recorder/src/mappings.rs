//! Notes what the guest's memory holds: QEMU loads the program by itself, so its first mappings are read from
//! `/proc/self/maps`, and the guest's system calls tell the later ones.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use isotherm_alloc_profile::SITE_CALL;
use isotherm_recorder_protocol::{ANONYMOUS, Note, layout};

use crate::exec::{self, GUEST_BASE};
use crate::recorder::Recorder;
use crate::stamp;
use crate::vcpu::Vcpu;

const MMAP: i64 = 9;
const MUNMAP: i64 = 11;
const BRK: i64 = 12;
const MREMAP: i64 = 25;
const SHMAT: i64 = 30;
const PRCTL: i64 = 157;
const SET_NAME: u64 = 15;
const PAGE: u64 = 4096;

/// System call that changes mappings or a name, until it returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    arguments: [u64; 5],
    /// When it began: a range given back may be another thread's before the call returns.
    stamp: u64,
}

/// State of a process's memory. A forked child has its own copy.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Whether the first mappings were noted.
    begun: AtomicBool,
    heap_start: AtomicU64,
    heap_end: AtomicU64,
}

/// Notes the first mappings, before the process's first miss at `address`: a program first uses its stack.
#[inline(always)]
pub(crate) fn begin(recorder: &Recorder, thread: u32, address: u64) {
    if !recorder.memory.begun.load(Ordering::Relaxed) {
        note_first(recorder, thread, address);
    }
}

#[inline(never)]
fn note_first(recorder: &Recorder, thread: u32, address: u64) {
    if !recorder.memory.begun.swap(true, Ordering::Relaxed) {
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        let base = GUEST_BASE.load(Ordering::Relaxed);
        let notes = first(&String::from_utf8_lossy(&maps), base, address);
        recorder.note(thread, stamp::now(), &notes);
    }
}

/// Returns the guest's mappings in the kernel's list: its files, what continues them, and its stack. QEMU
/// makes no page of the guest executable, so files with such a page are its own.
fn first(maps: &str, base: u64, stack: u64) -> Vec<Note> {
    let mappings: Vec<_> = maps.lines().filter_map(Mapping::parse).collect();
    let runs = mappings.chunk_by(|one, next| one.end == next.start && one.name == next.name);
    let (mut notes, mut continued) = (Vec::new(), None);
    for run in runs.filter(|run| run.iter().all(|mapping| !mapping.executable)) {
        for mapping in run {
            let (start, end) = (mapping.start.wrapping_sub(base), mapping.end.wrapping_sub(base));
            // A program's variables without values follow those with values, which are writable.
            let (file, fixed) = (mapping.name.starts_with('/'), continued == Some(start));
            continued = (file && mapping.writable).then_some(end);
            let name = match mapping.name {
                "" if (start..end).contains(&stack) => "[stack]",
                "" if fixed => ANONYMOUS,
                name if file && !name.ends_with(layout::POOL_NAME) => name,
                _ => continue,
            };
            notes.push(Note::Map { start, end, fixed: fixed && !file, name: name.into() });
        }
    }
    notes
}

/// Line of `/proc/self/maps`.
struct Mapping<'a> {
    start: u64,
    end: u64,
    writable: bool,
    executable: bool,
    name: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let mode = |at: usize, letter: u8| rest.as_bytes().get(at) == Some(&letter);
        let (start, end) = (number(start)?, number(end)?);
        // Mode, offset, device and inode stand before the name.
        let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
        Some(Self { start, end, writable: mode(1, b'w'), executable: mode(2, b'x'), name })
    }
}

/// Keeps the arguments of a system call that matters here. The allocator's message of a site is complete.
pub(crate) fn called(recorder: &Recorder, vcpu: &mut Vcpu, number: i64, arguments: [u64; 5]) {
    if number == PRCTL && arguments[0] == u64::from(SITE_CALL.cast_unsigned()) {
        let line = exec::string(arguments[1]).unwrap_or_default();
        if let Some(site @ Note::Site { .. }) = line.to_str().and_then(Note::parse) {
            recorder.note(vcpu.thread, stamp::now(), &[site]);
        }
        return;
    }
    let matters = matches!(number, MMAP | MUNMAP | BRK | MREMAP | SHMAT | PRCTL);
    vcpu.call = matters.then(|| Call { arguments, stamp: stamp::now() });
}

/// Notes what a system call has done.
pub(crate) fn returned(recorder: &Recorder, vcpu: &mut Vcpu, number: i64, result: i64) {
    let Some(Call { arguments: [a, b, c, flags, descriptor], stamp }) = vcpu.call.take() else { return };
    // The last page of addresses holds the errors.
    if (-4095..0).contains(&result) || recorder.pool.stopped() {
        return;
    }
    let (place, now) = (result.cast_unsigned(), stamp::now());
    let range = |start: u64, length: u64| (start, start.saturating_add(length.next_multiple_of(PAGE)));
    let (stamp, note) = match number {
        MMAP => {
            let (start, end) = range(place, b);
            (now, Note::Map { start, end, fixed: is_fixed(flags), name: mapped_name(flags, descriptor) })
        }
        MUNMAP => {
            let (start, end) = range(a, b);
            (stamp, Note::Unmap { start, end })
        }
        BRK => match moved_heap(&recorder.memory, place) {
            Some(note) => (now, note),
            None => return,
        },
        MREMAP => (now, Note::Move { from: range(a, b), to: range(place, c) }),
        SHMAT => match attached(place) {
            Some(note) => (now, note),
            None => return,
        },
        PRCTL if a == SET_NAME => match exec::string(b) {
            Some(name) => (now, Note::Thread(name.to_string_lossy().chars().take(15).collect())),
            None => return,
        },
        _ => return,
    };
    recorder.note(vcpu.thread, stamp, &[note]);
}

fn is_fixed(flags: u64) -> bool {
    flags as i32 & libc::MAP_FIXED != 0
}

fn mapped_name(flags: u64, descriptor: u64) -> String {
    let has = |flag: i32| flags as i32 & flag != 0;
    let file = || std::fs::read_link(format!("/proc/self/fd/{}", descriptor as i32)).ok();
    if !has(libc::MAP_ANONYMOUS) {
        file().map_or_else(|| ANONYMOUS.into(), |path| path.to_string_lossy().into_owned())
    } else if has(libc::MAP_STACK) {
        "[thread stack]".into()
    } else {
        ANONYMOUS.into()
    }
}

/// Returns the change that a new end of the heap makes; none at the call that only asks for it.
fn moved_heap(memory: &Memory, end: u64) -> Option<Note> {
    let start = match memory.heap_start.compare_exchange(0, end, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => end,
        Err(start) => start,
    };
    let before = memory.heap_end.swap(end, Ordering::Relaxed).max(start);
    // QEMU's heap begins inside the page that the program's variables end in.
    let page = |address: u64| address.next_multiple_of(PAGE);
    let (before, end) = (page(before), page(end));
    match before.cmp(&end) {
        std::cmp::Ordering::Less => {
            Some(Note::Map { start: before, end, fixed: false, name: "[heap]".into() })
        }
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Note::Unmap { start: end, end: before }),
    }
}

/// Returns the shared memory attached at an address, whose size the call does not tell.
fn attached(place: u64) -> Option<Note> {
    let host = place.wrapping_add(GUEST_BASE.load(Ordering::Relaxed));
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let maps = String::from_utf8_lossy(&maps);
    let mapping = maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.start == host)?;
    let end = place.saturating_add(mapping.end - mapping.start);
    Some(Note::Map { start: place, end, fixed: false, name: mapping.name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_gives_the_guests_first_mappings() {
        let maps = "\
4000000000-4000003000 r--p 00000000 fe:00 10011073                       /tmp/a program
4000004000-4000005000 rw-p 00003000 fe:00 10011073                       /tmp/a program
4000005000-4000026000 rw-p 00000000 00:00 0 
4002005000-4002006000 ---p 00000000 00:00 0 
4002006000-4002806000 rw-p 00000000 00:00 0 
4002806000-4002837000 r--p 00000000 fe:00 325835                         /lib/ld.so
55f1ffd1c000-55f1ffd88000 r--p 00000000 fe:00 10166311                   /usr/bin/qemu-x86_64
55f1ffd88000-55f1ffecc000 r-xp 0006c000 fe:00 10166311                   /usr/bin/qemu-x86_64
55f1ffecc000-55f1ffecd000 rw-p 0006c000 fe:00 10166311                   /usr/bin/qemu-x86_64
55f1ffecd000-55f1ffece000 rw-p 00000000 00:00 0 
55f225e35000-55f225fa3000 rw-p 00000000 00:00 0                          [heap]
7f2d54000000-7f2d5bfff000 rw-s 00000000 fe:00 5                          /tmp/a.trace/.pool
";
        let notes = first(maps, 0x1000, 0x40_0280_3fff);
        let map = |start: u64, end: u64, fixed, name: &str| Note::Map {
            start: start - 0x1000,
            end: end - 0x1000,
            fixed,
            name: name.into(),
        };
        let expected = [
            map(0x40_0000_0000, 0x40_0000_3000, false, "/tmp/a program"),
            map(0x40_0000_4000, 0x40_0000_5000, false, "/tmp/a program"),
            map(0x40_0000_5000, 0x40_0002_6000, true, ANONYMOUS),
            map(0x40_0200_6000, 0x40_0280_6000, false, "[stack]"),
            map(0x40_0280_6000, 0x40_0283_7000, false, "/lib/ld.so"),
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn the_heap_grows_and_shrinks_by_pages() {
        let memory = Memory::default();
        let moved = |end| moved_heap(&memory, end);
        assert_eq!(moved(0x5010), None, "the first call asks where it ends");
        let heap = |start, end| Some(Note::Map { start, end, fixed: false, name: "[heap]".into() });
        assert_eq!(moved(0x7010), heap(0x6000, 0x8000));
        assert_eq!(moved(0x8000), None);
        assert_eq!(moved(0x9000), heap(0x8000, 0x9000));
        assert_eq!(moved(0x6001), Some(Note::Unmap { start: 0x7000, end: 0x9000 }));
    }

    #[test]
    fn mappings_without_a_file_are_named_for_their_use() {
        let anonymous = libc::MAP_ANONYMOUS as u64;
        assert_eq!(mapped_name(anonymous, u64::MAX), ANONYMOUS);
        assert_eq!(mapped_name(anonymous | libc::MAP_STACK as u64, u64::MAX), "[thread stack]");
        assert_eq!(mapped_name(0, u64::MAX), ANONYMOUS);
        let file = std::fs::File::open("/etc").expect("there is /etc");
        assert_eq!(mapped_name(0, std::os::fd::AsRawFd::as_raw_fd(&file) as u64), "/etc");
    }
}
