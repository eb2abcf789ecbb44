//! Lines on standard error, written without allocating.

use std::fmt::{self, Write};

use crate::text::Text;

/// Writes one line, prefixed by the library's name. Failing to write is no reason to fail.
pub(crate) fn print(message: fmt::Arguments<'_>) {
    let mut line = Text::<512>::new();
    let _ = writeln!(line, "isotherm-alloc: {message}");
    let bytes = line.bytes();
    // SAFETY: pointer and length are those of a slice.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
