//! Defines lines on standard error, made without allocating.

use std::fmt::{self, Write};

/// A line of at most so many bytes; what does not fit is cut off.
struct Line {
    bytes: [u8; 400],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let taken = text.len().min(room);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

/// Writes one line, with the library's name before it. That it cannot be written is no reason to fail.
pub(crate) fn print(message: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 400], length: 0 };
    let _ = write!(line, "isotherm-alloc: {message}");
    line.bytes[line.length] = b'\n';
    // SAFETY: the bytes are there.
    unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length + 1) };
}
