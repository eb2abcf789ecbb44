//! The meaning of an access: QEMU describes it by a word that only its functions understand, remembered here.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Bytes after the first.
    pub reach: u64,
    pub store: bool,
}

/// Words asked about (upper half) and their meaning: bit 0 for a store, the reach above it.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(u64::MAX) }; 16];

/// Returns the meaning of the word `access`, if QEMU was asked before.
#[inline(always)]
pub fn known(access: u32) -> Option<Kind> {
    let meaning = KNOWN[place(access)].load(Ordering::Relaxed);
    ((meaning >> 32) as u32 == access).then_some(Kind::of(meaning))
}

/// Returns the meaning of the word `access`. Programs use few different words, so QEMU is rarely asked.
///
/// # Safety
/// `shift` and `is_store` are QEMU's `qemu_plugin_mem_size_shift` and `qemu_plugin_mem_is_store`, or
/// functions that may likewise be called with any word given to a memory callback; `access` is such a word.
#[inline]
pub unsafe fn kind(
    shift: unsafe extern "C" fn(u32) -> c_uint,
    is_store: unsafe extern "C" fn(u32) -> bool,
    access: u32,
) -> Kind {
    known(access).unwrap_or_else(|| {
        // SAFETY: the caller's contract.
        let (shift, store) = unsafe { (shift(access), is_store(access)) };
        let meaning = u64::from(access) << 32 | ((1 << shift) - 1) << 1 | u64::from(store);
        KNOWN[place(access)].store(meaning, Ordering::Relaxed);
        Kind::of(meaning)
    })
}

#[inline(always)]
fn place(access: u32) -> usize {
    (access.wrapping_mul(0x9e37_79b9) >> 28) as usize
}

impl Kind {
    #[inline(always)]
    fn of(meaning: u64) -> Self {
        Self { reach: (meaning as u32 >> 1).into(), store: meaning & 1 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn shift(access: u32) -> c_uint {
        access % 5
    }

    unsafe extern "C" fn is_store(access: u32) -> bool {
        access % 3 == 1
    }

    #[test]
    fn remembered_meanings_are_qemus() {
        // More words than places, each asked twice.
        for access in (0..200).chain(0..200) {
            let expected = Kind { reach: (1 << (access % 5)) - 1, store: access % 3 == 1 };
            // SAFETY: both functions take any word.
            assert_eq!(unsafe { kind(shift, is_store, access) }, expected);
            assert_eq!(known(access), Some(expected));
        }
    }
}
