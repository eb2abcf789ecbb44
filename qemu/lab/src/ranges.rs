//! Physical addresses of the tiers.

use std::ops::Range;

use isotherm_core::PageSize;

/// Physical ranges, each of a tier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// Ascending, without overlaps.
    sorted: Vec<(Range<u64>, u8)>,
}

impl Ranges {
    /// Parses `START-END` (decimal or `0x`, END excluded), several joined by `+`.
    pub(crate) fn parse(text: &str) -> Option<Vec<Range<u64>>> {
        text.split('+')
            .map(|part| {
                let (start, end) = part.split_once('-')?;
                let range = number(start)?..number(end)?;
                (!range.is_empty()).then_some(range)
            })
            .collect()
    }

    /// Adds a tier's ranges; returns one that overlaps another as the error.
    pub(crate) fn add(&mut self, tier: u8, ranges: Vec<Range<u64>>) -> Result<(), Range<u64>> {
        for range in ranges {
            let place = self.sorted.partition_point(|(other, _)| other.start < range.start);
            let before = place.checked_sub(1).and_then(|place| self.sorted.get(place));
            let overlaps = before.is_some_and(|(other, _)| other.end > range.start)
                || self.sorted.get(place).is_some_and(|(other, _)| other.start < range.end);
            if overlaps {
                return Err(range);
            }
            self.sorted.insert(place, (range, tier));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn tier(&self, address: u64) -> Option<u8> {
        self.sorted.iter().find(|(range, _)| range.contains(&address)).map(|&(_, tier)| tier)
    }

    /// Returns the number of the base page that holds an address, counted through all ranges.
    pub(crate) fn page(&self, address: u64) -> Option<u64> {
        let (mut before, shift) = (0, PageSize::Base.shift());
        for (range, _) in &self.sorted {
            if range.contains(&address) {
                return Some((before + address - range.start) >> shift);
            }
            before += range.end - range.start;
        }
        None
    }

    /// Returns the number of base pages in all ranges.
    pub(crate) fn pages(&self) -> u64 {
        let bytes: u64 = self.sorted.iter().map(|(range, _)| range.end - range.start).sum();
        bytes.div_ceil(PageSize::Base.bytes().0)
    }

    pub(crate) fn of(&self, tier: u8) -> impl Iterator<Item = &Range<u64>> {
        self.sorted.iter().filter(move |(_, other)| *other == tier).map(|(range, _)| range)
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_and_found() {
        let mut ranges = Ranges::default();
        ranges.add(0, Ranges::parse("0x0-0x1000+0x3000-0x4000").expect("ranges")).expect("no overlap");
        ranges.add(1, Ranges::parse("4096-8192").expect("a range")).expect("no overlap");
        let tiers = [0, 0xfff, 0x1000, 0x1fff, 0x2000, 0x3000, 0x3fff, 0x4000].map(|at| ranges.tier(at));
        assert_eq!(tiers, [Some(0), Some(0), Some(1), Some(1), None, Some(0), Some(0), None]);
        assert_eq!(ranges.add(1, std::iter::once(0xfff..0x1001).collect()), Err(0xfff..0x1001));
        assert_eq!(ranges.of(0).count(), 2);
        let pages = [0, 0xfff, 0x1000, 0x2000, 0x3fff].map(|at| ranges.page(at));
        assert_eq!((pages, ranges.pages()), ([Some(0), Some(0), Some(1), None, Some(2)], 3));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in
            ["", "1", "1-", "-1", "5-5", "6-5", "0x-0x1", "0x+1-0x5", "1-2+", "0x1-0x11111111111111111"]
        {
            assert_eq!(Ranges::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_address_has_two_tiers(parts in prop::collection::vec((0u64..100, 1u64..20, 0u8..3), 0..20)) {
            let (mut ranges, mut model) = (Ranges::default(), [None; 200]);
            for (start, length, tier) in parts {
                let places = start as usize..(start + length) as usize;
                let free = model[places.clone()].iter().all(Option::is_none);
                prop_assert_eq!(ranges.add(tier, std::iter::once(start..start + length).collect()).is_ok(), free);
                if free {
                    model[places].fill(Some(tier));
                }
            }
            prop_assert!((0..200).all(|at| ranges.tier(at) == model[at as usize]));
        }
    }
}
