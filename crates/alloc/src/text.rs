//! Text of bounded length, and lines on standard error, both without allocating.

use std::fmt::{self, Write};

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

impl<const MAX: usize> Write for Text<MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(MAX - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

/// Writes one line on standard error, prefixed by the library's name. Failing to write is no reason to fail.
pub(crate) fn print(message: fmt::Arguments<'_>) {
    let mut line = Text::<512>::new();
    let _ = writeln!(line, "isotherm-alloc: {message}");
    let bytes = line.bytes();
    // SAFETY: pointer and length are those of a slice.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
