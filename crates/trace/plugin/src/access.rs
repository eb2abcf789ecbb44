//! Defines what an access is, as QEMU tells it: a word that only QEMU's functions understand, remembered here.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::recorder::Recorder;

/// An access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Bytes behind its first.
    pub(crate) reach: u64,
    /// Whether it is a store.
    pub(crate) store: bool,
}

/// Words that were asked about (upper half) and what they mean: bit 0 for a store, the reach above.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(u64::MAX) }; 16];

/// What the word `access` means, if QEMU was asked before.
#[inline(always)]
pub(crate) fn known(access: u32) -> Option<Kind> {
    let meaning = KNOWN[place(access)].load(Ordering::Relaxed);
    ((meaning >> 32) as u32 == access).then_some(Kind::of(meaning))
}

/// What the word `access` means. There are few of them, so QEMU is rarely asked.
pub(crate) fn kind(recorder: &Recorder, access: u32) -> Kind {
    known(access).unwrap_or_else(|| {
        // SAFETY: pure functions of the access.
        let (shift, store) =
            unsafe { ((recorder.api.access_shift)(access), (recorder.api.is_store)(access)) };
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
