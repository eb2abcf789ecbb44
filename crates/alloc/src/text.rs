//! Text of bounded length, built without allocating.

use std::fmt;

/// Text of at most `MAX` bytes; the rest is cut off.
pub(crate) struct Text<const MAX: usize> {
    bytes: [u8; MAX],
    length: usize,
}

impl<const MAX: usize> Text<MAX> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; MAX], length: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<const MAX: usize> fmt::Write for Text<MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(MAX - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}
