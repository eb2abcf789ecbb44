//! Merges the records and notes of all threads into one order.

use std::collections::HashMap;

use crate::{Row, Rows};
use isotherm_recorder_protocol::layout::RECORD_BYTES;
use isotherm_recorder_protocol::{Note, Record};

#[derive(Debug, Clone, Copy)]
struct Event {
    stamp: u64,
    process: u32,
    thread: u32,
    record: Record,
}

/// Note, and the number of the first row behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) row: usize,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) note: Note,
}

/// Records and notes that wait until no earlier one can arrive.
#[derive(Debug, Default)]
pub(super) struct Merge {
    pending: Vec<Event>,
    /// Notes with their stamps.
    notes: Vec<(u64, Noted)>,
    /// Path of each process's program.
    programs: HashMap<u32, String>,
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

    /// Adds the notes in a message.
    pub(super) fn add_notes(&mut self, process: u32, thread: u32, stamp: u64, text: &str) {
        for note in text.lines().filter_map(Note::parse) {
            let program = match &note {
                Note::Program(path) => Some(path.clone()),
                Note::Forked(parent) => self.programs.get(parent).cloned(),
                _ => None,
            };
            self.programs.extend(program.map(|program| (process, program)));
            self.notes.push((stamp, Noted { row: 0, process, thread, note }));
        }
    }

    /// Returns the path of a process's program, once it is known.
    pub(super) fn program(&self, process: u32) -> Option<&str> {
        self.programs.get(&process).map(String::as_str)
    }

    /// Ends a round, in which every thread's records were added. Moves those into `rows` that are no later
    /// than the latest record of the previous round: all threads have published theirs since. With `all`,
    /// moves everything. Leaves out the processes that are not `wanted`,
    /// by their number and their program. Returns the notes among the rows.
    pub(super) fn settle(
        &mut self,
        rows: &mut Rows,
        all: bool,
        wanted: impl Fn(u32, Option<&str>) -> bool,
    ) -> Vec<Noted> {
        // Stable, and fast on sorted runs such as the threads.
        self.pending.sort_by_key(|event| event.stamp);
        let until = if all { u64::MAX } else { self.settled };
        let ready = self.pending.partition_point(|event| event.stamp <= until);
        self.notes.sort_by_key(|&(stamp, _)| stamp);
        let noted = self.notes.partition_point(|&(stamp, _)| stamp <= until);
        let mut waiting = self.notes.drain(..noted).peekable();
        let (mut notes, mut judged) = (Vec::with_capacity(noted), None);
        for Event { stamp, process, thread, record } in self.pending.drain(..ready) {
            while let Some((_, note)) = waiting.next_if(|&(noted, _)| noted <= stamp) {
                notes.push(Noted { row: rows.len(), ..note });
            }
            // Rows come in runs of one process.
            if judged.is_none_or(|(number, _)| number != process) {
                judged = Some((process, wanted(process, self.programs.get(&process).map(String::as_str))));
            }
            if judged == Some((process, true)) {
                let Record { line, store, dependence, instructions, .. } = record;
                rows.push(Row { process, thread, instructions, line, store, dependence });
            }
        }
        notes.extend(waiting.map(|(_, note)| Noted { row: rows.len(), ..note }));
        self.settled = self.latest;
        notes
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
        merge.settle(&mut rows, false, |_, _| true);
        assert!(rows.is_empty());
        merge.add(0, 1, 1000, &bytes(&[2, 3, 10]));
        merge.settle(&mut rows, false, |_, _| true);
        assert_eq!(rows.line, [1, 2, 3, 4, 9]);
        assert_eq!(rows.thread, [0, 1, 1, 0, 0]);
        merge.settle(&mut rows, true, |_, _| true);
        assert_eq!(rows.line, [1, 2, 3, 4, 9, 10]);
    }

    #[test]
    fn a_thread_keeps_its_order_within_a_stamp() {
        let (mut merge, mut rows) = (Merge::default(), Rows::default());
        merge.add(0, 0, 0, &bytes(&[5, 5]));
        merge.add(0, 0, 5, &bytes(&[0]));
        merge.settle(&mut rows, true, |_, _| true);
        assert_eq!(rows.line, [5, 5, 0]);
    }

    #[test]
    fn notes_stand_before_the_rows_that_follow_them() {
        let (mut merge, mut rows) = (Merge::default(), Rows::default());
        merge.add(0, 0, 0, &bytes(&[1, 4]));
        merge.add(1, 1, 0, &bytes(&[2, 6]));
        merge.add_notes(0, 0, 4, "unmap 1 2\nno note\n");
        merge.add_notes(1, 1, 2, "forked 0\n");
        merge.add_notes(1, 1, 9, "thread a\n");
        let notes = merge.settle(&mut rows, true, |process, _| process == 0);
        assert_eq!(rows.line, [1, 4]);
        let rows: Vec<_> = notes.iter().map(|noted| (noted.row, noted.process)).collect();
        assert_eq!(rows, [(1, 1), (1, 0), (2, 1)]);
        assert_eq!(notes[0].note, Note::Forked(0));
    }
}
