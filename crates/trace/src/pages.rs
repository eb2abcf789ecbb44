//! Protects the memory of a reader from corrupt files.
//!
//! The decoder allocates as much as a page's header demands: up to 2 GiB for a page, up to 32 GiB for a
//! dictionary. So the header is checked first.

use std::fs::File;
use std::io::{BufRead, BufReader};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Largest uncompressed page that is read; whole row groups of other writers fit.
const PAGE_LIMIT: i64 = 64 << 20;

/// File whose absurdly large pages are refused before they are decompressed.
#[derive(Debug)]
pub(crate) struct GuardedFile(pub(crate) File);

impl Length for GuardedFile {
    fn len(&self) -> u64 {
        Length::len(&self.0)
    }
}

impl ChunkReader for GuardedFile {
    type T = BufReader<File>;

    /// Checks the page whose header starts here: the decoder calls this at each header.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = self.0.get_read(start)?;
        let size = uncompressed_size(reader.fill_buf()?)
            .ok_or_else(|| ParquetError::General("no page header where one should start".into()))?;
        if size > PAGE_LIMIT {
            let problem = format!("a page of {size} bytes; expected at most {PAGE_LIMIT}");
            return Err(ParquetError::General(problem));
        }
        Ok(reader)
    }

    /// Reads a page, which compression made no larger than it may be, but for a header.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length as i64 > 2 * PAGE_LIMIT {
            return Err(ParquetError::General(format!("a compressed page of {length} bytes")));
        }
        self.0.get_bytes(start, length)
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
pub(crate) struct GuardedPages<P> {
    pages: P,
    /// Rows that the remaining pages may hold.
    rows_left: u64,
    width: usize,
    dictionary: bool,
}

impl<P: PageReader> GuardedPages<P> {
    pub(crate) fn new(pages: P, rows: u64, width: usize) -> Self {
        Self { pages, rows_left: rows, width, dictionary: false }
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

impl<P: PageReader> Iterator for GuardedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for GuardedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
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
