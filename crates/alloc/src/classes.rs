//! Size classes that threads cache: jemalloc's, up to a page.

/// Largest block that threads cache, in bytes.
pub(crate) const LARGEST: usize = 4096;
pub(crate) const COUNT: usize = 29;
/// Alignment of every block of at least this size, in bytes.
pub(crate) const QUANTUM: usize = 16;

/// Bytes of a block of each class, as in jemalloc(3): 8, multiples of 16 up to 128, then four per doubling.
pub(crate) const SIZES: [u16; COUNT] = sizes();
/// Class of each number of 8-byte words.
const OF_WORDS: [u8; LARGEST / 8 + 1] = of_words();

const fn sizes() -> [u16; COUNT] {
    let mut sizes = [0_u16; COUNT];
    sizes[0] = 8;
    let mut class = 1;
    while class < COUNT {
        let previous = sizes[class - 1];
        let step = match previous {
            8 => 8,
            16..128 => 16,
            _ => 1 << (previous.ilog2() - 2),
        };
        sizes[class] = previous + step;
        class += 1;
    }
    sizes
}

const fn of_words() -> [u8; LARGEST / 8 + 1] {
    let mut table = [0; LARGEST / 8 + 1];
    let (mut words, mut class) = (0, 0);
    while words < table.len() {
        if words * 8 > SIZES[class] as usize {
            class += 1;
        }
        table[words] = class as u8;
        words += 1;
    }
    table
}

/// As [`of`], without a check.
///
/// # Safety
/// `size` is at most [`LARGEST`].
#[inline(always)]
#[expect(clippy::manual_div_ceil, reason = "`div_ceil` guards against overflow by four more instructions")]
pub(crate) unsafe fn of_small(size: usize) -> usize {
    // SAFETY: the table has a class for each number of words up to `LARGEST`, which bounds `size`.
    usize::from(unsafe { *OF_WORDS.get_unchecked((size + 7) / 8) })
}

/// Returns the class of blocks for `size` bytes, at most [`LARGEST`].
pub(crate) fn of(size: usize) -> usize {
    usize::from(OF_WORDS[size.div_ceil(8)])
}

/// Returns the class for blocks of `size` bytes at multiples of `alignment`, a power of two, if one is
/// cached: blocks lie at multiples of their size, so it is a class whose size is a multiple of `alignment`.
pub(crate) fn aligned(size: usize, alignment: usize) -> Option<usize> {
    if size > LARGEST || alignment > LARGEST {
        return None;
    }
    (of(size)..COUNT).find(|&class| usize::from(SIZES[class]).is_multiple_of(alignment))
}

/// Returns the number of a region's list of a class; numbers begin behind [`crate::page_map::NO_LIST`].
pub(crate) const fn list(region: usize, class: usize) -> usize {
    1 + region * COUNT + class
}

/// Returns the region and class of a list.
pub(crate) const fn of_list(number: usize) -> (usize, usize) {
    ((number - 1) / COUNT, (number - 1) % COUNT)
}

pub(crate) fn size_of_list(number: usize) -> usize {
    usize::from(SIZES[of_list(number).1])
}

/// Returns the numbers of a region's lists.
pub(crate) fn lists(region: usize) -> std::ops::Range<usize> {
    list(region, 0)..list(region, COUNT)
}

/// Places that the lists of one region can take in all: each begins with the lesser number of [`limits`]
/// and gets a longer array, twice at most, until it has the larger number.
pub(crate) const PLACES: usize = {
    let (mut places, mut class) = (0, 0);
    while class < COUNT {
        let (mut limit, most) = limits(class);
        places += limit as usize;
        while limit < most {
            limit = wider(limit, most);
            places += limit as usize;
        }
        class += 1;
    }
    places
};

/// Returns the capacity that follows `limit` as a list grows to `most`.
pub(crate) const fn wider(limit: u32, most: u32) -> u32 {
    if limit < most / 2 { 2 * limit } else { most }
}

/// Returns how many blocks of a class a thread keeps for a region, at first and at most.
pub(crate) const fn limits(class: usize) -> (u32, u32) {
    const fn clamp(count: u32, low: u32, high: u32) -> u32 {
        if count < low {
            low
        } else if count > high {
            high
        } else {
            count
        }
    }
    let size = SIZES[class] as u32;
    (clamp(4096 / size, 4, 64), clamp(16384 / size, 32, 256))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jemalloc;

    #[test]
    fn classes_are_jemallocs() {
        for size in 1..=LARGEST {
            let expected = jemalloc::usable(size);
            assert_eq!(SIZES[of(size)] as usize, expected, "{size} bytes");
        }
        assert_eq!(SIZES[COUNT - 1] as usize, LARGEST);
        assert_eq!(of(0), 0);
    }

    #[test]
    fn aligned_classes_hold_and_align() {
        for size in 0..=LARGEST {
            for alignment in (0..=12).map(|power| 1 << power) {
                let class = aligned(size, alignment).expect("a page is aligned");
                let bytes = SIZES[class] as usize;
                assert!(bytes >= size && bytes.is_multiple_of(alignment), "{size} at {alignment}: {bytes}");
            }
        }
        assert_eq!(aligned(LARGEST + 1, 8), None);
        assert_eq!(aligned(8, 2 * LARGEST), None);
    }
}
