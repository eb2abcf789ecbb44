//! Jemalloc's size classes (jemalloc(3), "Size classes"; lg-quantum 4, pages of 4 KiB).

use super::super::PAGE;

/// The largest size that comes from slabs; larger ones have pages of their own.
const MAX_SMALL: u64 = 14 << 10;
/// The smallest class, and the spacing of those up to eight times as large.
const QUANTUM: u64 = 16;

/// Returns the size that `bytes` are rounded up to: multiples of 16 to 128, then four for each doubling.
pub(super) fn class_of(bytes: u64) -> u64 {
    if bytes <= 8 * QUANTUM {
        return bytes.max(1).next_multiple_of(QUANTUM);
    }
    let spacing = (bytes - 1).next_power_of_two() / if (bytes - 1).is_power_of_two() { 4 } else { 8 };
    bytes.next_multiple_of(spacing)
}

pub(super) fn is_small(class: u64) -> bool {
    class <= MAX_SMALL
}

/// Returns bytes of a slab of this class: the fewest pages that its objects fill without a rest.
pub(super) fn slab_of(class: u64) -> u64 {
    class * (PAGE / (1 << class.trailing_zeros().min(PAGE.trailing_zeros())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_that_jemalloc_documents() {
        for (bytes, class) in [
            (0, 16),
            (1, 16),
            (17, 32),
            (100, 112),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (1000, 1024),
            (1025, 1280),
            (4097, 5120),
            (14_336, 14_336),
            (14_337, 16_384),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, (1 << 20) + (256 << 10)),
        ] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
        assert!(is_small(14_336) && !is_small(16_384));
    }

    #[test]
    fn a_slab_holds_whole_objects_and_whole_pages() {
        for (class, slab) in
            [(16, 4096), (48, 12_288), (64, 4096), (80, 20_480), (4096, 4096), (5120, 20_480)]
        {
            assert_eq!(slab_of(class), slab, "{class}");
        }
        for bytes in 1..MAX_SMALL {
            let class = class_of(bytes);
            let slab = slab_of(class);
            assert!(class >= bytes && slab.is_multiple_of(class) && slab.is_multiple_of(PAGE), "{bytes}");
        }
    }
}
