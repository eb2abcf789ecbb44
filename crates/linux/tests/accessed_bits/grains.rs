//! Grains in this process's own memory. The tests share its accessed bits, so that they take turns.
#![allow(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use isotherm_core::Bytes;
use isotherm_linux::accessed_bits::grains::{Grains, Mark, join, split, split_with};
use isotherm_linux::accessed_bits::{ClearRefs, Found, Resolution, Scanner};
use isotherm_linux::process::Pid;

use crate::program::bytes_within;

/// Held by whoever clears this process's accessed bits.
pub(crate) static TURN: Mutex<()> = Mutex::new(());

const PAGE: u64 = 4096;

/// An anonymous mapping with a page of its own kind on either side, so that neighbours do not merge with it.
struct Mapping(Range<u64>);

impl Mapping {
    fn new(bytes: u64) -> Self {
        let (access, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        let whole = (bytes + 2 * PAGE) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, kind, -1, 0) } as u64;
        assert_ne!(start as usize, libc::MAP_FAILED as usize);
        let range = start + PAGE..start + PAGE + bytes;
        // SAFETY: within the mapping just made.
        let result = unsafe {
            libc::mprotect(range.start as *mut _, bytes as usize, libc::PROT_READ | libc::PROT_WRITE)
        };
        assert_eq!(result, 0);
        Self(range)
    }

    /// Writes to each page of `range`.
    fn touch(&self, range: &Range<u64>) {
        assert!(self.0.start <= range.start && range.end <= self.0.end);
        for page in range.clone().step_by(PAGE as usize) {
            // SAFETY: the page lies in the mapping, which is writable and reached through this pointer alone.
            unsafe { (page as *mut u64).write_volatile(page) };
        }
    }

    /// Whether each page holds what `touch` wrote.
    fn intact(&self) -> bool {
        // SAFETY: as in `touch`.
        self.0
            .clone()
            .step_by(PAGE as usize)
            .all(|page| unsafe { (page as *mut u64).read_volatile() } == page)
    }

    fn lines(&self) -> usize {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let start = |line: &str| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        maps.lines().filter(|line| self.0.contains(&start(line))).count()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let length = (self.0.end - self.0.start + 2 * PAGE) as usize;
        // SAFETY: the mapping is this test's own, and nothing refers to it.
        unsafe { libc::munmap((self.0.start - PAGE) as *mut _, length) };
    }
}

/// Every third grain is touched; exactly these are seen.
fn sees_grains(mapping: &Mapping, grains: &Grains) {
    let scanner = ClearRefs::new(Resolution::default()).unwrap();
    let mut target = scanner.open(Pid(std::process::id())).unwrap();
    let mut found = Found::default();
    scanner.scan(&mut target, &mut found).unwrap();
    let hot: Vec<_> = grains.ranges().step_by(3).collect();
    hot.iter().for_each(|grain| mapping.touch(grain));
    found.clear();
    scanner.scan(&mut target, &mut found).unwrap();
    for grain in grains.ranges() {
        let expected = if hot.contains(&grain) { grain.end - grain.start } else { 0 };
        assert_eq!(bytes_within(&found.pages, &grain), expected, "{grain:x?}");
    }
}

fn splits_and_joins(mark: Mark, bytes: u64, grain: u64) {
    let _turn = TURN.lock();
    let mapping = Mapping::new(bytes);
    mapping.touch(&mapping.0);
    assert_eq!(mapping.lines(), 1);
    let grains = split_with(mark, mapping.0.clone(), Bytes(grain)).unwrap();
    assert_eq!(mapping.lines(), grains.count());
    assert!(grains.count() as u64 >= bytes / grain);
    sees_grains(&mapping, &grains);
    join(&grains).unwrap();
    assert_eq!(mapping.lines(), 1, "joined without a trace");
    assert!(mapping.intact());
}

#[test]
fn by_core_dump_flag() {
    splits_and_joins(Mark::CoreDump, 16 << 20, 64 << 10);
    splits_and_joins(Mark::CoreDump, 1 << 20, 4 << 10);
}

#[test]
fn by_huge_page_advice() {
    splits_and_joins(Mark::HugePages, 16 << 20, 64 << 10);
}

#[test]
fn by_whichever_mark_is_harmless() {
    let _turn = TURN.lock();
    let mapping = Mapping::new(8 << 20);
    mapping.touch(&mapping.0);
    match split(mapping.0.clone(), Bytes(1 << 20)) {
        Ok(grains) => sees_grains(&mapping, &grains),
        Err(error) => println!("skipped: {error}"),
    }
}

#[test]
fn what_was_unmapped_does_not_hinder_joining() {
    let _turn = TURN.lock();
    let mapping = Mapping::new(1 << 20);
    mapping.touch(&mapping.0);
    let grains = split_with(Mark::CoreDump, mapping.0.clone(), Bytes(16 << 10)).unwrap();
    // SAFETY: two pages of the test's own mapping, not used any more.
    assert_eq!(unsafe { libc::munmap((mapping.0.start + (512 << 10)) as *mut _, 8 << 10) }, 0);
    join(&grains).unwrap();
    assert_eq!(mapping.lines(), 2);
}

#[test]
fn too_many_grains_are_refused() {
    let _turn = TURN.lock();
    let mapping = Mapping::new(4 << 30);
    let limit: u64 =
        fs::read_to_string(Path::new("/proc/sys/vm/max_map_count")).unwrap().trim().parse().unwrap();
    if limit > 1 << 20 {
        println!("skipped: vm.max_map_count is {limit}");
        return;
    }
    let error = split_with(Mark::CoreDump, mapping.0.clone(), Bytes(PAGE)).unwrap_err().to_string();
    assert!(error.contains("vm.max_map_count") && error.contains("KiB"), "{error}");
    assert_eq!(mapping.lines(), 1, "nothing was split");
    // What the message proposes is allowed.
    let grain: u64 = error.split("grains of ").last().unwrap().split(' ').next().unwrap().parse().unwrap();
    let grains = split_with(Mark::CoreDump, mapping.0.clone(), Bytes(grain << 10)).unwrap();
    assert!(mapping.lines() as u64 <= limit * 3 / 4);
    join(&grains).unwrap();
}

#[test]
fn sizes_that_are_no_grains_are_refused() {
    for grain in [0, 1, 2048, 12 << 10] {
        let error = split_with(Mark::CoreDump, 0..1, Bytes(grain)).unwrap_err();
        assert!(error.to_string().contains("power of two"), "{error}");
    }
}
