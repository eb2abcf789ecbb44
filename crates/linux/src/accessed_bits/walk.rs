//! Defines what it costs a program to have an accessed bit set again, and how to measure it.

use std::fs;
use std::hint::black_box;
use std::ops::Range;

use isotherm_core::Nanos;

use super::pagemap::PAGE;
use crate::LinuxError;
use crate::clock;
use crate::sys::pages::{Advice, advise};

/// What one accessed bit costs that has to be set again, unless it was measured: the walker's locked write to the entry.
///
/// From `benches/accessed.rs` (`program/`) in a virtual machine with nested paging on an AMD EPYC that others kept busy:
/// 265 ns for each page in turn, up to 1,100 ns at random; no page fault has a part in it. Machines without a
/// hypervisor are expected to be faster: [`measure_walk`].
pub const WALK: Nanos = Nanos(300);

const PAGES: usize = 2048;
const ROUNDS: usize = 9;

/// Measures [`WALK`] on this machine, in a few milliseconds and 8 MiB.
///
/// It clears the calling process's own accessed bits: not for use inside of the program that is observed.
pub fn measure_walk() -> Result<Nanos, LinuxError> {
    let mut memory = vec![1u8; (PAGES + 1) * PAGE as usize];
    let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
    let range: Range<u64> = start..start + (PAGES as u64 - 1) * PAGE;
    // One bit for 4 KiB each; a kernel without huge pages says EINVAL, and needs no advice.
    let _ = advise(&range, Advice::NoHugePages);
    let (mut flushed, mut cleared) = (u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        flushed = flushed.min(touch_after(&["4"], &mut memory)?.0);
        cleared = cleared.min(touch_after(&["1", "4"], &mut memory)?.0);
    }
    Ok(Nanos(cleared.saturating_sub(flushed) / PAGES as u64))
}

/// Writes the digits to `clear_refs`, then to each page; returns how long the latter took.
fn touch_after(digits: &[&str], memory: &mut [u8]) -> Result<Nanos, LinuxError> {
    let path = "/proc/self/clear_refs";
    for digit in digits {
        fs::write(path, digit).map_err(|error| LinuxError::file(path, error))?;
    }
    let start = clock::monotonic();
    for byte in memory.iter_mut().step_by(PAGE as usize) {
        *byte = black_box(byte.wrapping_add(1));
    }
    black_box(memory);
    Ok(clock::monotonic() - start)
}
