//! Mappings of a recorded program's memory over time, and names of its processes and threads.
//!
//! They stand beside a trace's parts in a file of lines, one JSON object each, in the order of the rows. Its
//! name begins with an underscore, so that tools that read a folder of Parquet files leave it out.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;
use isotherm_recorder_protocol::{ANONYMOUS, Note};
use serde::{Deserialize, Serialize};

use crate::regular::open_beside;
use crate::{CONTENTS_FILE, TraceError};

/// File of the mappings in a trace's directory.
pub const MAPPINGS_FILE: &str = "_mappings.jsonl";

/// Name of memory that the recorder's allocator gives out.
pub const ALLOCATED: &str = "[allocated]";

/// Longest line that is read: ten of the longest paths, each byte escaped.
const LINE: u64 = 256 << 10;

/// Change in a process before a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingEvent {
    /// Number of the first row after it.
    pub row: u64,
    /// Process, by its number in [`crate::Rows::process`].
    pub process: u32,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// Change in a process. Addresses are virtual ones, and the end of a range lies outside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Change {
    /// The process runs the program of this file.
    Program {
        /// The file's path.
        name: String,
    },
    /// The process began as a copy of another.
    Fork {
        /// The other process.
        parent: u32,
    },
    /// A thread was named.
    Thread {
        /// Thread, by its number in [`crate::Rows::thread`].
        thread: u32,
        /// Its name.
        name: String,
    },
    /// A range was mapped, and took the place of whatever was there.
    Map {
        /// First address.
        start: u64,
        /// Address after the last.
        end: u64,
        /// A file's path, `[heap]`, `[stack]`, `[thread stack]` or `[anonymous]`.
        name: String,
    },
    /// From here on a range holds the blocks that the recorder's allocator gives out at one site.
    Site {
        /// First address.
        start: u64,
        /// Address after the last.
        end: u64,
        /// Return addresses of the call, innermost first; none where many sites share the range.
        frames: Vec<Place>,
    },
    /// A mapping was moved or changed its size.
    Move {
        /// First address before.
        from: u64,
        /// Address after the last before.
        from_end: u64,
        /// First address.
        start: u64,
        /// Address after the last.
        end: u64,
    },
    /// A range was given back.
    Unmap {
        /// First address.
        start: u64,
        /// Address after the last.
        end: u64,
    },
}

/// Reads the mappings of a trace; `None` where it has none: another tool's, a single file, or an older one.
///
/// A last line that is not whole is left out: the recording was cut off there.
///
/// # Errors
/// If the file cannot be read, or a line is not one of mappings.
pub fn read_mappings(trace: &Path) -> Result<Option<Vec<MappingEvent>>, TraceError> {
    let path = trace.join(MAPPINGS_FILE);
    let io = |source| TraceError::Io { path: path.clone(), action: "read", source };
    let Some(file) = open_beside(&path).map_err(io)? else { return Ok(None) };
    parse(BufReader::new(file)).map(Some).map_err(|error| match error {
        BadLine::Io(error) => io(error),
        BadLine::At(line, reason) => TraceError::Mappings { path: path.clone(), line, reason },
    })
}

/// Returns about how much memory [`read_mappings`] takes for a trace.
pub fn mappings_memory(trace: &Path) -> Bytes {
    // An event is a little longer than its line, twice while the list grows.
    let bytes = fs::metadata(trace.join(MAPPINGS_FILE)).map_or(0, |file| file.len());
    Bytes(bytes.saturating_mul(4))
}

enum BadLine {
    Io(io::Error),
    At(usize, String),
}

fn parse(mut input: impl BufRead) -> Result<Vec<MappingEvent>, BadLine> {
    let (mut events, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        io::Read::take(&mut input, LINE).read_until(b'\n', &mut line).map_err(BadLine::Io)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            let too_long = line.len() as u64 == LINE;
            return if too_long { Err(BadLine::At(number, "too long".into())) } else { Ok(events) };
        };
        let event: MappingEvent =
            serde_json::from_slice(text).map_err(|error| BadLine::At(number, error.to_string()))?;
        let mut empty = ranges(&event.change).into_iter().flatten().filter(|(start, end)| start >= end);
        if let Some((start, end)) = empty.next() {
            return Err(BadLine::At(number, format!("the range {start:#x} to {end:#x} is empty")));
        }
        events.push(event);
    }
    Ok(events)
}

fn ranges(change: &Change) -> [Option<(u64, u64)>; 2] {
    match *change {
        Change::Map { start, end, .. } | Change::Site { start, end, .. } | Change::Unmap { start, end } => {
            [Some((start, end)), None]
        }
        Change::Move { from, from_end, start, end } => [Some((from, from_end)), Some((start, end))],
        _ => [None; 2],
    }
}

/// Copies the mappings of a trace and the shares of its pages, if it has any, into the folder of another with
/// the same rows.
///
/// # Errors
/// If they cannot be copied.
pub fn copy_mappings(from: &Path, to: &Path) -> Result<(), TraceError> {
    let files = [MAPPINGS_FILE, CONTENTS_FILE].map(|file| (from.join(file), to.join(file)));
    files.into_iter().filter(|(source, _)| source.is_file()).try_for_each(|(source, place)| {
        let copied = fs::copy(&source, &place).map(drop);
        copied.map_err(|source| TraceError::Io { path: place, action: "write", source })
    })
}

/// Range of a process's memory with one content, where it was largest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The process.
    pub process: u32,
    /// First address.
    pub start: u64,
    /// Address after the last, as it was mapped.
    pub end: u64,
    /// As in [`Change::Map`]; [`ALLOCATED`] for that of a site.
    pub name: String,
    /// As in [`Change::Site`].
    pub frames: Vec<Place>,
}

/// Place in a file that a process runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file's path; empty outside of files, where the offset is the address.
    pub file: String,
    /// Offset from the file's first mapped address.
    pub offset: u64,
}

impl Mapping {
    /// Returns its name, with its size where it is not a file's: `[anonymous] 16M`.
    pub fn title(&self) -> String {
        if self.name == ANONYMOUS {
            return format!("{} {}", self.name, Bytes(self.end - self.start));
        }
        self.name.clone()
    }
}

/// Address spaces of all processes at one row.
#[derive(Debug, Default)]
pub struct Spaces {
    mappings: Vec<Mapping>,
    /// By their start: the end and the mapping of each range.
    spaces: HashMap<u32, BTreeMap<u64, (u64, usize)>>,
}

impl Spaces {
    /// Carries an event out.
    pub fn apply(&mut self, event: &MappingEvent) {
        let process = event.process;
        match &event.change {
            Change::Map { start, end, name } => self.map(process, *start, *end, name, &[]),
            Change::Site { start, end, frames } => self.map(process, *start, *end, ALLOCATED, frames),
            Change::Unmap { start, end } => self.unmap(process, *start, *end),
            &Change::Move { from, from_end, start, end } => {
                self.shift(process, (from, from_end), (start, end));
            }
            Change::Fork { parent } => self.fork(*parent, process),
            Change::Program { .. } | Change::Thread { .. } => {}
        }
    }

    /// Returns the range that holds an address and the number of its mapping in [`Spaces::mappings`].
    pub fn find(&self, process: u32, address: u64) -> Option<(u64, u64, usize)> {
        let (&start, &(end, mapping)) = self.spaces.get(&process)?.range(..=address).next_back()?;
        (address < end).then_some((start, end, mapping))
    }

    /// Returns the ranges of all processes, in no order of processes: process, start, end and mapping.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u64, u64, &Mapping)> {
        self.spaces.iter().flat_map(move |(&process, space)| {
            let range = move |(&start, &(end, number)): (&u64, &(u64, usize))| {
                (process, start, end, &self.mappings[number])
            };
            space.iter().map(range)
        })
    }

    /// Returns the file that an address lies in and the offset from where the file is mapped first; `None`
    /// outside of files.
    pub fn place(&self, process: u32, address: u64) -> Option<Place> {
        let (start, _, mapping) = self.find(process, address)?;
        let name = |mapping: usize| self.mappings[mapping].name.as_str();
        let file = name(mapping);
        let before = self.spaces.get(&process)?.range(..=start).rev();
        let own = before.take_while(|(_, (_, mapping))| name(*mapping) == file);
        let base = own.map(|(&start, _)| start).last()?;
        file.starts_with('/').then(|| Place { file: file.into(), offset: address - base })
    }

    /// Returns all mappings that there have been.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    fn map(&mut self, process: u32, start: u64, end: u64, name: &str, frames: &[Place]) {
        let number = self.mappings.len();
        self.mappings.push(Mapping { process, start, end, name: name.into(), frames: frames.to_vec() });
        self.put(process, start, end, number);
    }

    fn put(&mut self, process: u32, start: u64, end: u64, number: usize) {
        self.unmap(process, start, end);
        self.spaces.entry(process).or_default().insert(start, (end, number));
    }

    fn shift(&mut self, process: u32, from: (u64, u64), (start, end): (u64, u64)) {
        let Some((_, _, number)) = self.find(process, from.0) else {
            return self.map(process, start, end, ANONYMOUS, &[]);
        };
        self.unmap(process, from.0, from.1);
        self.put(process, start, end, number);
        let mapping = &mut self.mappings[number];
        if end - start > mapping.end - mapping.start {
            (mapping.start, mapping.end) = (start, end);
        }
    }

    fn unmap(&mut self, process: u32, start: u64, end: u64) {
        let Some(space) = self.spaces.get_mut(&process) else { return };
        if let Some((&first, &(last, mapping))) = space.range(..start).next_back()
            && last > start
        {
            space.insert(first, (start, mapping));
            if last > end {
                space.insert(end, (last, mapping));
            }
        }
        while let Some((&first, &(last, mapping))) = space.range(start..end).next() {
            space.remove(&first);
            if last > end {
                space.insert(end, (last, mapping));
            }
        }
    }

    fn fork(&mut self, parent: u32, child: u32) {
        let mut space = self.spaces.get(&parent).cloned().unwrap_or_default();
        let mut copies = HashMap::new();
        for (_, mapping) in space.values_mut() {
            let mappings = &mut self.mappings;
            *mapping = *copies.entry(*mapping).or_insert_with(|| {
                mappings.push(Mapping { process: child, ..mappings[*mapping].clone() });
                mappings.len() - 1
            });
        }
        self.spaces.insert(child, space);
    }
}

/// Writer of the mappings of a trace that is recorded.
#[derive(Debug)]
pub(crate) struct MappingWriter {
    path: PathBuf,
    /// Made with the first event.
    file: Option<BufWriter<File>>,
    spaces: Spaces,
}

impl MappingWriter {
    pub(crate) fn new(trace: &Path) -> Self {
        Self { path: trace.join(MAPPINGS_FILE), file: None, spaces: Spaces::default() }
    }

    /// Writes a note of a thread that came before `row`.
    pub(crate) fn write(
        &mut self,
        row: u64,
        process: u32,
        thread: u32,
        note: Note,
    ) -> Result<(), TraceError> {
        for change in self.changes(process, thread, note) {
            let event = MappingEvent { row, process, change };
            self.spaces.apply(&event);
            self.append(&event).map_err(|source| self.failure(source))?;
        }
        Ok(())
    }

    /// Returns the place of an address in the files of a process.
    pub(crate) fn place(&self, process: u32, address: u64) -> Option<Place> {
        self.spaces.place(process, address)
    }

    /// Gives the lines to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|source| self.failure(source))
    }

    /// Removes the file, of a recording that left no part.
    pub(crate) fn remove(trace: &Path) {
        let _ = fs::remove_file(trace.join(MAPPINGS_FILE));
    }

    fn failure(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.clone(), action: "write", source }
    }

    fn append(&mut self, event: &MappingEvent) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create_new(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, event)?;
        file.write_all(b"\n")
    }

    /// Returns what a note changes. Memory that a program places itself belongs to what it continues: a
    /// file's variables without values follow the file, and parts of a reserved range stay one mapping.
    fn changes(&self, process: u32, thread: u32, note: Note) -> Vec<Change> {
        let at = |address: u64| self.spaces.find(process, address);
        let name = |mapping: usize| self.spaces.mappings()[mapping].name.clone();
        match note {
            Note::Program(name) => vec![Change::Program { name }],
            Note::Forked(parent) => vec![Change::Fork { parent }],
            Note::Thread(name) => vec![Change::Thread { thread, name }],
            Note::Avx512(_) => vec![],
            // The allocator maps its regions as it needs them.
            Note::Map { start, end, name: anonymous, .. }
                if anonymous == ANONYMOUS
                    && at(start).is_some_and(|(_, last, site)| last >= end && name(site) == ALLOCATED) =>
            {
                vec![]
            }
            Note::Site { start, end, addresses } => {
                let place = |address| {
                    let elsewhere = || Place { file: String::new(), offset: address };
                    // The call lies before the address that it returns to, which may be the next file's.
                    let call = self.place(process, address.saturating_sub(1));
                    call.map_or_else(elsewhere, |call| Place { offset: call.offset + 1, ..call })
                };
                vec![Change::Site { start, end, frames: addresses.into_iter().map(place).collect() }]
            }
            Note::Unmap { start, end } => vec![Change::Unmap { start, end }],
            Note::Map { start, end, fixed: true, name: anonymous } if anonymous == ANONYMOUS => {
                let inside =
                    at(start).filter(|&(_, last, mapping)| last >= end && name(mapping) == ANONYMOUS);
                let before = start.checked_sub(1).and_then(at).map(|(_, _, mapping)| name(mapping));
                match (inside, before.filter(|name| name.starts_with('/'))) {
                    (Some(_), _) => vec![],
                    (None, before) => vec![Change::Map { start, end, name: before.unwrap_or(anonymous) }],
                }
            }
            Note::Map { start, end, name, .. } => vec![Change::Map { start, end, name }],
            Note::Move { from, to } => {
                vec![Change::Move { from: from.0, from_end: from.1, start: to.0, end: to.1 }]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(start: u64, end: u64, name: &str) -> MappingEvent {
        MappingEvent { row: 0, process: 1, change: Change::Map { start, end, name: name.into() } }
    }

    fn spaces(events: &[MappingEvent]) -> Spaces {
        let mut spaces = Spaces::default();
        events.iter().for_each(|event| spaces.apply(event));
        spaces
    }

    fn named(spaces: &Spaces, process: u32, address: u64) -> Option<&str> {
        spaces.find(process, address).map(|(_, _, mapping)| spaces.mappings()[mapping].name.as_str())
    }

    proptest! {
        #[test]
        fn each_address_holds_what_was_mapped_there_last(
            steps in prop::collection::vec((0u64..40, 1u64..20, any::<bool>()), 1..40)
        ) {
            let (mut spaces, mut expected) = (Spaces::default(), [const { None }; 64]);
            for (step, &(start, length, maps)) in steps.iter().enumerate() {
                let (end, name) = (start + length, step.to_string());
                let change = match maps {
                    true => Change::Map { start, end, name: name.clone() },
                    false => Change::Unmap { start, end },
                };
                spaces.apply(&MappingEvent { row: 0, process: 1, change });
                expected[start as usize..end as usize].fill(maps.then_some(name));
            }
            for (address, expected) in expected.iter().enumerate() {
                prop_assert_eq!(named(&spaces, 1, address as u64), expected.as_deref());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(bytes.as_slice());
        }
    }

    #[test]
    fn a_child_keeps_its_parents_mappings_and_changes_only_its_own() {
        let fork = MappingEvent { row: 0, process: 2, change: Change::Fork { parent: 1 } };
        let unmap = MappingEvent { row: 0, process: 2, change: Change::Unmap { start: 0, end: 9 } };
        let spaces = spaces(&[map(0, 9, "/a"), map(9, 12, "/b"), fork, unmap]);
        assert_eq!([0, 9].map(|address| named(&spaces, 1, address)), [Some("/a"), Some("/b")]);
        assert_eq!([0, 9].map(|address| named(&spaces, 2, address)), [None, Some("/b")]);
        let (_, _, mapping) = spaces.find(2, 9).expect("mapped");
        assert_eq!(spaces.mappings()[mapping].process, 2);
    }

    #[test]
    fn a_place_in_a_file_counts_from_its_first_mapping() {
        let spaces =
            spaces(&[map(10, 20, "/a"), map(20, 30, "/b"), map(35, 40, "/b"), map(50, 60, "[heap]")]);
        let place = |address| spaces.place(1, address).map(|place| (place.file, place.offset));
        assert_eq!(place(37), Some(("/b".into(), 17)));
        assert_eq!([place(12), place(31), place(55)], [Some(("/a".into(), 2)), None, None]);
    }

    #[test]
    fn a_mapping_that_moves_stays_one() {
        let shift = Change::Move { from: 10, from_end: 20, start: 40, end: 90 };
        let shift = MappingEvent { row: 0, process: 1, change: shift };
        let spaces = spaces(&[map(10, 20, "/a"), map(50, 60, "/b"), shift]);
        assert_eq!([15, 45, 55].map(|address| named(&spaces, 1, address)), [None, Some("/a"), Some("/a")]);
        assert_eq!((spaces.mappings()[0].start, spaces.mappings()[0].end), (40, 90));
    }

    #[test]
    fn notes_become_lines_that_are_read_back_up_to_a_torn_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = MappingWriter::new(folder.path());
        assert_eq!(read_mappings(folder.path()).expect("readable"), None);
        let note = |start, end, fixed, name: &str| Note::Map { start, end, fixed, name: name.into() };
        for note in [
            Note::Program("/bin/p".into()),
            note(0, 10, false, "/lib/a"),
            note(10, 14, true, ANONYMOUS),
            note(100, 200, false, ANONYMOUS),
            note(120, 130, true, ANONYMOUS),
            Note::Move { from: (100, 200), to: (300, 500) },
            Note::Thread("worker".into()),
            Note::Site { start: 310, end: 320, addresses: vec![10, 600] },
            // The allocator maps a part of it.
            note(312, 314, false, ANONYMOUS),
        ] {
            writer.write(7, 1, 3, note).expect("written");
        }
        writer.flush().expect("written");
        let read = read_mappings(folder.path()).expect("readable").expect("mappings");
        let event = |change| MappingEvent { row: 7, process: 1, change };
        let map = |start, end, name: &str| event(Change::Map { start, end, name: name.into() });
        let expected = [
            event(Change::Program { name: "/bin/p".into() }),
            map(0, 10, "/lib/a"),
            // Variables without values, and a part of the reserved range, which needs no line.
            map(10, 14, "/lib/a"),
            map(100, 200, ANONYMOUS),
            event(Change::Move { from: 100, from_end: 200, start: 300, end: 500 }),
            event(Change::Thread { thread: 3, name: "worker".into() }),
            event(Change::Site {
                start: 310,
                end: 320,
                frames: vec![
                    Place { file: "/lib/a".into(), offset: 10 },
                    Place { file: String::new(), offset: 600 },
                ],
            }),
        ];
        let site = spaces(&expected);
        let (start, end, mapping) = site.find(1, 315).expect("a site");
        assert_eq!((start, end, site.mappings()[mapping].frames.len()), (310, 320, 2));
        assert_eq!(named(&site, 1, 320), Some(ANONYMOUS));
        assert_eq!(read, expected);
        let path = folder.path().join(MAPPINGS_FILE);
        let text = fs::read_to_string(&path).expect("lines");
        fs::write(&path, &text[..text.len() - 5]).expect("written");
        assert_eq!(read_mappings(folder.path()).expect("readable").expect("mappings"), expected[..6]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let refused = |text: &str| match parse(text.as_bytes()) {
            Err(BadLine::At(line, _)) => Some(line),
            _ => None,
        };
        let good = r#"{"row":0,"process":0,"event":"unmap","start":1,"end":2}"#;
        assert_eq!(refused(&format!("{good}\n")), None);
        for bad in [
            "",
            "{}",
            "[]",
            &good.replace("unmap", "other"),
            &good.replace(":1,", ":2,"),
            &"x".repeat(LINE as usize),
        ] {
            assert_eq!(refused(&format!("{good}\n{bad}\n")), Some(2), "{bad}");
        }
    }
}
