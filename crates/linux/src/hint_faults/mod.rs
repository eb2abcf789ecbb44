//! Hint faults in software: accesses observed from inside of a program, without a PMU.
//!
//! Units: pages are 4 KiB; times are nanoseconds; budgets are parts of time.
//!
//! # Mechanism
//!
//! The agent, a thread in the program (`libisotherm.so`), *arms* windows of present pages: it moves them,
//! with `UFFDIO_MOVE` (Linux 6.8), to a hidden *store* in the same address space. The next access, from user
//! mode or inside of a system call, waits in the kernel until the agent has moved the page back and recorded
//! the access. After the *window time* untouched pages are moved back. Nothing is copied, system calls do not
//! fail (as with `PROT_NONE`), and no signal handler is needed.
//!
//! # What a sample means
//!
//! Windows are drawn uniformly over the present pages, each page once a pass ([`pass`]). A page accessed at
//! random at rate r while its program runs faults in a window time T with probability 1 - exp(-rT): 5 % too
//! few samples at rT = 0.1, 37 % at rT = 1. So samples are in proportion to access rates for rT well below 1,
//! and hot pages saturate: the ratio of a very hot page to another one is at most 1 / (1 - exp(-rT)) of the
//! colder. T is adapted so that 3 to 12 % of the armed pages fault ([`pace`]; with more than a quarter,
//! windows are closed at once), which tells a hot tenth from the rest by a factor of 25 or more, but does not
//! rank pages within it. T is counted in the program's processor time: a program that waits is not colder for
//! it. Of a huge page (armed and back in whole) only the page that is touched first is known.
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
//!   50 ms. A raw `clone` is told by the kernel where `CAP_SYS_PTRACE` is held: the child then gets copies of
//!   armed pages. **Without that capability a child made by a raw system call, by `_Fork` or by `clone(3)`
//!   finds zeros in pages armed at that moment.**
//! - `munmap`, `mremap`, `MAP_FIXED`, `MADV_DONTNEED` and `MADV_FREE` arrive as events; `mprotect` and
//!   `mlock` make the agent copy what it cannot move. Guards and `MADV_WIPEONFORK` raise no event: the
//!   library wraps `madvise`, so that they are set while nothing is armed; **set by a raw system call on
//!   armed pages, they have no effect on those**.
//! - Huge pages are moved in whole, by the page table's entry; the kernel splits large folios of other sizes.
//! - Only private, anonymous, writable and not executable mappings are armed; never the main stack, threads'
//!   stacks and control blocks ([`gate`] says why), variables of the C library, memory of the agent, or pages
//!   that are pinned, shared with a child, or registered with a userfaultfd of the program's own.
//! - Threads made by a raw `clone` that ask for their number to be cleared in memory that is armed
//!   (`CLEARTID`) are not told; nor are robust mutexes in private memory released if their page is armed when
//!   their owner dies.
//! - A debugger that reads armed pages through `ptrace` or `/proc/PID/mem` gets an error for those; core
//!   dumps and counts of pages find them in the store ([`crate::source::AccessSource::hidden`]).
//! - As in any program with threads, `unshare(CLONE_NEWUSER)` and `setns` of such namespaces fail. A seccomp
//!   filter laid over all threads (`TSYNC`) must allow the agent's calls: `ioctl`, `read`, `pread64`,
//!   `ppoll`, `clock_gettime`, `recvfrom`, `nanosleep`, `madvise`.
//! - `mlockall` ends the agent. When the engine goes, even by SIGKILL, it puts everything back and ends.
//!
//! # Permission
//!
//! Faults inside of system calls need `CAP_SYS_PTRACE`, `vm.unprivileged_userfaultfd=1` or access to
//! `/dev/userfaultfd`; without, nothing is ever armed, and [`HintFaultSource::refusals`] names the remedy.
//!
//! # Parts
//!
//! [`agent`] is the loop; [`mechanism`] arms and disarms, with [`window`], [`store`] and [`mappings`];
//! [`pass`] chooses; [`pace`] bounds; [`link`] and [`connection`] are the two ends of [`protocol`];
//! [`source`] is the engine's side.
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
mod random;
mod settings;
mod source;
mod start;
mod store;
mod tables;
mod window;

pub use gate::{exclude, give_up, is_agent, note_filter, note_thread, undisturbed};
pub use protocol::{SOCKET_VARIABLE, VERBOSE_VARIABLE};
pub use settings::HintFaultOptions;
pub use source::{HintFaultSource, HintFaultStatistics};
pub use start::{prepare_inside, start_agent_inside, start_from_environment};
#[cfg(fuzzing)]
pub use {mappings::fuzz as fuzz_mapping, source::fuzz as fuzz_agent};

pub use crate::sys::agent::{BlockedSignals, own_descriptors, own_stack};
pub use crate::sys::range::Range64;
