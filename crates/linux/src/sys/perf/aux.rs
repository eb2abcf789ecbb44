//! The AUX area of an event's ring, where a PMU writes data that are not records (`perf_event_open(2)`).

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use super::{Event, Mapping, mmap, page_size, parts};

/// Offsets of `aux_head`, `aux_tail`, `aux_offset` and `aux_size` in `struct perf_event_mmap_page`.
const HEAD: usize = 1056;
const TAIL: usize = 1064;
const OFFSET: usize = 1072;
const SIZE: usize = 1080;

/// The memory that a PMU writes to beside the ring of records.
#[derive(Debug)]
pub struct AuxArea {
    memory: mmap::Mapping,
    size: usize,
}

impl AuxArea {
    /// Maps an area of `pages` pages for what the PMU of `event` writes. `ring` is the event's own.
    ///
    /// # Errors
    /// `EINVAL` unless `pages` is a power of two, at most 2^20; that or `EOPNOTSUPP` for a PMU without data.
    pub fn new(event: &Event, ring: &Mapping, pages: usize) -> io::Result<Self> {
        if !pages.is_power_of_two() || pages > 1 << 20 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (offset, size) = (ring.page + ring.data, pages * page_size());
        ring.position(OFFSET).store(offset as u64, Ordering::Relaxed);
        ring.position(SIZE).store(size as u64, Ordering::Release);
        // Writable: the PMU waits until data are released instead of overwriting them.
        Ok(Self { memory: mmap::Mapping::shared(event.0.as_fd(), offset, size)?, size })
    }

    /// Returns how far the PMU has written since the start, in bytes.
    pub fn head(&self, ring: &Mapping) -> u64 {
        ring.position(HEAD).load(Ordering::Acquire)
    }

    /// Returns the bytes from `tail`, not before [`Self::release`]'s last argument, to `head`, a result of
    /// [`Self::head`] since, in two parts: up to the end of the area, and from its start.
    pub fn bytes(&mut self, tail: u64, head: u64) -> (&[u8], &[u8]) {
        let (start, first, second) = parts(tail, head, self.size);
        // SAFETY: both parts lie in the mapping. The kernel does not write between tail and head, and `&mut
        // self` keeps `release` from moving the tail while they are borrowed.
        unsafe {
            let data = self.memory.start();
            (std::slice::from_raw_parts(data.add(start), first), std::slice::from_raw_parts(data, second))
        }
    }

    /// Gives the memory before `tail` back to the PMU.
    pub fn release(&mut self, ring: &Mapping, tail: u64) {
        ring.position(TAIL).store(tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sys::perf::{Attr, Join, flag, kind, open, software};

    #[test]
    fn what_lies_around_the_end_comes_in_two_parts() {
        assert_eq!(parts(0, 24, 32), (0, 24, 0));
        assert_eq!(parts(24, 48, 32), (24, 8, 16));
        assert_eq!(parts(u64::MAX - 7, 8, 32), (24, 8, 8), "positions go around too");
        assert_eq!(parts(5, 5, 32), (5, 0, 0));
    }

    #[test]
    fn an_event_without_an_aux_area_and_sizes_that_cannot_be_are_refused() {
        let attr = Attr {
            kind: kind::SOFTWARE,
            config: software::DUMMY,
            flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR,
            ..Attr::default()
        };
        let event = open(&attr, 0, -1, Join::Alone).expect("software events need no rights");
        let ring = Mapping::new(&event, 1).expect("a page and the control page");
        for pages in [0, 3, 1 << 21] {
            let error = AuxArea::new(&event, &ring, pages).expect_err("no power of two, or too much");
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        }
        AuxArea::new(&event, &ring, 4).expect_err("the kernel's own events write no AUX data");
        assert_eq!(ring.position(OFFSET).load(Ordering::Relaxed), 2 * page_size() as u64, "behind the ring");
    }

    proptest! {
        #[test]
        fn parts_lie_in_the_ring(tail: u64, head: u64, shift in 3u32..20) {
            let size = 1usize << shift;
            let (start, first, second) = parts(tail, head, size);
            prop_assert!(start + first <= size && second <= start && first + second <= size);
        }
    }
}
