//! Owners of frames, by the page tables of this process. The kernel tells frames only to CAP_SYS_ADMIN.
#![allow(unsafe_code)] // pages of our own are made and moved

use std::ops::Range;

use isotherm_core::Nanos;
use isotherm_linux::devices::owners::{Owners, PageTables};
use isotherm_linux::memory::pagemap::{ABSENT, Pagemap};
use isotherm_linux::process::{Pid, ProcRoot};

const PAGE: usize = 4096;
const SECOND: Nanos = Nanos::SECOND;

/// Reserves addresses, none of them accessible.
fn reserve(bytes: usize) -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start as u64
}

/// Maps a present page of its own.
fn page() -> u64 {
    let address = reserve(3 * PAGE) + PAGE as u64;
    // SAFETY: within the mapping just made, which nothing else knows of.
    unsafe {
        assert_eq!(libc::mprotect(address as *mut _, PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
        (address as *mut u8).write_volatile(1);
    }
    address
}

/// Moves a page with its frame to another address.
fn move_page(from: u64, to: u64) {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both ranges are mappings of this test to which there are no references.
    let moved = unsafe { libc::mremap(from as *mut _, PAGE, PAGE, flags, to as *mut libc::c_void) };
    assert_eq!(moved as u64, to);
}

struct World {
    owners: PageTables,
    table: Pagemap,
    process: Pid,
}

impl World {
    /// Returns a lookup for a device with all frames; `None` where the kernel does not tell frames.
    fn new() -> Option<Self> {
        let (root, process) = (ProcRoot::default(), Pid(std::process::id()));
        let everything: Range<u64> = 1..u64::MAX;
        let mut owners = PageTables::new(root.clone(), vec![everything]);
        owners.follow(process);
        let mut world = Self { owners, table: Pagemap::open(&root, process).expect("our own"), process };
        (world.frame(page()) != ABSENT).then_some(world)
    }

    fn frame(&mut self, address: u64) -> u64 {
        let mut frame = [ABSENT];
        self.table.frames(address, &mut frame).expect("our own");
        frame[0]
    }

    /// Returns the addresses of the frames' pages, and how many frames have none.
    fn find(&mut self, frames: &[u64], now: Nanos) -> (Vec<u64>, u64) {
        let mut pages = Vec::new();
        let unknown = self.owners.find(frames, now, &mut pages).expect("our own page tables");
        assert!(pages.iter().all(|page| page.0 == self.process));
        (pages.iter().map(|page| page.1).collect(), unknown)
    }
}

#[test]
fn a_frame_that_went_to_another_page_is_that_pages() {
    let Some(mut world) = World::new() else { return };
    let (first, second) = (page(), reserve(PAGE));
    let frame = world.frame(first);
    assert_eq!(world.find(&[frame], SECOND), (vec![first], 0));
    move_page(first, second);
    assert_eq!(world.find(&[frame], SECOND), (vec![], 1), "not read again at once");
    assert_eq!(world.find(&[frame], Nanos(2 * SECOND.0)), (vec![second], 0));
}

#[test]
fn frames_of_others_make_readings_rarer_and_not_for_ever() {
    let Some(mut world) = World::new() else { return };
    let nobodys = 1 << 50;
    let mut now = SECOND;
    for _ in 0..10 {
        assert_eq!(world.find(&[nobodys], now), (vec![], 1));
        now += Nanos(2 * SECOND.0);
    }
    // A newer page is unknown until the next reading.
    let late = page();
    let frame = world.frame(late);
    let just_read = Nanos(now.0 - 2 * SECOND.0);
    assert_eq!(world.find(&[frame], just_read + SECOND), (vec![], 1));
    assert_eq!(world.find(&[frame], now), (vec![late], 0));
    // It was found, so the next reading may come soon.
    let next = page();
    let frame = world.frame(next);
    assert_eq!(world.find(&[frame], now + Nanos(SECOND.0 / 5)), (vec![next], 0));
}
