//! Defines what an access is, as QEMU tells it: a word that only QEMU's functions understand, remembered here.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

/// An access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Bytes behind its first.
    pub reach: u64,
    /// Whether it is a store.
    pub store: bool,
}

/// QEMU's functions that tell an access's size, as a power of two, and whether it is a store.
#[derive(Debug, Clone, Copy)]
pub struct Tell {
    shift: unsafe extern "C" fn(u32) -> c_uint,
    is_store: unsafe extern "C" fn(u32) -> bool,
}

impl Tell {
    /// From `qemu_plugin_mem_size_shift` and `qemu_plugin_mem_is_store`.
    ///
    /// # Safety
    /// They may be called with any word that QEMU gives to a callback.
    pub const unsafe fn new(
        shift: unsafe extern "C" fn(u32) -> c_uint,
        is_store: unsafe extern "C" fn(u32) -> bool,
    ) -> Self {
        Self { shift, is_store }
    }
}

/// Words that were asked about (upper half) and what they mean: bit 0 for a store, the reach above.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(u64::MAX) }; 16];

/// What the word `access` means, if QEMU was asked before.
#[inline(always)]
pub fn known(access: u32) -> Option<Kind> {
    let meaning = KNOWN[place(access)].load(Ordering::Relaxed);
    ((meaning >> 32) as u32 == access).then_some(Kind::of(meaning))
}

/// What the word `access` means, which a callback was given. There are few of them, so QEMU is rarely asked.
#[inline]
pub fn kind(tell: Tell, access: u32) -> Kind {
    known(access).unwrap_or_else(|| {
        // SAFETY: the contract of `Tell::new`; the word is of a callback.
        let (shift, store) = unsafe { ((tell.shift)(access), (tell.is_store)(access)) };
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
    fn what_is_remembered_is_what_qemu_says() {
        // SAFETY: they take any word.
        let tell = unsafe { Tell::new(shift, is_store) };
        // More words than places, each asked twice.
        for access in (0..200).chain(0..200) {
            let expected = Kind { reach: (1 << (access % 5)) - 1, store: access % 3 == 1 };
            assert_eq!(kind(tell, access), expected);
            assert_eq!(known(access), Some(expected));
        }
    }
}
