//! Place of a device's memory among the system's: the region's base and its interleaving.

use std::ops::Range;

use super::PAGE;

/// The part of a device's memory in a region of system addresses that `ways` devices serve in turn: by the
/// modulo arithmetic of CXL 2.0 (8.2.5.12), the region's first `granularity` bytes are those of the device at
/// position 0, the next of the device at 1, and so on around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First system address.
    pub base: u64,
    /// Length in bytes, all devices together.
    pub size: u64,
    /// The device's first address in the region.
    pub device_base: u64,
    /// Devices that share the region; at least 1.
    pub ways: u64,
    /// Consecutive bytes of one device; a power of two from 256 up. Unused for one way.
    pub granularity: u64,
    /// The device's position among them, below `ways`.
    pub position: u64,
}

impl Region {
    pub fn linear(base: u64, size: u64) -> Self {
        Self { base, size, device_base: 0, ways: 1, granularity: PAGE, position: 0 }
    }

    pub fn is_valid(&self) -> bool {
        let whole = |value: u64| value.is_multiple_of(PAGE);
        let interleaved = self.granularity.is_power_of_two() && self.granularity >= 256;
        whole(self.base)
            && whole(self.device_base)
            && self.ways > 0
            && self.position < self.ways
            && (self.ways == 1 || interleaved)
            && self.base.checked_add(self.size).is_some()
    }

    /// Returns the frames with lines of a device's page: one or, with a small granularity, as many as ways.
    pub fn frames(&self, device_page: u64) -> Range<u64> {
        let nothing = 0..0;
        let Some(offset) = device_page.checked_mul(PAGE).and_then(|at| at.checked_sub(self.device_base))
        else {
            return nothing;
        };
        if offset >= self.size / self.ways {
            return nothing;
        }
        let (start, pages) = if self.ways == 1 {
            (offset, 1)
        } else if self.granularity >= PAGE {
            let (chunk, within) = (offset / self.granularity, offset % self.granularity);
            ((chunk * self.ways + self.position) * self.granularity + within, 1)
        } else {
            (offset * self.ways, self.ways)
        };
        let first = (self.base + start) / PAGE;
        first..first + pages
    }

    pub fn all_frames(&self) -> Range<u64> {
        self.base / PAGE..(self.base + self.size) / PAGE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_linear_region_is_its_base_and_what_follows() {
        let region = Region::linear(0x1_0000_0000, 16 * PAGE);
        assert_eq!(region.frames(0), 0x10_0000..0x10_0001);
        assert_eq!(region.frames(15), 0x10_000f..0x10_0010);
        assert_eq!(region.frames(16), 0..0, "outside");
        assert_eq!(Region { device_base: 8 * PAGE, ..region }.frames(7), 0..0, "before");
        assert_eq!(Region { device_base: 8 * PAGE, ..region }.frames(9), 0x10_0001..0x10_0002);
        assert_eq!(region.frames(u64::MAX), 0..0);
    }

    #[test]
    fn interleaved_lines_belong_to_several_frames() {
        let region =
            Region { base: 0, size: 64 * PAGE, device_base: 0, ways: 4, granularity: 256, position: 2 };
        assert_eq!(region.frames(3), 12..16);
        let coarse = Region { granularity: 2 * PAGE, ..region };
        assert_eq!((coarse.frames(0), coarse.frames(1), coarse.frames(2)), (4..5, 5..6, 12..13));
    }

    #[test]
    fn numbers_that_do_not_fit_are_seen() {
        let region =
            Region { base: 0, size: 64 * PAGE, device_base: 0, ways: 2, granularity: 256, position: 1 };
        assert!(region.is_valid());
        for wrong in [
            Region { ways: 0, position: 0, ..region },
            Region { position: 2, ..region },
            Region { granularity: 300, ..region },
            Region { base: 12, ..region },
            Region { base: u64::MAX - 4095, ..region },
        ] {
            assert!(!wrong.is_valid(), "{wrong:?}");
        }
    }

    proptest! {
        /// Each line of the region, given to the device that serves it, is found again by the device's page.
        #[test]
        fn every_line_is_in_the_frames_of_its_device_page(
            ways in 1u64..9, shift in 8u32..15, line in 0u64..4096, base in 0u64..4
        ) {
            let granularity = 1 << shift;
            let size = ways * granularity.max(PAGE) * 16;
            let at = line * 64 % size;
            let (chunk, within) = (at / granularity, at % granularity);
            let region = Region { base: base * PAGE, size, device_base: 0, ways, granularity, position: chunk % ways };
            let device = chunk / ways * granularity + within;
            let frame = (region.base + at) / PAGE;
            prop_assert!(region.is_valid());
            prop_assert!(region.frames(device / PAGE).contains(&frame));
        }
    }
}
