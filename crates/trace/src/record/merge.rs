//! Merges the records of all threads into rows in one order.

use crate::{Row, Rows};
use isotherm_recorder_protocol::Record;
use isotherm_recorder_protocol::layout::RECORD_BYTES;

#[derive(Debug, Clone, Copy)]
struct Event {
    stamp: u64,
    process: u32,
    thread: u32,
    record: Record,
}

/// Records that wait until no earlier one can arrive.
#[derive(Debug, Default)]
pub(super) struct Merge {
    pending: Vec<Event>,
    /// Latest stamp seen, and that of the previous round.
    latest: u64,
    settled: u64,
}

impl Merge {
    /// Adds the records in `bytes`. Chunks of a thread arrive in order.
    pub(super) fn add(&mut self, process: u32, thread: u32, base: u64, bytes: &[u8]) {
        let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
        self.pending.extend(records.iter().map(|bytes| {
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
            let record = Record::unpack([word(0), word(8)]);
            Event { stamp: base.wrapping_add(u64::from(record.stamp)), process, thread, record }
        }));
        self.latest = self.pending.last().map_or(self.latest, |event| event.stamp.max(self.latest));
    }

    /// Ends a round, in which every thread's records were added. Moves those into `rows` that are no later
    /// than the latest record of the previous round: all threads have published theirs since. With `all`,
    /// moves everything.
    pub(super) fn settle(&mut self, rows: &mut Rows, all: bool) {
        // Stable, and fast on sorted runs such as the threads.
        self.pending.sort_by_key(|event| event.stamp);
        let until = if all { u64::MAX } else { self.settled };
        let ready = self.pending.partition_point(|event| event.stamp <= until);
        for Event { process, thread, record, .. } in self.pending.drain(..ready) {
            let Record { line, store, dependence, instructions, .. } = record;
            rows.push(Row { process, thread, instructions, line, store, dependence });
        }
        self.settled = self.latest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(stamps: &[u32]) -> Vec<u8> {
        let record =
            |&stamp| Record { line: u64::from(stamp), store: false, dependence: 0, instructions: 1, stamp };
        stamps.iter().map(record).flat_map(Record::pack).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn threads_are_merged_by_time_once_no_earlier_record_can_come() {
        let (mut merge, mut rows) = (Merge::default(), Rows::default());
        merge.add(0, 0, 1000, &bytes(&[1, 4, 9]));
        merge.settle(&mut rows, false);
        assert!(rows.is_empty());
        merge.add(0, 1, 1000, &bytes(&[2, 3, 10]));
        merge.settle(&mut rows, false);
        assert_eq!(rows.line, [1, 2, 3, 4, 9]);
        assert_eq!(rows.thread, [0, 1, 1, 0, 0]);
        merge.settle(&mut rows, true);
        assert_eq!(rows.line, [1, 2, 3, 4, 9, 10]);
    }

    #[test]
    fn a_thread_keeps_its_order_within_a_stamp() {
        let (mut merge, mut rows) = (Merge::default(), Rows::default());
        merge.add(0, 0, 0, &bytes(&[5, 5]));
        merge.add(0, 0, 5, &bytes(&[0]));
        merge.settle(&mut rows, true);
        assert_eq!(rows.line, [5, 5, 0]);
    }
}
