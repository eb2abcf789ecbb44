//! Defines the writer of a trace: a directory that grows by whole parts.
//!
//! A Parquet file without its footer is lost whole. A part is therefore written under a hidden name, brought to the disk
//! and then renamed: whatever kills the writer, every part with its final name can be read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::format::ROW_GROUP_ROWS;
use crate::part_writer::PartWriter;
use crate::{Provenance, Rows, TraceError};

/// Rows of a part, unless [`TraceWriter::flush_part`] ends it before.
const PART_ROWS: usize = 1 << 21;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSummary {
    /// Rows in all parts.
    pub rows: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// The number of parts.
    pub parts: usize,
}

/// Writes a trace. Rows that no finished part holds are lost when it is dropped: call [`TraceWriter::finish`].
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    provenance: Provenance,
    pending: Rows,
    part: Option<PartWriter>,
    parts: usize,
    rows: u64,
    finished_bytes: u64,
}

impl TraceWriter {
    /// Creates the directory `path`, which must not exist yet, for a trace.
    pub fn create(path: impl Into<PathBuf>, provenance: Provenance) -> Result<Self, TraceError> {
        let path = path.into();
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => TraceError::Exists { path: path.clone() },
            _ => TraceError::Io { path: path.clone(), action: "create the directory", source },
        })?;
        let pending = Rows::default();
        Ok(Self { path, provenance, pending, part: None, parts: 0, rows: 0, finished_bytes: 0 })
    }

    /// Appends rows. After an error what was appended since the last finished part is lost, and the trace is as long as
    /// its finished parts.
    pub fn append(&mut self, rows: &Rows) -> Result<(), TraceError> {
        check_lengths(&self.path, rows)?;
        let mut start = 0;
        while start < rows.len() {
            let count = (rows.len() - start).min(ROW_GROUP_ROWS - self.pending.len());
            self.pending.extend_from(rows, start..start + count);
            start += count;
            if self.pending.len() == ROW_GROUP_ROWS {
                self.write_pending()?;
            }
        }
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// The provenance, which goes into every part that is finished from now on.
    pub fn provenance_mut(&mut self) -> &mut Provenance {
        &mut self.provenance
    }

    /// Rows appended so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes on disk so far.
    pub fn bytes(&self) -> u64 {
        self.finished_bytes + self.part.as_ref().map_or(0, PartWriter::bytes)
    }

    /// Where the trace is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the part, so that what was appended so far survives whatever comes. Without new rows it does nothing.
    pub fn flush_part(&mut self) -> Result<(), TraceError> {
        if !self.pending.is_empty() {
            self.write_group()?;
        }
        if self.part.is_some() { self.finish_part() } else { Ok(()) }
    }

    /// Ends the trace. The last part carries the final provenance; where all rows stand in parts already, and it may
    /// have changed since, it is a part without rows.
    pub fn finish(mut self) -> Result<TraceSummary, TraceError> {
        if !self.pending.is_empty() {
            self.write_group()?;
        }
        if self.part.is_none() {
            self.part = Some(PartWriter::create(&self.path, self.parts)?);
        }
        self.finish_part()?;
        Ok(TraceSummary { rows: self.rows, bytes: self.finished_bytes, parts: self.parts })
    }

    /// Writes the full row group and ends the part if it is long enough.
    fn write_pending(&mut self) -> Result<(), TraceError> {
        self.write_group()?;
        match &self.part {
            Some(part) if part.rows() >= PART_ROWS => self.finish_part(),
            _ => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<(), TraceError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => PartWriter::create(&self.path, self.parts)?,
        };
        // A part that fails is dropped here, and with it its file.
        let written = part.write(&mut self.pending);
        self.pending.clear();
        written.map(|()| self.part = Some(part))
    }

    fn finish_part(&mut self) -> Result<(), TraceError> {
        let Some(part) = self.part.take() else { return Ok(()) };
        self.finished_bytes += part.finish(&self.provenance)?;
        self.parts += 1;
        // The new name is on the disk only with its directory.
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| TraceError::Io { path: self.path.clone(), action: "write", source })
    }
}

/// Refuses rows whose columns have different lengths.
fn check_lengths(path: &Path, rows: &Rows) -> Result<(), TraceError> {
    let lengths = [
        ("process", rows.process.len()),
        ("thread", rows.thread.len()),
        ("instructions", rows.instructions.len()),
        ("store", rows.store.len()),
        ("dependence", rows.dependence.len()),
    ];
    match lengths.into_iter().find(|&(_, length)| length != rows.len()) {
        None => Ok(()),
        Some((column, length)) => Err(TraceError::Column {
            path: path.into(),
            column,
            problem: format!("has {length} values"),
            expected: format!("{}, as many as 'line' has", rows.len()),
        }),
    }
}
