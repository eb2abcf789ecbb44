//! The ring of records: one writer, one reader, positions that only grow.

use core::sync::atomic::Ordering;

use crate::layout::{RECORD_WORDS, RingPlace, word};
use crate::{Record, Words};

impl RingPlace {
    /// Writes a record at `head`, which the caller keeps, and returns whether it fitted. An impossible
    /// position of the reader means a full ring.
    pub(crate) fn push(self, memory: &impl Words, head: &mut u64, record: Record) -> bool {
        let words = memory.words();
        let tail = words[word::TAIL].load(Ordering::Acquire);
        if head.wrapping_sub(tail) >= self.capacity {
            return false;
        }
        let slot = self.slot(*head);
        for (place, value) in words[slot..slot + RECORD_WORDS].iter().zip(record.pack()) {
            place.store(value, Ordering::Relaxed);
        }
        *head = head.wrapping_add(1);
        // The record is complete before it counts.
        words[word::HEAD].store(*head, Ordering::Release);
        true
    }

    /// Reads the record at `tail`, which the caller keeps; `None` for an empty ring or an impossible position
    /// of the writer.
    pub(crate) fn pop(self, memory: &impl Words, tail: &mut u64) -> Option<Record> {
        let words = memory.words();
        let waiting = words[word::HEAD].load(Ordering::Acquire).wrapping_sub(*tail);
        if waiting == 0 || waiting > self.capacity {
            return None;
        }
        let slot = self.slot(*tail);
        let record = core::array::from_fn(|index| words[slot + index].load(Ordering::Relaxed));
        *tail = tail.wrapping_add(1);
        // The record is read before its place may be written.
        words[word::TAIL].store(*tail, Ordering::Release);
        Some(Record::unpack(record))
    }

    fn slot(self, position: u64) -> usize {
        self.first + (position & (self.capacity - 1)) as usize * RECORD_WORDS
    }
}
