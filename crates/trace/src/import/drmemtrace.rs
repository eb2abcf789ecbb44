//! Imports the traces of DynamoRIO's drmemtrace that its tracer's files are turned into (`*.trace.zip`,
//! `*.trace.lz4`, `*.trace.gz` or plain), of 64-bit programs. The facts are those of DynamoRIO's
//! `clients/drcachesim/common/trace_entry.h`.
//!
//! A file holds records of 12 bytes, little-endian and packed: a type (u16), a size or a marker's type (u16),
//! and an address or a value (u64). Most often each thread has a file. The threads of a directory are merged
//! by their timestamps, which the tracer writes about every 32 KiB: between them, the order among threads is
//! made up. The data accesses pass through a model of one last-level cache, which all threads and processes
//! share, and its misses become rows. Instructions are counted where they are fetched, so that a string
//! instruction is one, however often it repeats.
//!
//! The tracer does not write dependences: all rows have distance 0, so the model takes misses as independent.
//! Left out are software prefetches and cache flushes, what the kernel does during a system call or a switch,
//! and accesses of the kernel's addresses. Gaps between the windows of a trace close.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use isotherm_core::cache::Geometry;

use super::misses::Misses;
use super::output::Numbering;
use super::packed::{Unpacked, unpack};
use super::records::{Records, word};
use super::{ImportError, ImportSummary, KERNEL};
use crate::Rows;

const RECORD: usize = 12;

/// Folder of the traces beside the tracer's own files, and names of files that are no traces.
const TRACES: &str = "trace";
const OTHERS: [&str; 6] = [
    "serial_schedule.bin",
    "cpu_schedule.bin",
    "modules.log",
    "funclist.log",
    "encodings.bin",
    "v2p.textproto",
];

/// Types of records: `trace_type_t`.
mod kind {
    pub(super) const READ: u16 = 0;
    pub(super) const WRITE: u16 = 1;
    pub(super) const BUNDLE: u16 = 17;
    pub(super) const THREAD: u16 = 22;
    pub(super) const PROCESS: u16 = 24;
    pub(super) const HEADER: u16 = 25;
    pub(super) const FOOTER: u16 = 26;
    pub(super) const MARKER: u16 = 28;

    pub(super) fn is_prefetch(kind: u16) -> bool {
        matches!(kind, 2..=9 | 27 | 32..=46)
    }

    pub(super) fn is_instruction(kind: u16) -> bool {
        matches!(kind, 10..=16 | 31 | 48 | 49)
    }

    /// Returns whether a type tells nothing here: flushes, a thread's end, an instruction that is not fetched
    /// again, the bytes of an instruction.
    pub(super) fn is_ignored(kind: u16) -> bool {
        matches!(kind, 18..=21 | 23 | 29 | 47)
    }
}

/// Types of markers: `trace_marker_type_t`.
mod marker {
    pub(super) const TIMESTAMP: u16 = 2;
    pub(super) const FILE_TYPE: u16 = 9;
    pub(super) const CALL_STARTS: u16 = 27;
    pub(super) const CALL_ENDS: u16 = 28;
    pub(super) const SWITCH_STARTS: u16 = 34;
    pub(super) const SWITCH_ENDS: u16 = 35;
}

/// Versions of the format; all have the records that are read here.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=7;
/// File types without every access or instruction: filtered ones (of old, by instruction, by data), and those
/// of instructions only.
const PARTIAL: u64 = 0x01 | 0x80 | 0x100 | 0x04;
/// File types of 32-bit programs, ARM's and x86's, whose records are shorter.
const NARROW: u64 = 0x10 | 0x20;
/// Most threads and processes.
const MOST: usize = 1 << 20;
/// Most instructions of a bundle.
const BUNDLED: u16 = 8;

const EXPECTED_HEADER: &str =
    "drmemtrace's header of version 1 to 7: a file *.trace.zip, *.trace.lz4 or *.trace.gz, not a raw one";

/// File of a trace.
pub struct TraceFile<'a> {
    /// Name for errors; `None` if the caller says it.
    pub name: Option<String>,
    /// Its bytes, as packed.
    pub reader: Box<dyn Read + 'a>,
}

/// Opens the files of a recording: those of `path` or of its folder `trace`, by name.
///
/// # Errors
/// If the directory or a file cannot be read, or there is none.
pub fn drmemtrace_files(path: &Path) -> io::Result<Vec<TraceFile<'static>>> {
    let inner = path.join(TRACES);
    let mut files = Vec::new();
    for entry in fs::read_dir(if inner.is_dir() { &inner } else { path })? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_other = name.starts_with('.') || OTHERS.iter().any(|other| name.starts_with(other));
        if !is_other && fs::metadata(entry.path())?.is_file() {
            files.push((name, entry.path()));
        }
    }
    if files.is_empty() {
        let message = "it holds no file; expected drmemtrace's *.trace.zip, one for each thread";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    files.sort();
    let open = |(name, path)| {
        let file =
            File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        Ok(TraceFile { name: Some(name), reader: Box::new(file) })
    };
    files.into_iter().map(open).collect()
}

/// Imports a recording through a cache of this geometry, merging its files by their timestamps.
///
/// # Errors
/// If the bytes cannot be read or unpacked, end early, or are not of this format.
pub fn drmemtrace(
    files: Vec<TraceFile<'_>>,
    geometry: Geometry,
    sink: &mut dyn FnMut(&Rows),
) -> Result<ImportSummary, ImportError> {
    let mut import = Import {
        misses: Misses::new(geometry, sink),
        processes: Numbering::new(),
        identities: Numbering::new(),
        threads: Vec::new(),
        summary: ImportSummary::default(),
    };
    let in_file = |name: &Option<String>, error| match name {
        Some(file) => ImportError::File { file: file.clone(), source: Box::new(error) },
        None => error,
    };
    let mut streams = Vec::with_capacity(files.len());
    for TraceFile { name, reader } in files {
        let stream = Stream::new(reader).map_err(|error| in_file(&name, error))?;
        streams.push((name, stream));
    }
    // The next timestamp of each file that has not ended.
    let mut waiting: BinaryHeap<_> = (0..streams.len()).map(|number| Reverse((0, number))).collect();
    while let Some(Reverse((_, number))) = waiting.pop() {
        let (name, stream) = &mut streams[number];
        if let Some(time) = import.pass(stream).map_err(|error| in_file(name, error))? {
            waiting.push(Reverse((time, number)));
        }
    }
    let Import { misses, mut summary, .. } = import;
    summary.rows = misses.finish();
    Ok(summary)
}

/// File while it is read.
struct Stream<'a> {
    records: Records<Unpacked<'a>, RECORD>,
    /// Number of the thread that the next records are of.
    thread: Option<usize>,
    is_in_kernel: bool,
    /// Whether the last record may be the file's last.
    is_complete: bool,
}

impl<'a> Stream<'a> {
    fn new(reader: Box<dyn Read + 'a>) -> Result<Self, ImportError> {
        let reader = unpack(reader).map_err(|source| ImportError::Unreadable { record: 0, source })?;
        Ok(Self { records: Records::new(reader), thread: None, is_in_kernel: false, is_complete: false })
    }
}

#[derive(Default)]
struct Thread {
    process: Option<u32>,
    /// Instructions since the last row.
    instructions: u32,
}

struct Import<'a> {
    misses: Misses<'a>,
    processes: Numbering<u64>,
    /// Threads by the system's numbers.
    identities: Numbering<u64>,
    threads: Vec<Thread>,
    summary: ImportSummary,
}

impl Import<'_> {
    /// Reads a file up to its next timestamp, and returns that; `None` at the end.
    fn pass(&mut self, stream: &mut Stream<'_>) -> Result<Option<u64>, ImportError> {
        while let Some(record) = stream.records.next()? {
            let [kind, size] = [0, 2].map(|at| u16::from_le_bytes([record[at], record[at + 1]]));
            let value = word(&record, 4);
            if stream.records.number == 1 && kind != kind::HEADER {
                return Err(stream.records.wrong(format!("type {kind}"), EXPECTED_HEADER));
            }
            self.summary.lines += 1;
            stream.is_complete = kind == kind::FOOTER;
            match kind {
                kind::READ | kind::WRITE => self.access(stream, kind == kind::WRITE, value, size)?,
                // A size of 0 only tells where the next access comes from.
                _ if kind::is_instruction(kind) => self.execute(stream, u32::from(size > 0))?,
                kind::BUNDLE if size <= BUNDLED => self.execute(stream, size.into())?,
                _ if kind::is_prefetch(kind) => {
                    self.summary.accesses += 1;
                    self.summary.skipped += 1;
                }
                kind::THREAD => stream.thread = Some(self.thread(stream, value)?),
                kind::PROCESS => {
                    let process = self.process(stream, value)?;
                    self.threads[current(stream)?].process = Some(process);
                }
                kind::HEADER if !VERSIONS.contains(&value) => {
                    return Err(stream.records.wrong(format!("version {value}"), EXPECTED_HEADER));
                }
                kind::MARKER => match size {
                    marker::TIMESTAMP => return Ok(Some(value)),
                    marker::FILE_TYPE => check_type(stream, value)?,
                    marker::CALL_STARTS | marker::SWITCH_STARTS => stream.is_in_kernel = true,
                    marker::CALL_ENDS | marker::SWITCH_ENDS => stream.is_in_kernel = false,
                    _ => {}
                },
                kind::HEADER | kind::FOOTER => {}
                _ if kind::is_ignored(kind) => {}
                _ => {
                    let found = format!("type {kind}, size {size}");
                    return Err(stream.records.wrong(found, "a type of record that drmemtrace writes"));
                }
            }
        }
        if stream.is_complete {
            return Ok(None);
        }
        let expected = "a footer as the last record: the file is truncated";
        Err(ImportError::Record { record: stream.records.number, found: "the end".into(), expected })
    }

    fn access(
        &mut self,
        stream: &Stream<'_>,
        store: bool,
        address: u64,
        size: u16,
    ) -> Result<(), ImportError> {
        self.summary.accesses += 1;
        if stream.is_in_kernel || address >= KERNEL {
            self.summary.skipped += 1;
            return Ok(());
        }
        let number = current(stream)?;
        let Thread { process: Some(process), instructions } = &mut self.threads[number] else {
            return Err(no_thread(stream));
        };
        self.misses.access((*process, number as u32), address, size.into(), store, instructions);
        Ok(())
    }

    fn execute(&mut self, stream: &Stream<'_>, count: u32) -> Result<(), ImportError> {
        if !stream.is_in_kernel {
            let instructions = &mut self.threads[current(stream)?].instructions;
            *instructions = instructions.saturating_add(count);
        }
        Ok(())
    }

    fn thread(&mut self, stream: &Stream<'_>, identity: u64) -> Result<usize, ImportError> {
        let (number, new) = self.identities.number(identity);
        if new {
            if self.threads.len() == MOST {
                return Err(stream.records.wrong("another thread".into(), "at most 2^20 threads"));
            }
            self.threads.push(Thread::default());
        }
        Ok(number as usize)
    }

    fn process(&mut self, stream: &Stream<'_>, identity: u64) -> Result<u32, ImportError> {
        let (number, new) = self.processes.number(identity);
        if new {
            if self.summary.processes.len() == MOST {
                return Err(stream.records.wrong("another process".into(), "at most 2^20 processes"));
            }
            self.summary.processes.push(format!("process {identity}"));
        }
        Ok(number)
    }
}

/// Returns the number of the thread that a record is of.
fn current(stream: &Stream<'_>) -> Result<usize, ImportError> {
    stream.thread.ok_or_else(|| no_thread(stream))
}

fn no_thread(stream: &Stream<'_>) -> ImportError {
    stream.records.wrong("no thread or process yet".into(), "the records of a thread and its process before")
}

fn check_type(stream: &Stream<'_>, file_type: u64) -> Result<(), ImportError> {
    let expected = if file_type & NARROW != 0 {
        "the trace of a 64-bit program"
    } else if file_type & PARTIAL != 0 {
        "a trace with every instruction and access, made without a filter (-L0_filter)"
    } else {
        return Ok(());
    };
    Err(stream.records.wrong(format!("file type {file_type:#x}"), expected))
}
