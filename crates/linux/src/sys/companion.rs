//! Processes that share this program's memory and nothing else: `clone(2)` with `CLONE_VM`.
//!
//! As threads they would be part of the program: `unshare(2)` and `setns(2)` of namespaces would fail, a
//! seccomp filter for all threads would hit them, and a program that counts its threads would find one more.
//! Their exit signal is none, so that `wait(2)` without `__WALL` does not see them.
//!
//! A companion has a thread control block of its own, all zero: system calls of the C library work and have
//! an `errno` of their own. It must neither allocate nor use `std`'s threads or thread-local variables, for
//! which the block has no room: that would be a fault at once.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::mmap::Mapping;
use super::pages::PAGE;
use super::range::Range64;
use super::{checked, code};

/// Bytes of the guard below the stack: no smaller than any page size of Linux.
const GUARD: usize = 64 << 10;
const STACK: usize = 384 << 10;
/// Bytes on either side of the thread pointer: the C library's block and static thread-local variables.
const BLOCK: usize = 64 << 10;
/// Room for the value that a companion starts with.
const VALUE: usize = 1 << 10;

/// A companion that was started. Its memory stays mapped until [`Self::reap`].
pub(crate) struct Companion {
    process: libc::pid_t,
    memory: Range64,
}

impl Companion {
    /// Starts a process that calls `work(value, memory)` and ends; `memory` is its stack and block. It has
    /// copies of all descriptors, this thread's signal mask, and no other right than the program. Errors:
    /// `EAGAIN` for too many processes, `ENOMEM`.
    pub(crate) fn start<T: Copy + Send + 'static>(work: fn(T, Range64), value: T) -> Result<Self, i32> {
        const { assert!(size_of::<Start<T>>() <= VALUE && align_of::<Start<T>>() <= 64) };
        let flags = libc::MAP_NORESERVE | libc::MAP_STACK;
        let memory =
            Mapping::anonymous(GUARD + STACK + 2 * BLOCK + VALUE.next_multiple_of(PAGE as usize), flags)
                .map_err(|error| code(&error))?;
        memory.advise(libc::MADV_DONTFORK);
        let start = memory.start();
        // SAFETY: the lowest part of the mapping just made.
        checked(unsafe { libc::mprotect(start.cast(), GUARD, libc::PROT_NONE) })
            .map_err(|error| code(&error))?;
        let stack = start.wrapping_add(GUARD + STACK);
        let pointer = stack.wrapping_add(BLOCK);
        let argument = pointer.wrapping_add(BLOCK).cast::<Start<T>>();
        // SAFETY: within the mapping and aligned. The thread pointer's first and third words hold its own
        // address on x86-64 (System V ABI, "Thread-Local Storage"); elsewhere nobody reads them.
        unsafe {
            argument.write((work, value, memory.range()));
            pointer.cast::<*mut u8>().write(pointer);
            pointer.cast::<*mut u8>().add(2).write(pointer);
        }
        let flags = libc::CLONE_VM | libc::CLONE_UNTRACED | libc::CLONE_SETTLS;
        // SAFETY: the function, the stack and the block live in memory that stays mapped while the process
        // runs; the new process shares no lock and no thread-local variable with this one.
        let process = unsafe {
            let none = null_mut::<libc::pid_t>();
            libc::clone(
                enter::<T>,
                stack.cast(),
                flags,
                argument.cast(),
                none,
                pointer.cast::<c_void>(),
                none,
            )
        };
        checked(process).map_err(|error| code(&error))?;
        Ok(Self { process, memory: memory.leak() })
    }

    /// Waits for the end of a companion that this process started, and unmaps its memory.
    pub(crate) fn reap(self) {
        let mut status = 0;
        // SAFETY: writes one integer to a local.
        while unsafe { libc::waitpid(self.process, &raw mut status, libc::__WALL) } < 0
            && super::errno() == libc::EINTR
        {}
        // SAFETY: the process has ended, and nobody else knows of its memory.
        drop(unsafe { Mapping::reclaim(self.memory) });
    }
}

type Start<T> = (fn(T, Range64), T, Range64);

extern "C" fn enter<T: Copy>(argument: *mut c_void) -> libc::c_int {
    // SAFETY: `start` wrote the value there, for this process alone.
    let (work, value, memory) = unsafe { argument.cast::<Start<T>>().read() };
    work(value, memory);
    0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    static SEEN: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn a_companion_shares_memory_and_nothing_else() {
        fn work(value: u64, _: Range64) {
            // SAFETY: no arguments; a descriptor of this process's own.
            let (own, parent) = unsafe { (libc::getpid(), libc::getppid()) };
            // SAFETY: an invalid descriptor, for its error.
            unsafe { libc::close(-1) };
            // SAFETY: closes this process's copy.
            unsafe { libc::close(0) };
            if own != parent && super::super::errno() == libc::EBADF {
                SEEN.store(value, SeqCst);
            }
        }
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let before = threads();
        let companion = Companion::start(work, 7).unwrap();
        assert!(threads() <= before + 1, "tests beside this one may start threads");
        // SAFETY: an invalid descriptor leaves an error here that the companion must not change.
        unsafe { libc::fcntl(0, libc::F_GETFD) };
        companion.reap();
        assert_eq!(SEEN.load(SeqCst), 7);
        // SAFETY: asks for flags.
        assert!(unsafe { libc::fcntl(0, libc::F_GETFD) } >= 0, "standard input is closed here too");
    }
}
