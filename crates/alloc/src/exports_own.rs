//! The library's own functions, by which a program can ask where its blocks lie.

use std::ffi::{c_int, c_void};

use crate::regions;

/// Returns the region that a block lies in, from 0, or -1 if it is in none.
#[unsafe(no_mangle)]
pub extern "C" fn isotherm_alloc_region(block: *const c_void) -> c_int {
    regions::offset(block).map_or(-1, |offset| regions::index(offset) as c_int)
}
