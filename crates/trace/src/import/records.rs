//! Records of a fixed size.

use std::io::{self, Read};

use super::ImportError;

pub(super) struct Records<R, const N: usize> {
    reader: R,
    /// Records read so far.
    pub(super) number: u64,
}

impl<R: Read, const N: usize> Records<R, N> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// Reads the next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<[u8; N]>, ImportError> {
        let (mut bytes, mut filled) = ([0; N], 0);
        while filled < N {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    let (record, found) = (self.number, format!("{filled} bytes of {N}"));
                    let expected = "a whole record: the file is truncated";
                    return Err(ImportError::Record { record, found, expected });
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ImportError::Unreadable { record: self.number, source }),
            }
        }
        self.number += 1;
        Ok(Some(bytes))
    }

    /// Returns an error at the record that was read last.
    pub(super) fn wrong(&self, found: String, expected: &'static str) -> ImportError {
        ImportError::Record { record: self.number.saturating_sub(1), found, expected }
    }
}

/// Returns the little-endian number of 8 bytes at a place of a record.
///
/// # Panics
/// If the record ends before.
pub(super) fn word(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte]))
}
