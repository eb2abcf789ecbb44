//! Changes of mappings, each made while all of the memory is armed.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::memory::{Area, PAGE, map, read};
use crate::{Failure, Result, ensure};

const MIDDLE: usize = 64;
const PART: usize = 96;

fn pause() {
    std::thread::sleep(Duration::from_millis(150));
}

/// Fails if dropped contents come back, now or later.
fn check_hole(area: &Area) -> Result {
    for _ in 0..2 {
        area.check_zero(MIDDLE, PART)?;
        area.check_pages(0, MIDDLE)?;
        area.check_pages(MIDDLE + PART, area.pages - MIDDLE - PART)?;
        pause();
    }
    Ok(())
}

fn advise(area: &Area, first: usize, pages: usize, advice: i32) -> bool {
    // SAFETY: the area's own pages; nobody holds references to them.
    unsafe { libc::madvise(area.at(first) as *mut _, pages * PAGE, advice) == 0 }
}

fn move_to(from: usize, bytes: usize, to_bytes: usize, flags: i32) -> usize {
    // SAFETY: the area's own pages, or new ones; nobody holds references to them.
    unsafe { libc::mremap(from as *mut _, bytes, to_bytes, flags, 0usize) as usize }
}

pub(crate) fn write(area: &mut Area) -> Result {
    (0..area.pages).for_each(|page| area.set(page, 7));
    pause();
    ensure((0..area.pages).all(|page| read(area.at(page)) == 7), "what was written is lost")
}

pub(crate) fn unmap(area: &mut Area) -> Result {
    // SAFETY: the area's own pages.
    let done = unsafe { libc::munmap(area.at(MIDDLE) as *mut _, PART * PAGE) == 0 };
    ensure(done, "munmap")?;
    ensure(map(area.at(MIDDLE), PART * PAGE) == area.at(MIDDLE), "mmap")?;
    check_hole(area)
}

pub(crate) fn fixed(area: &mut Area) -> Result {
    ensure(map(area.at(MIDDLE), PART * PAGE) == area.at(MIDDLE), "mmap")?;
    check_hole(area)
}

pub(crate) fn dont_need(area: &mut Area) -> Result {
    ensure(advise(area, MIDDLE, PART, libc::MADV_DONTNEED), "madvise")?;
    check_hole(area)
}

/// Accepts old contents or zeros, since the kernel may drop contents later; what is written afterwards must
/// stay.
pub(crate) fn free(area: &mut Area) -> Result {
    ensure(advise(area, MIDDLE, PART, libc::MADV_FREE), "madvise")?;
    (MIDDLE..MIDDLE + PART).for_each(|page| area.set(page, 7));
    pause();
    ensure((MIDDLE..MIDDLE + PART).all(|page| read(area.at(page)) == 7), "what was written is lost")?;
    area.check_pages(0, MIDDLE)?;
    area.check_pages(MIDDLE + PART, area.pages - MIDDLE - PART)
}

pub(crate) fn remap(area: &mut Area) -> Result {
    let place = map(0, area.bytes());
    // SAFETY: the new place was mapped for this.
    let moved = unsafe {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(area.start as *mut _, area.bytes(), area.bytes(), flags, place) as usize
    };
    ensure(moved == place, "mremap")?;
    // SAFETY: the kernel only looks whether the range is mapped.
    let gone = unsafe { libc::msync(area.start as *mut _, PAGE, libc::MS_ASYNC) != 0 };
    area.start = place;
    area.check()?;
    ensure(gone, "the old place is still mapped")
}

pub(crate) fn remap_part(area: &mut Area) -> Result {
    let place = map(0, PART * PAGE);
    // SAFETY: the new place was mapped for this.
    let moved = unsafe {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(area.at(MIDDLE) as *mut _, PART * PAGE, PART * PAGE, flags, place) as usize
    };
    ensure(moved == place, "mremap")?;
    // So that the part is found where the check looks for it.
    let there = Area { start: place - MIDDLE * PAGE, pages: area.pages };
    there.check_pages(MIDDLE, PART)?;
    area.check_pages(0, MIDDLE)?;
    area.check_pages(MIDDLE + PART, area.pages - MIDDLE - PART)
}

pub(crate) fn grow(area: &mut Area) -> Result {
    let moved = move_to(area.start, area.bytes(), 4 * area.bytes(), libc::MREMAP_MAYMOVE);
    ensure(moved as isize != -1, "mremap")?;
    area.start = moved;
    area.check()?;
    Area { start: area.start, pages: 4 * area.pages }.check_zero(area.pages, 3 * area.pages)
}

/// Moves two neighbouring mappings in one call (Linux 6.17).
pub(crate) fn remap_two(area: &mut Area) -> Result {
    // SAFETY: advice on the area's own pages that splits the mapping.
    unsafe { libc::madvise(area.start as *mut _, MIDDLE * PAGE, libc::MADV_DONTDUMP) };
    let place = map(0, area.bytes());
    // SAFETY: the new place was mapped for this.
    let moved = unsafe {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(area.start as *mut _, area.bytes(), area.bytes(), flags, place) as usize
    };
    if moved != place && std::env::var_os("LD_PRELOAD").is_none() {
        return Err(Failure::Impossible("mremap takes one mapping here".into()));
    }
    ensure(moved == place, "mremap")?;
    area.start = place;
    area.check()
}

/// Registers memory that is armed with a userfaultfd of the program's own.
pub(crate) fn register(area: &mut Area) -> Result {
    area.own_userfaultfd().map_err(|_| Failure::Wrong("the program's own userfaultfd is refused".into()))?;
    area.check()
}

pub(crate) fn dont_unmap(area: &mut Area) -> Result {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    let moved = move_to(area.start, area.bytes(), area.bytes(), flags);
    ensure(moved as isize != -1, "mremap")?;
    area.check_zero(0, area.pages)?;
    Area { start: moved, pages: area.pages }.check()?;
    pause();
    area.check_zero(0, area.pages)
}

pub(crate) fn protect(area: &mut Area) -> Result {
    let protect = |first: usize, pages: usize, access: i32| {
        // SAFETY: the area's own pages.
        unsafe { libc::mprotect(area.at(first) as *mut _, pages * PAGE, access) == 0 }
    };
    let both = libc::PROT_READ | libc::PROT_WRITE;
    ensure(protect(MIDDLE, PART, libc::PROT_NONE), "mprotect")?;
    ensure(protect(0, 8, libc::PROT_READ), "mprotect")?;
    ensure(protect(8, 8, both | libc::PROT_EXEC), "mprotect")?;
    area.check_pages(0, MIDDLE)?;
    // Long enough for the agent to have closed everything.
    pause();
    ensure(protect(0, area.pages, both), "mprotect")?;
    area.check()
}

pub(crate) fn lock(area: &mut Area) -> Result {
    // SAFETY: the area's own pages.
    let locked = unsafe { libc::mlock(area.at(MIDDLE) as *const _, PART * PAGE) == 0 };
    ensure(locked, "mlock")?;
    area.check()
}

pub(crate) fn lock_all(area: &mut Area) -> Result {
    // SAFETY: no memory is passed.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
        return Err(Failure::Impossible("mlockall is not permitted".into()));
    }
    area.check()?;
    pause();
    area.check()
}

pub(crate) fn guard(area: &mut Area) -> Result {
    const INSTALL: i32 = 102;
    const REMOVE: i32 = 103;
    if !advise(area, MIDDLE, PART, INSTALL) {
        return Err(Failure::Impossible("no MADV_GUARD_INSTALL (Linux 6.13)".into()));
    }
    pause();
    ensure(advise(area, MIDDLE, PART, REMOVE), "madvise")?;
    check_hole(area)
}

/// Writes the memory to a file past the page cache, reads it back into the memory, and checks it.
pub(crate) fn direct(area: &mut Area) -> Result {
    let path = std::env::temp_dir().join(format!("victim-{}", std::process::id()));
    let open = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let Ok(file) = open else { return Err(Failure::Impossible("no direct files here".into())) };
    let _ = std::fs::remove_file(path);
    // SAFETY: the area's own memory, to which no reference exists.
    let (written, got) = unsafe {
        let written = libc::pwrite(file.as_raw_fd(), area.start as *const _, area.bytes(), 0);
        (0..area.pages).for_each(|page| area.set(page, 1));
        (written, libc::pread(file.as_raw_fd(), area.start as *mut _, area.bytes(), 0))
    };
    ensure(written == area.bytes() as isize && got == written, "direct reading and writing")?;
    area.check()
}

/// Huge pages must still be huge.
pub(crate) fn huge(area: &mut Area) -> Result {
    area.check()?;
    pause();
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let huge = smaps.lines().filter_map(|line| line.strip_prefix("AnonHugePages:"));
    let kib: usize = huge.filter_map(|rest| rest.trim().strip_suffix(" kB")?.parse::<usize>().ok()).sum();
    if std::env::var_os("LD_PRELOAD").is_none() && kib == 0 {
        return Err(Failure::Impossible("no huge pages are available".into()));
    }
    ensure(kib >= 4096, &format!("{kib} KiB of huge pages are left of 4096"))
}
