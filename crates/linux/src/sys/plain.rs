//! Types that memory of the kernel's making may hold, as the compiler checks field by field.

use std::sync::atomic::AtomicU64;

use super::range::Range64;

/// A type for which all zero bytes are a valid value. [`plain!`](super::plain) implements it for structures.
///
/// # Safety
/// Zeros are a valid value.
pub(crate) unsafe trait Zeroed {}

/// A type that other processes may write to meanwhile. [`plain!`](super::plain) implements it.
///
/// # Safety
/// It consists of atomic integers, for which any bits are valid.
pub(crate) unsafe trait Atomics: Sync {}

macro_rules! zeroed {
    ($($type:ty),*) => { $(
        // SAFETY: zero is a valid integer, boolean and range.
        unsafe impl Zeroed for $type {}
    )* };
}

zeroed!(u8, u32, u64, i64, usize, bool, Range64);
// SAFETY: the elements alone decide.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}
// SAFETY: as above.
unsafe impl<A: Zeroed, B: Zeroed> Zeroed for (A, B) {}
// SAFETY: an atomic integer.
unsafe impl Atomics for AtomicU64 {}
// SAFETY: the elements alone decide.
unsafe impl<T: Atomics, const N: usize> Atomics for [T; N] {}

/// Implements [`Zeroed`] or [`Atomics`] for a structure, given all of its fields; each must implement it too.
macro_rules! plain {
    ($trait:ident for $type:ident { $($field:tt),* $(,)? }) => {
        #[allow(unsafe_code)]
        // SAFETY: every field implements the trait, which the function below makes the compiler check.
        unsafe impl $crate::sys::plain::$trait for $type {}

        const _: fn(&$type) = |value| {
            fn check<T: $crate::sys::plain::$trait>(_: &T) {}
            $( check(&value.$field); )*
            let $type { $($field: _),* } = value;
        };
    };
}
pub(crate) use plain;
