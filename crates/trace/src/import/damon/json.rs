//! The file that `damo record` writes: a list of records in JSON, a record for each target. Its facts are
//! those of damo's `src/_damo_records.py` and `src/_damon.py`.
//!
//! A file may hold more snapshots than memory does, so each is expanded as it is read, and nothing else is
//! kept. Numbers may be text, with commas.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::super::ImportError;
use super::super::rounds::{EXPECTED_SIZE, Region};
use super::Import;

const EXPECTED: &str =
    "damo's records: target_id before snapshots, each with start_time, end_time and regions";
/// Most bytes of a snapshot, or of anything else in the list: DAMON has thousands of regions at most.
const LARGEST: u64 = 64 << 20;
/// Depth of what a snapshot is in: the list of records, a record, its list of snapshots.
const SNAPSHOTS: u32 = 3;
const SHOWN: usize = 160;

/// Reads records, and returns the lines read.
pub(super) fn read(reader: impl BufRead, import: &mut Import<'_>) -> Result<u64, ImportError> {
    let bounded = Bounded { reader, depth: 0, quoted: false, escaped: false, bytes: 0, lines: 0 };
    let mut reader = BufReader::new(bounded);
    let mut json = serde_json::Deserializer::from_reader(&mut reader);
    let read = json.deserialize_seq(Records(import)).and_then(|()| json.end());
    drop(json);
    read.map_err(|error| {
        let (line, column) = (error.line() as u64, error.column());
        if error.is_io() {
            return ImportError::Io { line, source: error.into() };
        }
        let message = error.to_string();
        let problem = message.rsplit_once(" at line ").map_or(&*message, |(problem, _)| problem);
        let found: String = problem.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        ImportError::Line { line, found: format!("column {column}: {found}"), expected: EXPECTED }
    })?;
    Ok(reader.get_ref().lines + 1)
}

/// Reader of JSON that fails where the parser would have to remember too much.
struct Bounded<R> {
    reader: R,
    depth: u32,
    quoted: bool,
    escaped: bool,
    /// Bytes since the last snapshot, or the last value that is in none.
    bytes: u64,
    lines: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        for &byte in &buffer[..read] {
            self.bytes += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                b'\n' => self.lines += 1,
                _ if self.quoted => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b',' if self.depth <= SNAPSHOTS => self.bytes = 0,
                _ => {}
            }
            if self.bytes > LARGEST {
                let message = "a snapshot of more than 64 MiB; expected thousands of regions at most";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(read)
    }
}

struct Records<'i, 'a>(&'i mut Import<'a>);

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while records.next_element_seed(Record(self.0))?.is_some() {}
        Ok(())
    }
}

struct Record<'i, 'a>(&'i mut Import<'a>);

impl<'de> DeserializeSeed<'de> for Record<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Record<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut process = None;
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "target_id" => {
                    let target = match fields.next_value()? {
                        Value::String(id) => id,
                        Value::Number(id) => id.to_string(),
                        // Of memory by physical addresses.
                        Value::Null => "None".into(),
                        _ => return Err(Error::custom("a target_id that is no number")),
                    };
                    process = Some(self.0.process(&target));
                }
                "snapshots" => {
                    let process = process.ok_or_else(|| Error::custom("snapshots without target_id"))?;
                    fields.next_value_seed(Snapshots(self.0, process))?;
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Snapshots<'i, 'a>(&'i mut Import<'a>, u32);

impl<'de> DeserializeSeed<'de> for Snapshots<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Snapshots<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of snapshots")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut snapshots: A) -> Result<(), A::Error> {
        let Self(import, process) = self;
        while let Some(snapshot) = snapshots.next_element::<Snapshot>()? {
            for RegionRecord { start, end, nr_accesses } in snapshot.regions {
                let (Number(start), Number(end)) = (start, end);
                if start >= end {
                    return Err(Error::custom(format!("a region from {start} to {end}")));
                }
                let Some(accesses) = nr_accesses else { continue };
                let Number(found) = accesses.samples;
                if !import.snapshot.add(Region { process, start, end, found, stores: 0 }, import.options) {
                    return Err(Error::custom(format!("too many accesses; {EXPECTED_SIZE}")));
                }
            }
            import.snapshot.nanoseconds = snapshot.end_time.0.saturating_sub(snapshot.start_time.0) as f64;
            import.expand();
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Snapshot {
    /// In nanoseconds.
    start_time: Number,
    end_time: Number,
    regions: Vec<RegionRecord>,
}

#[derive(Deserialize)]
struct RegionRecord {
    start: Number,
    end: Number,
    nr_accesses: Option<Accesses>,
}

#[derive(Deserialize)]
struct Accesses {
    samples: Number,
}

/// Whole number, or text of one with commas.
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number from 0, or its text")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        let number = text.replace(',', "").parse();
        number.map(Number).map_err(|_| Error::custom(format!("{text} is not a whole number from 0")))
    }
}
