//! `perf_event_open(2)`: events, the rings of their records and AUX areas.
//!
//! The declarations restate include/uapi/linux/perf_event.h of Linux 6.12 ([`Attr`] is its `perf_event_attr`,
//! `PERF_ATTR_SIZE_VER8`). Older kernels accept it as long as fields unknown to them are zero.

mod aux;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::mmap;
pub use super::pages::page_size;
use super::{checked, owned};

/// An event to count or sample: `struct perf_event_attr`. Fields without a comment stay 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attr {
    /// The PMU, one of [`kind`] or a `type` of sysfs.
    pub kind: u32,
    /// The size of this structure; [`open`] fills it in.
    pub size: u32,
    /// The event, in the PMU's own format.
    pub config: u64,
    /// The period, or the frequency with [`flag::FREQ`].
    pub period: u64,
    /// Fields of a sample: bits of [`sample`].
    pub sample_type: u64,
    /// Values of a read: bits of [`read`].
    pub read_format: u64,
    /// Bits of [`flag`].
    pub flags: u64,
    /// Events, or bytes with [`flag::WATERMARK`], between wake-ups.
    pub wakeup: u32,
    pub breakpoint_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    /// The clock of the records' times, with [`flag::USE_CLOCKID`].
    pub clockid: i32,
    pub sample_regs_intr: u64,
    /// Bytes between wake-ups of the AUX area.
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved: u16,
    pub aux_sample_size: u32,
    pub aux_action: u32,
    pub sig_data: u64,
    pub config3: u64,
}

const _: () = assert!(size_of::<Attr>() == 136);

/// PMU types of `enum perf_type_id`; all others are numbered at boot and stand in sysfs.
pub mod kind {
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const RAW: u32 = 4;
}

/// Events of `enum perf_sw_ids`.
pub mod software {
    /// Processor time of a task, in nanoseconds.
    pub const TASK_CLOCK: u64 = 1;
    pub const PAGE_FAULTS: u64 = 2;
    /// Counts nothing: a carrier of other records.
    pub const DUMMY: u64 = 9;
}

/// Bits of `sample_type`: `enum perf_event_sample_format`.
pub mod sample {
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const PERIOD: u64 = 1 << 8;
    /// The PMU's own record.
    pub const RAW: u64 = 1 << 10;
    /// Latency in cycles.
    pub const WEIGHT: u64 = 1 << 14;
    /// Level of the memory hierarchy that served the access.
    pub const DATA_SRC: u64 = 1 << 15;
    /// Event number, at a fixed place.
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of the attribute's bit field, from its first.
pub mod flag {
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    /// An event that cannot be scheduled is in error: reads return nothing.
    pub const PINNED: u64 = 1 << 2;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub const COMM: u64 = 1 << 9;
    /// `period` is a frequency.
    pub const FREQ: u64 = 1 << 10;
    pub const TASK: u64 = 1 << 13;
    /// `wakeup` is in bytes.
    pub const WATERMARK: u64 = 1 << 14;
    /// Other records say time and task too.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// A new name says whether it is of an exec.
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCKID: u64 = 1 << 25;

    /// Returns `precise_ip`: the precision of the sampled instruction, from 0 (any skid) to 3 (no skid).
    pub const fn precise(level: u8) -> u64 {
        (level as u64 & 3) << 15
    }
}

/// Bits of `read_format`: `enum perf_event_read_format`.
pub mod read {
    /// Time enabled, in nanoseconds.
    pub const TIME_ENABLED: u64 = 1 << 0;
    pub const TIME_RUNNING: u64 = 1 << 1;
    /// All of the group at once.
    pub const GROUP: u64 = 1 << 3;
}

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
/// `_IOR('$', 7, __u64 *)`: the size is that of a pointer.
const IOC_ID: libc::c_ulong = 0x8000_2407 | (size_of::<usize>() as libc::c_ulong) << 16;
/// `PERF_FLAG_FD_NO_GROUP`.
const NO_GROUP: libc::c_ulong = 1 << 0;
/// `PERF_FLAG_FD_OUTPUT`: broken since 2.6.35 by the manual, but not since 2.6.36 (a test relies on it).
const OUTPUT: libc::c_ulong = 1 << 1;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// An event that was opened; closing it ends it, and those inherited from it.
#[derive(Debug)]
pub struct Event(OwnedFd);

/// The group or ring that an event joins when it is opened.
#[derive(Debug, Clone, Copy)]
pub enum Join<'a> {
    Alone,
    Group(&'a Event),
    /// The ring of this event, as with [`Event::redirect`].
    Ring(&'a Event),
}

/// Opens an event of a task (0: the calling thread, -1: every task) on a processor (-1: any).
///
/// # Errors
/// `EACCES` or `EPERM` where `kernel.perf_event_paranoid` or rights forbid it, `ENOENT` for an unknown event,
/// `EINVAL` for a refused attribute, `ESRCH` without such a task, `ENODEV` without such a processor, `EMFILE`
/// without descriptors, `EOPNOTSUPP` for an option that needs other hardware.
pub fn open(attr: &Attr, task: i32, cpu: i32, join: Join<'_>) -> io::Result<Event> {
    let attr = Attr { size: size_of::<Attr>() as u32, ..*attr };
    let (leader, flags) = match join {
        Join::Alone => (-1, CLOSE_ON_EXEC),
        Join::Group(event) => (event.0.as_raw_fd(), CLOSE_ON_EXEC),
        Join::Ring(event) => (event.0.as_raw_fd(), CLOSE_ON_EXEC | NO_GROUP | OUTPUT),
    };
    // SAFETY: `attr` outlives the call, and its `size` says how much of it the kernel may read.
    owned(unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, task, cpu, leader, flags) })
        .map(Event)
}

impl Event {
    fn ioctl(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the descriptor is open; all requests passed here take a plain number as argument.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) }).map(drop)
    }

    /// Starts it, and the events inherited from it.
    pub fn enable(&self) -> io::Result<()> {
        self.ioctl(IOC_ENABLE, 0)
    }

    pub fn disable(&self) -> io::Result<()> {
        self.ioctl(IOC_DISABLE, 0)
    }

    /// Writes its records to the ring of `other`.
    ///
    /// # Errors
    /// `EINVAL` unless both are on one processor and use one clock.
    pub fn redirect(&self, other: &Self) -> io::Result<()> {
        self.ioctl(IOC_SET_OUTPUT, other.0.as_raw_fd() as libc::c_ulong)
    }

    /// Returns the number that its records carry, and those of the events inherited from it.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: the request writes one `u64` to the pointer, which is valid for that.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_ID as _, &raw mut id) }).map(|_| id)
    }

    /// Reads counts as `read_format` says; returns how many values, 0 for a pinned event without a counter.
    ///
    /// # Errors
    /// `ENOSPC` if `values` is too short.
    pub fn read(&self, values: &mut [u64]) -> io::Result<usize> {
        // SAFETY: the pointer and the length are those of `values`, in which any bytes are valid.
        let count =
            unsafe { libc::read(self.0.as_raw_fd(), values.as_mut_ptr().cast(), size_of_val(values)) };
        if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize / size_of::<u64>()) }
    }
}

pub use aux::AuxArea;

/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The memory that the kernel writes records to: one page of control data and 2^n pages of records.
#[derive(Debug)]
pub struct Mapping {
    memory: mmap::Mapping,
    page: usize,
    data: usize,
}

impl Mapping {
    /// Maps a ring of `pages` pages for records of `event`.
    ///
    /// # Errors
    /// `EINVAL` unless `pages` is a power of two, or for an inherited event that is bound to no processor;
    /// `EPERM` beyond `kernel.perf_event_mlock_kb`.
    pub fn new(event: &Event, pages: usize) -> io::Result<Self> {
        let page = page_size();
        if !pages.is_power_of_two() || pages > 1 << 30 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let memory = mmap::Mapping::shared(event.0.as_fd(), 0, (pages + 1) * page)?;
        Ok(Self { memory, page, data: pages * page })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offsets lie in the first page, which is mapped as long as `self` lives, and are
        // multiples of 8; the kernel and this process access them as atomic integers only.
        unsafe { AtomicU64::from_ptr(self.memory.start().add(offset).cast()) }
    }

    pub fn len(&self) -> usize {
        self.data
    }

    pub fn is_empty(&self) -> bool {
        self.data == 0
    }

    /// Returns how far the kernel has written since the start, in bytes. Earlier records may be read.
    pub fn head(&self) -> u64 {
        self.position(HEAD).load(Ordering::Acquire)
    }

    /// Returns the records from `tail`, last passed to [`Self::release`], to `head`, a result of
    /// [`Self::head`] since, in two parts: up to the end of the memory, and from its start.
    pub fn records(&mut self, tail: u64, head: u64) -> (&[u8], &[u8]) {
        let (start, first, second) = parts(tail, head, self.data);
        // SAFETY: both parts lie in the mapping, behind the first page. The kernel does not write between
        // tail and head, and `&mut self` keeps `release` from moving the tail while they are borrowed.
        unsafe {
            let data = self.memory.start().add(self.page);
            (std::slice::from_raw_parts(data.add(start), first), std::slice::from_raw_parts(data, second))
        }
    }

    /// Gives the memory before `tail` back to the kernel.
    pub fn release(&mut self, tail: u64) {
        self.position(TAIL).store(tail, Ordering::Release);
    }
}

/// Returns where the bytes from `tail` to `head` begin in a ring of `size` bytes, a power of two, and the
/// lengths of their parts up to its end and from its start, which fit it whatever the positions are.
fn parts(tail: u64, head: u64, size: usize) -> (usize, usize, usize) {
    let length = (head.wrapping_sub(tail) as usize).min(size);
    let start = tail as usize & (size - 1);
    let first = length.min(size - start);
    (start, first, length - first)
}
