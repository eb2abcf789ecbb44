//! Hashes page numbers, and maps hashes to indices below any bound.

/// Odd constants with irregular bits: the fractional parts of the golden ratio, e and pi.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const EULER: u64 = 0xB7E1_5162_8AED_2A6B;
const PI: u64 = 0x243F_6A88_85A3_08D3;

/// Returns 64 well-mixed bits of a key: one multiplication would leave neighbouring pages in arithmetic
/// progression (Fibonacci hashing); folding and a second multiplication break it.
#[inline(always)]
pub(crate) fn mix(key: u32) -> u64 {
    let spread = u64::from(key).wrapping_add(PI).wrapping_mul(GOLDEN);
    (spread ^ (spread >> 32)).wrapping_mul(EULER)
}

/// Derives a second set of hash bits from the first; the upper bits are the best.
#[inline(always)]
pub(crate) fn remix(hash: u64) -> u64 {
    (hash ^ (hash >> 29)).wrapping_mul(GOLDEN)
}

/// Maps a hash to `0..bound` for any bound, with a bias of an index of at most `bound / 2^64` (Lemire, "Fast
/// Random Integer Generation in an Interval", 2019).
#[inline(always)]
pub(crate) fn reduce(hash: u64, bound: u64) -> usize {
    ((u128::from(hash) * u128::from(bound)) >> 64) as usize
}
