//! Defines lines on standard error, made without allocating.

use std::fmt::{self, Write};

use crate::text::Text;

/// Writes one line, with the library's name before it. That it cannot be written is no reason to fail.
pub(crate) fn print(message: fmt::Arguments<'_>) {
    let mut line = Text::<512>::new();
    let _ = writeln!(line, "isotherm-alloc: {message}");
    let bytes = line.bytes();
    // SAFETY: the bytes are there.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
