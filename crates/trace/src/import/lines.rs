//! Lines of a text that may hold anything.

use std::io::{BufRead, Read};

use super::ImportError;

/// Longest line in bytes; a file without line ends is not text.
const LONGEST: u64 = 1 << 16;
const SHOWN: usize = 80;

pub(super) struct Lines<R> {
    reader: R,
    /// Lines read so far.
    pub(super) number: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Line {
    pub(super) number: u64,
    /// Text without its end; what is not UTF-8 is replaced.
    pub(super) text: String,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0, bytes: Vec::new() }
    }

    /// Reads the next line into `line`. Returns false at the end.
    pub(super) fn next(&mut self, line: &mut Line) -> Result<bool, ImportError> {
        self.bytes.clear();
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.bytes);
        let read = read.map_err(|source| ImportError::Io { line: self.number + 1, source })?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        line.number = self.number;
        line.text.clear();
        let text = self.bytes.trim_ascii_end();
        line.text.push_str(&String::from_utf8_lossy(text));
        if read as u64 == LONGEST && self.bytes.last() != Some(&b'\n') {
            return Err(line.wrong("a line of at most 65535 bytes"));
        }
        Ok(true)
    }
}

impl Line {
    pub(super) fn wrong(&self, expected: &'static str) -> ImportError {
        let found = self.text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        ImportError::Line { line: self.number, found, expected }
    }
}
