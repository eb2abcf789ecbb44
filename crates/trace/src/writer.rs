//! Writer of a trace: a directory that grows by whole parts.
//!
//! A Parquet file without its footer is lost as a whole. So a part is written under a hidden name, flushed to
//! the disk and then renamed: whatever kills the writer, every part with its final name is readable.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;
use tempfile::TempDir;

use crate::format::ROW_GROUP_ROWS;
use crate::part_writer::PartWriter;
use crate::{Provenance, Rows, TraceError};

/// Rows per part, unless [`TraceWriter::flush_part`] ends it earlier.
const PART_ROWS: usize = 1 << 21;

/// Memory that a writer takes: a row group in columns, encoded and compressed.
pub const WRITER_MEMORY: Bytes = Bytes(16 << 20);

/// Size of a written trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSummary {
    /// Rows in all parts.
    pub rows: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// Number of parts.
    pub parts: usize,
}

/// Writer of a trace. Dropping it loses the rows that no finished part holds: call [`TraceWriter::finish`].
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    /// Where a trace that must be whole appears at its end, and the folder until then.
    place: Option<(PathBuf, TempDir)>,
    provenance: Provenance,
    pending: Rows,
    part: Option<PartWriter>,
    parts: usize,
    rows: u64,
    finished_bytes: u64,
}

impl TraceWriter {
    /// Creates the directory `path` for a trace.
    ///
    /// # Errors
    /// If the directory exists already or cannot be created.
    pub fn create(path: impl Into<PathBuf>, provenance: Provenance) -> Result<Self, TraceError> {
        let path = path.into();
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => TraceError::Exists { path: path.clone() },
            _ => TraceError::Io { path: path.clone(), action: "create the directory", source },
        })?;
        Ok(Self::at(path, None, provenance))
    }

    /// Creates a trace that appears at `path` when it is finished. Until then it lies beside, hidden, and is
    /// removed if the writer is dropped.
    ///
    /// # Errors
    /// If `path` exists already, or nothing can be created beside it.
    pub fn create_whole(path: impl Into<PathBuf>, provenance: Provenance) -> Result<Self, TraceError> {
        let path = path.into();
        if path.symlink_metadata().is_ok() {
            return Err(TraceError::Exists { path });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let made = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent.unwrap_or(Path::new(".")));
        let made = made.map_err(|error| {
            let source = error.kind().into();
            TraceError::Io { path: path.clone(), action: "create the directory", source }
        })?;
        Ok(Self::at(made.path().into(), Some((path, made)), provenance))
    }

    fn at(path: PathBuf, place: Option<(PathBuf, TempDir)>, provenance: Provenance) -> Self {
        let pending = Rows::default();
        Self { path, place, provenance, pending, part: None, parts: 0, rows: 0, finished_bytes: 0 }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If they cannot be written. The rows since the last finished part are then lost, and the trace ends
    /// with that part.
    pub fn append(&mut self, rows: &Rows) -> Result<(), TraceError> {
        check_lengths(&self.path, rows)?;
        let mut start = 0;
        while start < rows.len() {
            let count = (rows.len() - start).min(ROW_GROUP_ROWS - self.pending.len());
            self.pending.extend_from(rows, start..start + count);
            start += count;
            if self.pending.len() == ROW_GROUP_ROWS {
                self.write_group()?;
                if self.part.as_ref().is_some_and(|part| part.rows >= PART_ROWS) {
                    self.finish_part()?;
                }
            }
        }
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// Returns the provenance, which goes into every part that is finished from now on.
    pub fn provenance_mut(&mut self) -> &mut Provenance {
        &mut self.provenance
    }

    /// Returns the number of rows appended so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes on disk so far.
    pub fn bytes(&self) -> u64 {
        self.finished_bytes + self.part.as_ref().map_or(0, PartWriter::bytes)
    }

    /// Returns the directory of the trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the part, so that the rows appended so far are safe. Does nothing without new rows.
    ///
    /// # Errors
    /// See [`TraceWriter::append`].
    pub fn flush_part(&mut self) -> Result<(), TraceError> {
        if !self.pending.is_empty() {
            self.write_group()?;
        }
        if self.part.is_some() { self.finish_part() } else { Ok(()) }
    }

    /// Ends the trace. The last part carries the final provenance; it has no rows if earlier parts hold all.
    ///
    /// # Errors
    /// See [`TraceWriter::append`].
    pub fn finish(mut self) -> Result<TraceSummary, TraceError> {
        if !self.pending.is_empty() {
            self.write_group()?;
        }
        if self.part.is_none() {
            self.part = Some(PartWriter::create(&self.path, self.parts)?);
        }
        self.finish_part()?;
        if let Some((place, made)) = self.place.take() {
            // Renaming would replace an empty directory.
            if place.symlink_metadata().is_ok() {
                return Err(TraceError::Exists { path: place });
            }
            let renamed = fs::rename(&self.path, &place);
            renamed.map_err(|source| TraceError::Io { path: place, action: "rename", source })?;
            // It is gone from there.
            let _ = made.keep();
        }
        Ok(TraceSummary { rows: self.rows, bytes: self.finished_bytes, parts: self.parts })
    }

    fn write_group(&mut self) -> Result<(), TraceError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => PartWriter::create(&self.path, self.parts)?,
        };
        // A part that fails is dropped here, which removes its file.
        let written = part.write(&mut self.pending);
        self.pending.clear();
        written.map(|()| self.part = Some(part))
    }

    fn finish_part(&mut self) -> Result<(), TraceError> {
        let Some(part) = self.part.take() else { return Ok(()) };
        self.finished_bytes += part.finish(&self.provenance)?;
        self.parts += 1;
        // The new name is on the disk only once its directory is.
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| TraceError::Io { path: self.path.clone(), action: "write", source })
    }
}

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
