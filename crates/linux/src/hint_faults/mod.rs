//! Hint faults in software: accesses observed from inside of a program, without a PMU.
//!
//! Units: pages are 4 KiB; times are nanoseconds; budgets are parts of time.
//!
//! # Mechanism
//!
//! The agent *arms* windows of present pages: it moves them, with `UFFDIO_MOVE` (Linux 6.8), to a hidden
//! *store* in the same address space. The next access, from user mode or inside of a system call, waits in
//! the kernel until the agent has moved the page back and recorded the access. After the *window time*
//! untouched pages are moved back. Nothing is copied, system calls do not fail (as with `PROT_NONE`), and no
//! signal handler is needed.
//!
//! The agent is a process, `isotherm-agent`, that `libisotherm.so` starts in the program and that shares its
//! memory and nothing else ([`crate::sys::companion`]). So the program keeps one thread where it has one, and
//! finds no child: `unshare`, `setns` and system call filters for all threads (`TSYNC`) do not meet the
//! agent. It has descriptors of its own, blocks signals, ends with the program, and confines itself to some
//! 25 system calls (seccomp), for it keeps the rights that the program had at its start.
//!
//! # What a sample means
//!
//! Windows are drawn uniformly over the present pages, each page once a pass ([`pass`]). A page accessed at
//! random at rate r while its program runs faults in a window time T with probability 1 - exp(-rT): 5 % too
//! few samples at rT = 0.1, 37 % at rT = 1. So samples are in proportion to access rates for rT well below 1,
//! and hot pages saturate: the ratio of a very hot page to another one is at most 1 / (1 - exp(-rT)) of the
//! colder. T is adapted so that 3 to 12 % of the armed pages fault ([`pace`]; with more than a quarter,
//! windows are closed at once), which tells a hot tenth from the rest by a factor of 25 or more. To rank
//! pages within it, each touch comes with the time that its page had been armed, and each window with its
//! time and the pages that nobody touched ([`AccessSource::untouched`]). The hottest pages, which are touched
//! before a clock can tell, are compared in races ([`race`]). T is counted in the program's
//! processor time: a program that waits is not colder for it. Of a huge page (armed and back in whole) only
//! the page that is touched first is known.
//!
//! # What it costs
//!
//! Three accounts bound it: the program's lost time (2 %), the agent's processor time (3 % of a core), and
//! the policy's rate; of the first two 55 % are used, for machines where a fault costs more than it seems.
//! Lost time is estimated: faults times the cost of one, plus a part of the time that arming takes, while the
//! program's TLBs are flushed. The cost of a fault is measured at the start on pages of the agent's own, and
//! follows how long answers take. Waiting for processors that others use is not counted.
//!
//! # What the program may do meanwhile
//!
//! - *fork* puts everything back first (`pthread_atfork`, [`gate`]); the child has an agent of its own after
//!   50 ms. Of a child by a raw system call, by `_Fork` or by `clone(3)` the kernel tells: it gets copies of
//!   the pages that were armed at that moment, also where it changes its mappings meanwhile ([`child`]).
//! - `munmap`, `MAP_FIXED`, `MADV_DONTNEED` and `MADV_FREE` arrive as events; `mprotect` and `mlock` make the
//!   agent copy what it cannot move. The library wraps calls that raise no event or fail on registered
//!   memory: `mremap`, guards (`MADV_GUARD_INSTALL`) and `UFFDIO_REGISTER` are made while nothing is armed.
//!   **A program that makes these calls by the processor's instruction, past the C library, gets what the
//!   kernel does on armed pages: guards have no effect, a move over several mappings and a registration may
//!   be refused.**
//! - Huge pages are moved in whole, by the page table's entry; the kernel splits large folios of other sizes.
//! - Only private, anonymous, writable and not executable mappings are armed; never variables of the C
//!   library, memory of the agent, or pages that are pinned or shared with a child. When a thread ends, the
//!   kernel does not wait for missing pages, so excluded are stacks with their control blocks, pages with a
//!   robust mutex (those that processes share lie in shared memory) and pages with a word that the kernel
//!   clears (`CLONE_CHILD_CLEARTID`). So are pages that the program registers with a userfaultfd of its own,
//!   and those with `MADV_WIPEONFORK`. [`AccessSource::statistics`] tells how much is left out.
//! - A debugger that reads an armed page through `ptrace` or `/proc/PID/mem` gets an error for it (EIO). In
//!   core dumps it reads as zeros: the kernel does not wait for a handler while it dumps. Counts of pages
//!   find its contents in the agent's store ([`AccessSource::hidden`]).
//! - `mlockall`, more than 16,000 threads at a time, a list of robust mutexes that the C library does not
//!   know, and a main thread that leaves its process end the agent, with everything back. Children of a
//!   program that filters its system calls get no agent.
//! - When the engine goes, even by SIGKILL, the agent puts everything back and ends. Should the agent be
//!   killed while it holds pages, threads that touch them wait, since the engine keeps the userfaultfd open,
//!   and the engine kills the program: it does not go on without its memory. **If both are killed at the same
//!   time, the program finds zeros.**
//!
//! # Permission
//!
//! Linux tells of forks, and serves faults inside of system calls, with `CAP_SYS_PTRACE` outside of user
//! namespaces. The program must have it when it starts: as root, or as an ambient capability. Neither
//! `vm.unprivileged_userfaultfd` nor `/dev/userfaultfd` stand for it. Without, nothing is ever armed, and
//! [`HintFaultSource::refusals`] names the remedy.
//!
//! # Parts
//!
//! [`agent`] is the loop; [`mechanism`] arms and disarms, with [`window`], [`store`] and [`mappings`];
//! [`pass`] chooses, but for [`settled`] memory; [`race`] compares the hottest pages; [`pace`] bounds;
//! [`link`] and [`connection`] are the two ends of [`protocol`]; [`source`] is the engine's side.
//!
//! [`AccessSource::untouched`]: crate::source::AccessSource::untouched
//! [`AccessSource::statistics`]: crate::source::AccessSource::statistics
//! [`AccessSource::hidden`]: crate::source::AccessSource::hidden
#![allow(rustdoc::private_intra_doc_links)]

mod agent;
mod calibrate;
mod child;
mod connection;
mod gate;
mod link;
mod mappings;
mod mechanism;
mod pace;
mod pass;
mod presence;
mod protocol;
mod race;
mod random;
mod settings;
mod settled;
mod source;
mod start;
mod store;
mod tables;
mod window;

pub use gate::{exclude, give_up, is_agent, is_first_thread, note_filter, note_thread, undisturbed};
pub use protocol::{SOCKET_VARIABLE, VERBOSE_VARIABLE};
pub use settings::HintFaultOptions;
pub use source::{HintFaultSource, HintFaultStatistics};
pub use start::{prepare_inside, start_agent_inside, start_from_environment};
#[cfg(fuzzing)]
pub use {mappings::fuzz as fuzz_mapping, source::fuzz as fuzz_agent};

pub use crate::sys::agent::{BlockedSignals, own_descriptors, own_stack};
pub use crate::sys::range::Range64;
