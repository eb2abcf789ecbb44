//! Defines text of a bounded length, made without allocating.

use std::fmt;

/// Text of at most `MOST` bytes; what does not fit is cut off.
pub(crate) struct Text<const MOST: usize> {
    bytes: [u8; MOST],
    length: usize,
}

impl<const MOST: usize> Text<MOST> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; MOST], length: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<const MOST: usize> fmt::Write for Text<MOST> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(MOST - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}
