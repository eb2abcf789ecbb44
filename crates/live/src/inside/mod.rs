//! The engine as a thread of the program that it tiers.
//!
//! `libisotherm.so` reads [`Settings`], makes the thread, gives it memory of its own and runs a
//! [`Session`](crate::session::Session) with [`Target::Inside`](crate::session::Target). The engine takes no
//! lock that the program's threads can hold and allocates nothing from the program's heap: a fork in the
//! middle of its work leaves a child without an engine and without a held lock.
//!
//! - The engine follows its own process alone. A child of a fork has no engine, and its memory stays where it
//!   is; a program that the process or a child executes loads the library again and gets its own engine.
//! - The run ends with `exit`, with `_exit`, with the return from `main`, or when only the engine's thread is
//!   left. A fatal signal, a raw system call and `exec` end it without a summary.

mod settings;
mod text;

use std::ops::Range;

use isotherm_linux::LinuxError;
use isotherm_linux::hint_faults;
pub use settings::{Output, SettingError, Settings};
pub use text::text;

pub use isotherm_linux::hint_faults::prepare_inside;

/// Gives the thread its own file descriptors (except standard error) and blocks all its signals.
///
/// # Errors
/// If the kernel cannot separate the descriptors.
pub fn separate() -> Result<(), LinuxError> {
    std::mem::forget(hint_faults::BlockedSignals::all());
    hint_faults::own_descriptors(true).map_err(|error| LinuxError::Call {
        call: "close_range",
        error: std::io::Error::from_raw_os_error(error),
    })?;
    hint_faults::note_thread();
    Ok(())
}

pub fn own_stack() -> Option<Range<u64>> {
    hint_faults::own_stack().map(|stack| stack.start..stack.end)
}
