//! Turns panics of the Parquet library into errors: on corrupt files, and without memory for a compressor.
//!
//! The decoder asserts what a well-formed file guarantees, and a corrupt one may violate all of it. The panic
//! hook belongs to the whole process, so a quiet hook is installed once before the current one, and acts only
//! on threads that ask for it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let outer = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                outer(info);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it gave up").lines().next().unwrap_or_default().to_owned()
}

/// Runs `work` and returns the message of its panic as an error; its state is then abandoned.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install();
    let before = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.map_err(|payload| message(payload.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_first_line() {
        assert_eq!(contained(|| 7), Ok(7));
        let result = contained(|| -> u8 { panic!("index {} out of range\nand more", 9) });
        assert_eq!(result, Err("index 9 out of range".into()));
        assert!(!QUIET.get());
    }
}
