//! Rings of records that the kernel fills: one for each kind of event and processor.
//!
//! Inherited events can be mapped only if they are bound to a processor (`perf_event_open(2)`: EINVAL
//! otherwise), and each thread and processor has its own. So each ring belongs to an *anchor*, an event of
//! this process that counts nothing, and the threads' events are redirected to their processor's anchor. The
//! ring thus outlives every thread.

use std::io;

use super::record::{Record, for_each};
use super::sys::{self, Attr, Event, Join, Mapping, flag, kind, software};

#[derive(Debug)]
pub struct Ring {
    anchor: Event,
    cpu: u32,
    mapping: Mapping,
    tail: u64,
    scratch: Vec<u8>,
}

/// Completes an attribute by what all events here share: their records are timed by `CLOCK_MONOTONIC`, which
/// the events of one ring must share, and wake no one, since rings are polled.
pub(crate) fn common(attr: Attr) -> Attr {
    Attr {
        flags: attr.flags | flag::USE_CLOCKID | flag::WATERMARK,
        clockid: libc::CLOCK_MONOTONIC,
        wakeup: u32::MAX / 2,
        ..attr
    }
}

impl Ring {
    /// Makes a ring of `pages` pages (a power of two) for events on `cpu`.
    pub fn new(cpu: u32, pages: usize) -> io::Result<Self> {
        let attr = common(Attr {
            kind: kind::SOFTWARE,
            config: software::DUMMY,
            // A dummy event has no samples to exclude, but unprivileged users may not open it without these.
            flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR,
            ..Attr::default()
        });
        let anchor = sys::open(&attr, 0, cpu as i32, Join::Alone)?;
        let mapping = Mapping::new(&anchor, pages)?;
        Ok(Self { anchor, cpu, mapping, tail: 0, scratch: Vec::new() })
    }

    /// Opens an event of a task on this ring's processor that writes here from the start.
    pub fn open(&self, attr: &Attr, task: u32) -> io::Result<Event> {
        sys::open(&common(*attr), task as i32, self.cpu as i32, Join::Ring(&self.anchor))
    }

    /// Opens an event as [`Self::open`] does, in a group led by another event that only counts.
    pub fn open_led(&self, leader: &Attr, attr: &Attr, task: u32) -> io::Result<[Event; 2]> {
        let (task, cpu) = (task as i32, self.cpu as i32);
        let leader = sys::open(&common(*leader), task, cpu, Join::Alone)?;
        let event = sys::open(&common(*attr), task, cpu, Join::Group(&leader))?;
        event.redirect(&self.anchor)?;
        Ok([leader, event])
    }

    /// Calls `visit` for each available record and frees their memory.
    pub fn drain(&mut self, visit: impl FnMut(Record<'_>)) {
        let head = self.mapping.head();
        if head == self.tail {
            return;
        }
        let (first, second) = self.mapping.records(self.tail, head);
        for_each(first, second, &mut self.scratch, visit);
        self.tail = head;
        self.mapping.release(head);
    }

    pub fn memory(&self) -> u64 {
        (self.mapping.len() + sys::page_size() + self.scratch.capacity()) as u64
    }
}
