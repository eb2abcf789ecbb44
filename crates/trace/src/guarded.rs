//! Parquet files that anybody may have written, read without a panic and in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use crate::contain::contained;
use crate::open_regular;
use crate::pages::{GuardedFile, GuardedPages};
use crate::unpack::Unpacker;

const MAGIC: &[u8; 4] = b"PAR1";
/// A magic at both ends, and the footer's length before the second one.
const SMALLEST: u64 = 12;
/// Largest footer that is read: one of 100,000 row groups fits.
const FOOTER_LIMIT: u32 = 64 << 20;

/// Reason why a file cannot be opened.
#[derive(Debug)]
pub enum Refusal {
    /// Something that could not be done to the file.
    Io(&'static str, io::Error),
    /// It is no Parquet file.
    Foreign(String),
    /// Its end is missing.
    Truncated(String),
}

/// A Parquet file with a footer that could be read.
#[derive(Debug)]
pub struct GuardedParquet {
    file: Arc<File>,
    unpacker: Unpacker,
    metadata: ParquetMetaData,
    bytes: u64,
}

impl GuardedParquet {
    /// Opens a regular file and reads its footer.
    ///
    /// # Errors
    /// A file that cannot be read, is not Parquet, or has lost its end.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        Self::open_with(path, Unpacker::default())
    }

    /// Opens a file as [`GuardedParquet::open`], whose pages are decompressed by `unpacker`.
    pub(crate) fn open_with(path: &Path, unpacker: Unpacker) -> Result<Self, Refusal> {
        let io = |action| move |source| Refusal::Io(action, source);
        let mut file = open_regular(path).map_err(io("open"))?;
        let bytes = file.metadata().map_err(io("examine"))?.len();
        check_magic(&mut file, bytes)?;
        let metadata = attempt(|| ParquetMetaDataReader::new().parse_and_finish(&file))
            .map_err(|reason| Refusal::Foreign(format!("its footer is unreadable ({reason})")))?;
        Ok(Self { file: Arc::new(file), unpacker, metadata, bytes })
    }

    /// Returns the size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the row groups, whose figures nobody has checked.
    pub fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.row_groups()
    }

    /// Returns a value of the key-value metadata.
    pub fn key(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.file_metadata().key_value_metadata();
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.as_deref())
    }

    /// Returns a column's position, in any order and among others.
    ///
    /// # Errors
    /// A column that is missing or of another type: the end of a sentence that begins with the column.
    pub fn position(&self, name: &str, physical: Physical) -> Result<usize, String> {
        let schema = self.metadata.file_metadata().schema_descr();
        let found = schema.columns().iter().position(|leaf| leaf.path().parts() == [name]);
        let position = found.ok_or("is missing")?;
        let leaf = schema.column(position);
        if leaf.physical_type() != physical || leaf.max_rep_level() > 0 {
            return Err(format!("has the type {}", leaf.physical_type()));
        }
        Ok(position)
    }

    /// Returns the place behind a column's last byte, which may be outside of the file.
    ///
    /// # Errors
    /// A place that is none.
    pub fn end(chunk: &ColumnChunkMetaData) -> Result<u64, String> {
        contained(|| chunk.byte_range()).map(|(start, length)| start.saturating_add(length))
    }

    /// Opens a column of a row group, to be read within [`attempt`]; `width` is the least bytes of a value in
    /// a dictionary.
    ///
    /// # Errors
    /// The decoder finds something wrong.
    pub fn column<T: DataType>(
        &self,
        group: usize,
        position: usize,
        width: usize,
    ) -> Result<ColumnReaderImpl<T>, ParquetError> {
        let group = self.metadata.row_group(group);
        let chunk = group.column(position);
        let rows = group.num_rows().unsigned_abs();
        let file = GuardedFile::new(self.file.clone());
        let pages = GuardedPages::open(file, chunk, rows, width, &self.unpacker)?;
        Ok(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)))
    }
}

/// Runs the decoder. Errors and panics are the first line of what it says.
///
/// # Errors
/// Those of the decoder.
pub fn attempt<R>(decode: impl FnOnce() -> Result<R, ParquetError>) -> Result<R, String> {
    contained(decode).and_then(|decoded| decoded.map_err(|error| reason(&error)))
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
fn check_magic(file: &mut File, size: u64) -> Result<(), Refusal> {
    let io = |source| Refusal::Io("read", source);
    let mut magic = [0; 4];
    let mut read_at = |from| file.seek(from).and_then(|_| file.read_exact(&mut magic)).map(|()| magic);
    if size < MAGIC.len() as u64 {
        return Err(Refusal::Truncated(format!("it has {size} bytes")));
    }
    if &read_at(SeekFrom::Start(0)).map_err(io)? != MAGIC {
        return Err(Refusal::Foreign("it does not start with 'PAR1'".into()));
    }
    if size < SMALLEST || &read_at(SeekFrom::End(-4)).map_err(io)? != MAGIC {
        return Err(Refusal::Truncated("it does not end with 'PAR1', so the footer is missing".into()));
    }
    let footer = u32::from_le_bytes(read_at(SeekFrom::End(-8)).map_err(io)?);
    if footer > FOOTER_LIMIT {
        return Err(Refusal::Foreign(format!("its footer has {footer} bytes, more than {FOOTER_LIMIT}")));
    }
    Ok(())
}
