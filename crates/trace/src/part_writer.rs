//! One part while it is written: hidden under a temporary name until it is complete and on the disk.

use std::error::Error as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::contain::contained;
use crate::format::{self, FORMAT_VERSION, PROVENANCE_KEY, VERSION_KEY};
use crate::{Provenance, Rows, TraceError};

/// Part being written. Dropping it before [`PartWriter::finish`] removes its file.
#[derive(Debug)]
pub(crate) struct PartWriter {
    unfinished: PathBuf,
    finished: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
    pub(crate) rows: usize,
}

/// Returns the operating system's error behind an encoder's, if there is one.
fn system_error(error: &ParquetError) -> Option<io::Error> {
    let inner = match error {
        ParquetError::External(inner) => inner.downcast_ref::<io::Error>(),
        _ => error.source().and_then(|source| source.downcast_ref()),
    }?;
    Some(inner.raw_os_error().map_or_else(|| inner.kind().into(), io::Error::from_raw_os_error))
}

fn failure(path: &Path, error: ParquetError) -> TraceError {
    match system_error(&error) {
        Some(source) => TraceError::Io { path: path.into(), action: "write", source },
        None => TraceError::Write { path: path.into(), reason: error.to_string() },
    }
}

impl PartWriter {
    pub(crate) fn create(trace: &Path, number: usize) -> Result<Self, TraceError> {
        let unfinished = format::unfinished_path(trace, number);
        let io = |source| TraceError::Io { path: unfinished.clone(), action: "create", source };
        let file = File::create(&unfinished).map_err(io)?;
        let writer = format::schema()
            .and_then(|schema| SerializedFileWriter::new(file, schema, format::properties()))
            .map_err(|error| failure(&unfinished, error))?;
        Ok(Self { unfinished, finished: format::part_path(trace, number), writer: Some(writer), rows: 0 })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.bytes_written() as u64)
    }

    /// Writes the rows as one row group. `rows`, whose vectors serve as scratch space, is unchanged after
    /// success.
    pub(crate) fn write(&mut self, rows: &mut Rows) -> Result<(), TraceError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let write = || {
            let mut group = writer.next_row_group()?;
            write_columns(&mut group, rows)?;
            group.close()
        };
        contained(write)
            .map_err(|reason| TraceError::Write { path: self.unfinished.clone(), reason })?
            .map_err(|error| failure(&self.unfinished, error))?;
        self.rows += rows.len();
        Ok(())
    }

    /// Writes the footer, flushes all to the disk and gives the part its name. Returns its size in bytes.
    pub(crate) fn finish(mut self, provenance: &Provenance) -> Result<u64, TraceError> {
        let Some(mut writer) = self.writer.take() else { return Ok(0) };
        let write = |reason: String| TraceError::Write { path: self.unfinished.clone(), reason };
        let json = serde_json::to_string(provenance).map_err(|error| write(error.to_string()))?;
        writer.append_key_value_metadata(KeyValue::new(VERSION_KEY.into(), FORMAT_VERSION.to_owned()));
        writer.append_key_value_metadata(KeyValue::new(PROVENANCE_KEY.into(), json));
        let bytes = self.close(writer);
        if bytes.is_err() {
            self.discard();
        }
        bytes
    }

    fn close(&self, mut writer: SerializedFileWriter<File>) -> Result<u64, TraceError> {
        writer.finish().map_err(|error| failure(&self.unfinished, error))?;
        let in_file = |action| move |source| TraceError::Io { path: self.unfinished.clone(), action, source };
        let file = writer.inner();
        file.sync_all().map_err(in_file("write"))?;
        let bytes = file.metadata().map_err(in_file("examine"))?.len();
        fs::rename(&self.unfinished, &self.finished).map_err(in_file("rename"))?;
        Ok(bytes)
    }

    /// Removes the file, which is unreadable: a full disk needs its space.
    fn discard(&self) {
        // The file may be gone with its directory.
        let _ = fs::remove_file(&self.unfinished);
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            self.discard();
        }
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_columns(group: &mut Group<'_>, rows: &mut Rows) -> Result<(), ParquetError> {
    for column in [&mut rows.process, &mut rows.thread, &mut rows.instructions] {
        write_recast::<Int32Type, u32>(group, column, u32::cast_signed, i32::cast_unsigned)?;
    }
    write_recast::<Int64Type, u64>(group, &mut rows.line, u64::cast_signed, i64::cast_unsigned)?;
    write_recast::<BoolType, u8>(group, &mut rows.store, |store| store != 0, u8::from)?;
    let dependence: Vec<i32> = rows.dependence.iter().map(|&distance| distance.into()).collect();
    write_column::<Int32Type>(group, &dependence)
}

/// Writes a column whose values are as wide on disk as in memory: recasts the vector in place, and back.
fn write_recast<T: DataType, V>(
    group: &mut Group<'_>,
    column: &mut Vec<V>,
    to_disk: impl Fn(V) -> T::T,
    to_memory: impl Fn(T::T) -> V,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = std::mem::take(column).into_iter().map(to_disk).collect();
    let result = write_column::<T>(group, &values);
    *column = values.into_iter().map(to_memory).collect();
    result
}

fn write_column<T: DataType>(group: &mut Group<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".into()));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
