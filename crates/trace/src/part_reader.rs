//! One part while it is read: its checked footer and the columns of its row groups.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::contain::contained;
use crate::format::{Column, FORMAT_VERSION, PROVENANCE_KEY, VERSION_KEY};
use crate::pages::{GuardedFile, GuardedPages};
use crate::{Provenance, TraceError, open_regular};

const MAGIC: &[u8; 4] = b"PAR1";
/// A magic at both ends, and the footer's length before the second one.
const SMALLEST: u64 = 12;
/// Largest footer that is read: one of 100,000 row groups fits.
const FOOTER_LIMIT: u32 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    file: Arc<GuardedFile>,
    metadata: ParquetMetaData,
    /// Position of each of [`Column::ALL`] in the file.
    positions: [usize; Column::ALL.len()],
    pub(crate) provenance: Provenance,
    pub(crate) bytes: u64,
}

impl Part {
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let io = |action| move |source| TraceError::Io { path: path.into(), action, source };
        let mut file = open_regular(path).map_err(io("open"))?;
        let bytes = file.metadata().map_err(io("examine"))?.len();
        check_magic(path, &mut file, bytes)?;
        let metadata = contained(|| ParquetMetaDataReader::new().parse_and_finish(&file))
            .and_then(|parsed| parsed.map_err(|error| reason(&error)))
            .map_err(|reason| not_a_trace(path, &format!("its footer is unreadable ({reason})")))?;
        let provenance = provenance(path, &metadata)?;
        let positions = positions(path, &metadata)?;
        let file = Arc::new(GuardedFile(file));
        let part = Self { path: path.into(), file, metadata, positions, provenance, bytes };
        for group in part.metadata.row_groups() {
            part.check_group(group)?;
        }
        Ok(part)
    }

    pub(crate) fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Returns the rows of all row groups, which are checked not to be negative.
    pub(crate) fn rows(&self) -> u64 {
        let rows = self.metadata.row_groups().iter().map(|group| group.num_rows().unsigned_abs());
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
            let end = contained(|| chunk.byte_range())
                .map_err(|reason| wrong(reason, "a place in the file".into()))
                .map(|(start, length)| start.saturating_add(length))?;
            if end > self.bytes {
                let reason = format!("column '{}' ends at byte {end} of {}", column.name(), self.bytes);
                return Err(TraceError::Truncated { path: self.path.clone(), reason });
            }
        }
        Ok(())
    }

    pub(crate) fn group_rows(&self, group: usize) -> u64 {
        self.metadata.row_group(group).num_rows().unsigned_abs()
    }

    pub(crate) fn column<T: DataType>(
        &self,
        group: usize,
        column: Column,
    ) -> Result<ColumnReaderImpl<T>, TraceError> {
        let group = self.metadata.row_group(group);
        let chunk = group.column(self.positions[column as usize]);
        let rows = group.num_rows().unsigned_abs();
        let width = if column.physical() == Physical::INT64 { 8 } else { 4 };
        let open = || {
            let pages = SerializedPageReader::new(self.file.clone(), chunk, rows as usize, None)?;
            let pages: Box<dyn PageReader> = Box::new(GuardedPages::new(pages, rows, width));
            Ok::<_, ParquetError>(ColumnReaderImpl::new(chunk.column_descr_ptr(), pages))
        };
        self.attempt(column, open)
    }

    /// Runs the decoder on a column. Its errors and panics name the column.
    pub(crate) fn attempt<R>(
        &self,
        column: Column,
        decode: impl FnOnce() -> Result<R, ParquetError>,
    ) -> Result<R, TraceError> {
        contained(decode)
            .and_then(|decoded| decoded.map_err(|error| reason(&error)))
            .map_err(|reason| self.wrong(column, format!("is unreadable ({reason})"), column.expected()))
    }

    pub(crate) fn wrong(&self, column: Column, problem: String, expected: String) -> TraceError {
        TraceError::Column { path: self.path.clone(), column: column.name(), problem, expected }
    }
}

fn not_a_trace(path: &Path, reason: &str) -> TraceError {
    TraceError::NotATrace { path: path.into(), reason: reason.into() }
}

/// Returns the decoder's message in one line, without its prefix.
fn reason(error: &ParquetError) -> String {
    let text = match error {
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::NYI(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

/// Distinguishes files that are not Parquet from truncated ones.
fn check_magic(path: &Path, file: &mut File, size: u64) -> Result<(), TraceError> {
    let io = |source| TraceError::Io { path: path.into(), action: "read", source };
    let mut magic = [0; 4];
    let mut read_at = |from| file.seek(from).and_then(|_| file.read_exact(&mut magic)).map(|()| magic);
    if size < MAGIC.len() as u64 {
        let reason = format!("it has {size} bytes");
        return Err(TraceError::Truncated { path: path.into(), reason });
    }
    if &read_at(SeekFrom::Start(0)).map_err(io)? != MAGIC {
        return Err(not_a_trace(path, "it does not start with 'PAR1'"));
    }
    if size < SMALLEST || &read_at(SeekFrom::End(-4)).map_err(io)? != MAGIC {
        let reason = "it does not end with 'PAR1', so the footer is missing".into();
        return Err(TraceError::Truncated { path: path.into(), reason });
    }
    let footer = u32::from_le_bytes(read_at(SeekFrom::End(-8)).map_err(io)?);
    if footer > FOOTER_LIMIT {
        return Err(not_a_trace(path, &format!("its footer has {footer} bytes, more than {FOOTER_LIMIT}")));
    }
    Ok(())
}

fn provenance(path: &Path, metadata: &ParquetMetaData) -> Result<Provenance, TraceError> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let value = |key| {
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.as_deref())
    };
    let version =
        value(VERSION_KEY).ok_or_else(|| not_a_trace(path, &format!("it lacks the key {VERSION_KEY}")))?;
    if version != FORMAT_VERSION {
        let found = version.escape_default().take(40).collect();
        let (key, expected) = (VERSION_KEY, FORMAT_VERSION);
        return Err(TraceError::Version { path: path.into(), key, found, expected });
    }
    let unreadable =
        |reason: String| TraceError::Provenance { path: path.into(), key: PROVENANCE_KEY, reason };
    let json = value(PROVENANCE_KEY).ok_or_else(|| unreadable("missing".into()))?;
    serde_json::from_str(json).map_err(|error| unreadable(error.to_string()))
}

/// Finds the columns by name, in any order and among others.
fn positions(path: &Path, metadata: &ParquetMetaData) -> Result<[usize; Column::ALL.len()], TraceError> {
    let schema = metadata.file_metadata().schema_descr();
    let mut positions = [0; Column::ALL.len()];
    for (slot, column) in positions.iter_mut().zip(Column::ALL) {
        let wrong = |problem: String| TraceError::Column {
            path: path.into(),
            column: column.name(),
            problem,
            expected: column.expected(),
        };
        let found = schema.columns().iter().position(|leaf| leaf.path().parts() == [column.name()]);
        *slot = found.ok_or_else(|| wrong("is missing".into()))?;
        let leaf = schema.column(*slot);
        if leaf.physical_type() != column.physical() || leaf.max_rep_level() > 0 {
            return Err(wrong(format!("has the type {}", leaf.physical_type())));
        }
    }
    Ok(positions)
}
