//! The event of a hotness monitoring unit, opened by `perf_event_open(2)`, with a ring and an AUX area.

use std::io;
use std::ops::Range;

use super::hot_list::{Tally, decode};
use crate::perf::open::encoded;
use crate::perf::pmu::Encoding;
use crate::perf::record::{Content, for_each};
use crate::sys::perf::{self, Attr, AuxArea, Event, Join, Mapping, flag};

/// Pages of records: one record per hot list.
const RING_PAGES: usize = 8;
/// Pages of hot lists: 512 KiB, as much as the largest unit holds, twice what it writes at once.
const AUX_PAGES: usize = 128;

/// Hot lists of an opened event.
pub trait HotLists: Send {
    /// Starts counting from zero; first writes the hot list if it was stopped.
    fn start(&mut self) -> io::Result<()>;

    /// Stops and writes the hot list.
    fn stop(&mut self) -> io::Result<()>;

    /// Calls `visit` with number and count of each unit since the last call; units without room are missing.
    fn drain(&mut self, visit: &mut dyn FnMut(u64, u64)) -> Tally;
}

#[derive(Debug)]
pub struct PerfStream {
    event: Event,
    ring: Mapping,
    aux: AuxArea,
    tail: u64,
    aux_tail: u64,
    scratch: Vec<u8>,
    lists: Vec<u8>,
}

/// Excludes nothing, which the driver would not take; the ring is polled and wakes nobody.
fn attribute(encoding: Encoding) -> Attr {
    Attr { flags: flag::DISABLED | flag::PINNED | flag::WATERMARK, wakeup: u32::MAX / 2, ..encoded(encoding) }
}

impl PerfStream {
    /// Opens the event on a processor, stopped.
    ///
    /// # Errors
    /// Returns the kernel's error: EOPNOTSUPP where the unit lacks what the event asks.
    pub fn open(encoding: Encoding, cpu: u32) -> io::Result<Self> {
        let event = perf::open(&attribute(encoding), -1, cpu as i32, Join::Alone)?;
        let ring = Mapping::new(&event, RING_PAGES)?;
        let aux = AuxArea::new(&event, &ring, AUX_PAGES)?;
        Ok(Self { event, ring, aux, tail: 0, aux_tail: 0, scratch: Vec::new(), lists: Vec::new() })
    }
}

impl HotLists for PerfStream {
    fn start(&mut self) -> io::Result<()> {
        self.event.enable()?;
        // Reads of a pinned event that the driver could not start return nothing.
        match self.event.read(&mut [0; 4])? {
            0 => Err(io::Error::from_raw_os_error(libc::EBUSY)),
            _ => Ok(()),
        }
    }

    fn stop(&mut self) -> io::Result<()> {
        self.event.disable()
    }

    fn drain(&mut self, visit: &mut dyn FnMut(u64, u64)) -> Tally {
        let head = self.ring.head();
        let written = self.aux_tail..self.aux.head(&self.ring);
        let (first, second) = self.ring.records(self.tail, head);
        let (pieces, lost) = pieces(first, second, &mut self.scratch, written);
        let mut tally = Tally { missing: lost, ..Tally::default() };
        for piece in pieces {
            let (first, second) = self.aux.bytes(piece.start, piece.end);
            let read = decode(first, second, &mut self.lists, &mut *visit);
            tally.entries += read.entries;
            tally.missing += read.missing;
            tally.damaged += read.damaged;
            self.aux_tail = piece.end;
        }
        self.tail = head;
        self.ring.release(head);
        self.aux.release(&self.ring, self.aux_tail);
        tally
    }
}

/// Returns the pieces of the AUX area that the records announce, in order, and how many records or ends of
/// pieces are lost. Only bytes in `written`, finished by the kernel and still kept, may be read.
fn pieces(first: &[u8], second: &[u8], scratch: &mut Vec<u8>, written: Range<u64>) -> (Vec<Range<u64>>, u64) {
    let (mut pieces, mut lost, mut next) = (Vec::new(), 0, written.start);
    for_each(first, second, scratch, |record| match record.content() {
        Content::Aux { offset, size, truncated } => {
            lost += u64::from(truncated);
            let end = offset.saturating_add(size);
            if offset >= next && end <= written.end {
                pieces.push(offset..end);
                next = end;
            }
        }
        Content::Lost(records) => lost += records,
        _ => {}
    });
    (pieces, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_RECORD_AUX`: what was written from `offset` on.
    fn aux(offset: u64, size: u64, flags: u64) -> Vec<u8> {
        // The kind, no flags of the record, 8 bytes of header and 24 of body.
        let header = 11 | 32 << 48;
        [header, offset, size, flags].into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn pieces_are_what_the_records_say_and_lie_in_what_is_written() {
        let records = [
            aux(4096, 24, 0),
            aux(4120, 40, 1),
            // Given back already, not finished yet, beyond all numbers.
            aux(4000, 96, 0),
            aux(5000, 5000, 0),
            aux(u64::MAX, 8, 0),
            // A piece may be left out: its record was lost. `PERF_RECORD_LOST`: 3 of event 1.
            [2 | 24 << 48, 1, 3_u64].into_iter().flat_map(u64::to_ne_bytes).collect(),
            aux(8000, 16, 0),
        ]
        .concat();
        let expected = (vec![4096..4120, 4120..4160, 8000..8016], 1 + 3);
        for turn in (0..records.len()).step_by(8) {
            let (first, second) = records.split_at(turn);
            assert_eq!(
                pieces(first, second, &mut Vec::new(), 4096..8192),
                expected,
                "the ring ends at {turn}"
            );
        }
    }

    #[test]
    fn the_event_is_one_that_the_driver_takes() {
        let attr = attribute(Encoding { kind: 21, config: [1, 2, 3, 0] });
        assert_eq!((attr.kind, attr.config, attr.config1, attr.config2), (21, 1, 2, 3));
        let excluded = flag::EXCLUDE_USER | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR;
        assert_eq!((attr.flags & excluded, attr.flags & flag::INHERIT), (0, 0));
    }
}
