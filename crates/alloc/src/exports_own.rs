//! Defines functions of this library's own, by which a program can ask where its blocks lie.

use std::ffi::{c_int, c_void};

use crate::regions;

/// The region that a block lies in, from 0; -1 if in none.
#[unsafe(no_mangle)]
pub extern "C" fn isotherm_alloc_region(block: *const c_void) -> c_int {
    regions::offset(block).map_or(-1, |offset| regions::index(offset) as c_int)
}
