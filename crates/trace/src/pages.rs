//! Protects the memory of a reader from corrupt files.
//!
//! The decoder allocates as much as a page's header demands: up to 2 GiB for a page, up to 32 GiB for a
//! dictionary. So the header is checked first.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::unpack::Unpacker;

/// Largest uncompressed page that is read; whole row groups of other writers fit.
const PAGE_LIMIT: i64 = 64 << 20;

/// A column's file, whose absurdly large pages are refused before they are decompressed.
pub(crate) struct GuardedFile {
    file: Arc<File>,
    /// Uncompressed size of the page whose header was read last.
    page: AtomicUsize,
}

impl GuardedFile {
    pub(crate) fn new(file: Arc<File>) -> Self {
        Self { file, page: AtomicUsize::new(0) }
    }
}

impl Length for GuardedFile {
    fn len(&self) -> u64 {
        Length::len(&*self.file)
    }
}

impl ChunkReader for GuardedFile {
    type T = BufReader<File>;

    /// Checks the page whose header starts here: the decoder calls this at each header.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = self.file.get_read(start)?;
        let size = uncompressed_size(reader.fill_buf()?)
            .ok_or_else(|| ParquetError::General("no page header where one should start".into()))?;
        if size > PAGE_LIMIT {
            let problem = format!("a page of {size} bytes; expected at most {PAGE_LIMIT}");
            return Err(ParquetError::General(problem));
        }
        self.page.store(usize::try_from(size).unwrap_or(0), Ordering::Relaxed);
        Ok(reader)
    }

    /// Reads a page, which compression made no larger than it may be, but for a header.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length as i64 > 2 * PAGE_LIMIT {
            return Err(ParquetError::General(format!("a compressed page of {length} bytes")));
        }
        self.file.get_bytes(start, length)
    }
}

/// Returns the uncompressed size in a page header, the second field of its Thrift structure in compact
/// protocol. The first field, the page's type, and the second are 32-bit integers: a byte 0x15 (next field,
/// of type i32), then a zigzag varint.
fn uncompressed_size(header: &[u8]) -> Option<i64> {
    Some(field(field(header)?.1)?.0)
}

/// Reads one such field, and returns its value and the rest.
fn field(bytes: &[u8]) -> Option<(i64, &[u8])> {
    const NEXT_I32: u8 = 0x15;
    let (&NEXT_I32, varint) = bytes.split_first()? else { return None };
    let end = varint.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let value = varint[..=end].iter().rev().fold(0u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    let value = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
    Some((value, &varint[end + 1..]))
}

/// Column's pages, checked to claim no more values than they have bytes for or than the row group has rows.
pub(crate) struct GuardedPages {
    /// Pages as they are in the file, which the library takes to be uncompressed.
    pages: SerializedPageReader<GuardedFile>,
    file: Arc<GuardedFile>,
    compressed: bool,
    physical: Physical,
    unpacker: Unpacker,
    /// Rows that the remaining pages may hold.
    rows_left: u64,
    width: usize,
    dictionary: bool,
}

impl GuardedPages {
    /// Opens the pages of a column of `rows` rows; `width` is the least bytes of a value in a dictionary.
    pub(crate) fn open(
        file: GuardedFile,
        chunk: &ColumnChunkMetaData,
        rows: u64,
        width: usize,
        unpacker: &Unpacker,
    ) -> Result<Self> {
        let compressed = matches!(chunk.compression(), Compression::ZSTD(_));
        let physical = chunk.column_type();
        let (file, unpacker) = (Arc::new(file), unpacker.clone());
        let stored = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let pages = SerializedPageReader::new(file.clone(), &stored, rows as usize, None)?;
        Ok(Self { pages, file, compressed, physical, unpacker, rows_left: rows, width, dictionary: false })
    }

    /// Decompresses the page that was read last.
    fn unpack(&self, page: &mut Page) -> Result<()> {
        if !self.compressed {
            return Ok(());
        }
        let size = self.file.page.load(Ordering::Relaxed);
        let (buffer, plain) = match page {
            Page::DictionaryPage { buf, .. } | Page::DataPage { buf, .. } => (buf, 0),
            Page::DataPageV2 { is_compressed: false, .. } => return Ok(()),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
            }
        };
        *buffer = self.unpacker.unpack(buffer, plain, size)?;
        Ok(())
    }

    /// Joins the bytes of split values, which takes the library three times as long. Leaves pages that have
    /// levels or that are in error to the library.
    fn join(&self, page: &mut Page) {
        let values = page.num_values() as usize;
        if let Page::DataPageV2 { buf, encoding, def_levels_byte_len: 0, rep_levels_byte_len: 0, .. } = page
            && *encoding == Encoding::BYTE_STREAM_SPLIT
        {
            *buf = match self.physical {
                Physical::INT32 if buf.len() == 4 * values => self.unpacker.join::<4>(buf),
                Physical::INT64 if buf.len() == 8 * values => self.unpacker.join::<8>(buf),
                _ => return,
            };
            *encoding = Encoding::PLAIN;
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let problem = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                self.dictionary = true;
                let fits = buf.len() / self.width >= *num_values as usize;
                (!fits).then(|| format!("a dictionary of {num_values} values in {} bytes", buf.len()))
            }
            data => self.check_data(data),
        };
        problem.map_or(Ok(()), |problem| Err(ParquetError::General(problem)))
    }

    fn check_data(&mut self, page: &Page) -> Option<String> {
        let indexed = matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if indexed && !self.dictionary {
            return Some("a page of dictionary indices without a dictionary".into());
        }
        let (values, rows) = (page.num_values(), self.rows_left);
        let Some(left) = rows.checked_sub(values.into()) else {
            return Some(format!("a page of {values} values where {rows} rows are left"));
        };
        self.rows_left = left;
        None
    }
}

impl Iterator for GuardedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for GuardedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        self.unpack(&mut page)?;
        self.check(&page)?;
        self.join(&mut page);
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_found_in_a_page_header() {
        // Type 3 (zigzag 6), size 1,000 (zigzag 2,000 = 0xD0 0x0F).
        assert_eq!(uncompressed_size(&[0x15, 0x06, 0x15, 0xd0, 0x0f, 0x15, 0x02]), Some(1_000));
        assert_eq!(uncompressed_size(&[0x15, 0x00, 0x15, 0xff, 0xff, 0xff, 0xff, 0x0f]), Some(-(1 << 31)));
    }

    #[test]
    fn what_is_no_page_header_has_no_size() {
        for bytes in
            [&[][..], &[0x15], &[0x15, 0x80], &[0x25, 0, 0x15, 0], &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0]]
        {
            assert_eq!(uncompressed_size(bytes), None, "{bytes:?}");
        }
    }
}
