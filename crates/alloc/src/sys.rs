//! System calls for the allocator's own memory.

use std::ffi::CStr;
use std::ptr::{self, NonNull};

pub(crate) const PAGE: usize = 4096;

/// Reserves addresses without memory at a multiple of `alignment`, a power of two of at least a page.
pub(crate) fn reserve(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    let whole = size.checked_add(alignment)?;
    let start = map(whole, libc::PROT_NONE)?.as_ptr() as usize;
    let aligned = start.next_multiple_of(alignment);
    unmap(start, aligned - start);
    unmap(aligned + size, start + whole - aligned - size);
    NonNull::new(aligned as *mut u8)
}

pub(crate) fn memory(size: usize) -> Option<NonNull<u8>> {
    map(size, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(size: usize, protection: i32) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing one.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Maps memory at exactly these addresses, whole pages that nothing uses. Returns false if something does, or
/// the system refuses.
pub(crate) fn map_at(start: usize, size: usize, protection: i32) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the call replaces no mapping, and old systems take the address as a wish.
    let found = unsafe { libc::mmap(start as *mut _, size, protection, flags, -1, 0) };
    let done = found as usize == start;
    if !done && found != libc::MAP_FAILED {
        unmap(found as usize, size);
    }
    done
}

/// Gives reserved addresses back.
pub(crate) fn unmap(start: usize, size: usize) {
    if size > 0 {
        // SAFETY: callers pass addresses that they have just reserved and that nothing uses.
        unsafe { libc::munmap(start as *mut _, size) };
    }
}

/// Commits reserved addresses, widened to whole pages. Returns false if the system refuses.
pub(crate) fn commit(start: usize, size: usize) -> bool {
    let (first, end) = (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE));
    // SAFETY: callers pass addresses that they have reserved, and making them accessible breaks no reference.
    unsafe { libc::mprotect(first as *mut _, end - first, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Drops the contents of committed memory, which then reads as zeros. Returns false if the system refuses.
pub(crate) fn discard(start: usize, size: usize) -> bool {
    // SAFETY: callers pass memory of theirs whose contents nothing needs.
    unsafe { libc::madvise(start as *mut _, size, libc::MADV_DONTNEED) == 0 }
}

/// Returns the end of the main thread's stack, 0 if the loader does not tell.
pub(crate) fn main_stack_end() -> usize {
    let end: usize;
    // SAFETY: the instruction reads the slot into which the loader put the variable's address, or null
    // because the symbol is weak; an address that is not null is that of a `void *`.
    unsafe {
        let variable: *const usize;
        std::arch::asm!(
            ".weak __libc_stack_end",
            "mov {}, qword ptr [rip + __libc_stack_end@GOTPCREL]",
            out(reg) variable,
            options(nostack, readonly, preserves_flags),
        );
        end = if variable.is_null() { 0 } else { *variable };
    }
    end
}

/// Creates or replaces a file of zeros, whose path ends with a byte of 0, and maps it shared. Its blocks are
/// allocated, since writing to a mapping for which the disk has no room ends a program by SIGBUS.
///
/// # Errors
/// The number of the error; then there is no file.
pub(crate) fn create_shared(path: &[u8], bytes: usize) -> Result<NonNull<u8>, i32> {
    let path = CStr::from_bytes_with_nul(path).map_err(|_| libc::ENAMETOOLONG)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // A file beyond the limit would end the program by SIGXFSZ.
    if limit(libc::RLIMIT_FSIZE) < bytes as u64 {
        return Err(libc::EFBIG);
    }
    // SAFETY: the path ends with 0, the file is this call's own, and a new mapping touches no other.
    unsafe {
        let file = libc::open(path.as_ptr(), flags, 0o600);
        if file < 0 {
            return Err(errno());
        }
        let allocated = allocate(file, bytes);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = allocated.and_then(|()| {
            match libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) {
                libc::MAP_FAILED => Err(errno()),
                start => NonNull::new(start.cast()).ok_or(libc::ENOMEM),
            }
        });
        libc::close(file);
        if mapped.is_err() {
            libc::unlink(path.as_ptr());
        }
        mapped
    }
}

fn allocate(file: libc::c_int, bytes: usize) -> Result<(), i32> {
    loop {
        // SAFETY: the call has no preconditions.
        match unsafe { libc::posix_fallocate(file, 0, bytes as libc::off_t) } {
            0 => break Ok(()),
            libc::EINTR => {}
            error => break Err(error),
        }
    }
}

/// Returns a limit of this process, or `RLIM_INFINITY`.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the variable can be written; if the call fails it says that there is no limit.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit.rlim_cur
}

fn errno() -> i32 {
    // SAFETY: the address of this thread's `errno` is valid for the thread's life.
    unsafe { *libc::__errno_location() }
}

/// Returns whether the program has more rights than who started it, who must not command it then.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the path of the program, empty if the system does not tell.
pub(crate) fn own_path(room: &mut [u8]) -> &[u8] {
    // SAFETY: the path ends with 0, and pointer and length are those of a slice.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), room.as_mut_ptr().cast(), room.len()) };
    &room[..usize::try_from(length).unwrap_or(0)]
}
