//! One part while it is read: its checked footer and the columns of its row groups.

use std::path::{Path, PathBuf};

use parquet::basic::{Compression, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;

use crate::format::{Column, FORMAT_VERSION, PROVENANCE_KEY, VERSION_KEY};
use crate::guarded::{GuardedParquet, Refusal, attempt};
use crate::unpack::Unpacker;
use crate::{Provenance, TraceError};

#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    parquet: GuardedParquet,
    /// Position of each of [`Column::ALL`] in the file.
    positions: [usize; Column::ALL.len()],
    pub(crate) provenance: Provenance,
    pub(crate) bytes: u64,
}

impl Part {
    pub(crate) fn open(path: &Path, unpacker: &Unpacker) -> Result<Self, TraceError> {
        let parquet = GuardedParquet::open_with(path, unpacker.clone()).map_err(|refusal| match refusal {
            Refusal::Io(action, source) => TraceError::Io { path: path.into(), action, source },
            Refusal::Foreign(reason) => not_a_trace(path, &reason),
            Refusal::Truncated(reason) => TraceError::Truncated { path: path.into(), reason },
        })?;
        let provenance = provenance(path, &parquet)?;
        let positions = positions(path, &parquet)?;
        let part = Self { path: path.into(), positions, provenance, bytes: parquet.bytes(), parquet };
        for group in part.parquet.groups() {
            part.check_group(group)?;
        }
        Ok(part)
    }

    pub(crate) fn groups(&self) -> usize {
        self.parquet.groups().len()
    }

    /// Returns the rows of all row groups, which are checked not to be negative.
    pub(crate) fn rows(&self) -> u64 {
        let rows = self.parquet.groups().iter().map(|group| group.num_rows().unsigned_abs());
        rows.fold(0, u64::saturating_add)
    }

    /// Checks that each column is as long as the row group and lies inside the file.
    fn check_group(&self, group: &RowGroupMetaData) -> Result<(), TraceError> {
        for (column, position) in Column::ALL.into_iter().zip(self.positions) {
            let wrong = |problem: String, expected: String| self.wrong(column, problem, expected);
            let chunk = group.columns().get(position).ok_or_else(|| {
                wrong("is missing in a row group".into(), "every column in every row group".into())
            })?;
            if !matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::ZSTD(_)) {
                let codec = chunk.compression_codec();
                return Err(wrong(format!("is compressed with {codec}"), "ZSTD or none".into()));
            }
            if chunk.num_values() != group.num_rows() || group.num_rows() < 0 {
                let expected = format!("{} as the row group has rows", group.num_rows());
                return Err(wrong(format!("has {} values", chunk.num_values()), expected));
            }
            let end =
                GuardedParquet::end(chunk).map_err(|reason| wrong(reason, "a place in the file".into()))?;
            if end > self.bytes {
                let reason = format!("column '{}' ends at byte {end} of {}", column.name(), self.bytes);
                return Err(TraceError::Truncated { path: self.path.clone(), reason });
            }
        }
        Ok(())
    }

    pub(crate) fn group_rows(&self, group: usize) -> u64 {
        self.parquet.groups()[group].num_rows().unsigned_abs()
    }

    pub(crate) fn column<T: DataType>(
        &self,
        group: usize,
        column: Column,
    ) -> Result<ColumnReaderImpl<T>, TraceError> {
        let position = self.positions[column as usize];
        let width = if column.physical() == Physical::INT64 { 8 } else { 4 };
        self.attempt(column, || self.parquet.column(group, position, width))
    }

    /// Runs the decoder on a column. Its errors and panics name the column.
    pub(crate) fn attempt<R>(
        &self,
        column: Column,
        decode: impl FnOnce() -> Result<R, ParquetError>,
    ) -> Result<R, TraceError> {
        attempt(decode)
            .map_err(|reason| self.wrong(column, format!("is unreadable ({reason})"), column.expected()))
    }

    pub(crate) fn wrong(&self, column: Column, problem: String, expected: String) -> TraceError {
        TraceError::Column { path: self.path.clone(), column: column.name(), problem, expected }
    }
}

fn not_a_trace(path: &Path, reason: &str) -> TraceError {
    TraceError::NotATrace { path: path.into(), reason: reason.into() }
}

fn provenance(path: &Path, parquet: &GuardedParquet) -> Result<Provenance, TraceError> {
    let version = parquet
        .key(VERSION_KEY)
        .ok_or_else(|| not_a_trace(path, &format!("it lacks the key {VERSION_KEY}")))?;
    if version != FORMAT_VERSION {
        let found = version.escape_default().take(40).collect();
        let (key, expected) = (VERSION_KEY, FORMAT_VERSION);
        return Err(TraceError::Version { path: path.into(), key, found, expected });
    }
    let unreadable =
        |reason: String| TraceError::Provenance { path: path.into(), key: PROVENANCE_KEY, reason };
    let json = parquet.key(PROVENANCE_KEY).ok_or_else(|| unreadable("missing".into()))?;
    serde_json::from_str(json).map_err(|error| unreadable(error.to_string()))
}

/// Finds the columns by name, in any order and among others.
fn positions(path: &Path, parquet: &GuardedParquet) -> Result<[usize; Column::ALL.len()], TraceError> {
    let mut positions = [0; Column::ALL.len()];
    for (slot, column) in positions.iter_mut().zip(Column::ALL) {
        *slot = parquet.position(column.name(), column.physical()).map_err(|problem| TraceError::Column {
            path: path.into(),
            column: column.name(),
            problem,
            expected: column.expected(),
        })?;
    }
    Ok(positions)
}
