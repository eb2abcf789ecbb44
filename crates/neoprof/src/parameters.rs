//! A device's sizes, as in the paper's Table III, and the register word that states them.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// An impossible size of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} of a NeoProf device: expected {expected}, not {value}")]
pub struct ParameterError {
    name: &'static str,
    expected: String,
    value: u32,
}

/// Sizes of a device, fixed when it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Rows of the sketch, each with its own hash function: D, 1 to 4.
    pub lanes: u32,
    /// Entries of a lane: W, a power of two from 64 to 2^24.
    pub width: u32,
    /// Bits of a counter, which saturates: 4 to 16.
    pub counter_bits: u32,
    /// Bits of a page's number, 8 to 52; higher ones are not wired.
    pub address_bits: u32,
    /// Capacity of the hot-page buffer in pages: a power of two from 4 to 2^20.
    pub hot_entries: u32,
    /// Bins of the histogram: a multiple of 8 from 8 to 64.
    pub histogram_bins: u32,
    /// Requests that can arrive in one cycle, 1 to 4.
    pub channels: u32,
    /// Seed of the hash functions.
    pub seed: u64,
}

impl Default for Parameters {
    /// Returns the paper's prototype: Table III, two channels (Table II), 64 bins (section IV-B).
    fn default() -> Self {
        Self {
            lanes: 2,
            width: 512 << 10,
            counter_bits: 16,
            address_bits: 32,
            hot_entries: 16 << 10,
            histogram_bins: 64,
            channels: 2,
            seed: 1,
        }
    }
}

impl Parameters {
    /// Returns the bits of an index into a lane: log2 W.
    #[must_use]
    pub const fn index_bits(&self) -> u32 {
        self.width.trailing_zeros()
    }

    /// Returns the greatest count.
    #[must_use]
    pub const fn counter_max(&self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    /// Returns the mask of a page's wired bits.
    #[must_use]
    pub const fn page_mask(&self) -> u64 {
        (1 << self.address_bits) - 1
    }

    /// Returns the same sizes, checked.
    ///
    /// # Errors
    /// [`ParameterError`] for the first impossible size.
    pub fn checked(self) -> Result<Self, ParameterError> {
        within("lanes", self.lanes, 1..=4)?;
        within("width", self.width, 1 << 6..=1 << 24)?;
        within("counter bits", self.counter_bits, 4..=16)?;
        within("address bits", self.address_bits, 8..=52)?;
        within("hot buffer entries", self.hot_entries, 4..=1 << 20)?;
        within("histogram bins", self.histogram_bins, 8..=64)?;
        within("channels", self.channels, 1..=4)?;
        for (name, value) in [("width", self.width), ("hot buffer entries", self.hot_entries)] {
            require(value.is_power_of_two(), name, value, "a power of two")?;
        }
        let bins = self.histogram_bins;
        require(bins.is_multiple_of(8), "histogram bins", bins, "a multiple of 8")?;
        Ok(self)
    }

    /// Returns the word of [`registers::PARAMETERS`](crate::registers::PARAMETERS): from the lowest byte up
    /// lanes, log2 width, counter bits, address bits, log2 hot buffer entries, histogram bins, channels, 0.
    #[must_use]
    pub fn to_word(&self) -> u64 {
        let fields = [
            self.lanes,
            self.index_bits(),
            self.counter_bits,
            self.address_bits,
            self.hot_entries.trailing_zeros(),
            self.histogram_bins,
            self.channels,
        ];
        fields.iter().rev().fold(0, |word, &field| word << 8 | u64::from(field))
    }

    /// Returns the sizes that such a word states, with the seed of
    /// [`registers::SEED`](crate::registers::SEED).
    ///
    /// # Errors
    /// [`ParameterError`] if the sizes are impossible: another device's registers, or none.
    pub fn from_word(word: u64, seed: u64) -> Result<Self, ParameterError> {
        let field = |at: u32| u32::from(word.to_le_bytes()[at as usize]);
        within("log2 width", field(1), 6..=24)?;
        within("log2 hot buffer entries", field(4), 2..=20)?;
        within("byte 7 of the parameters", field(7), 0..=0)?;
        Self {
            lanes: field(0),
            width: 1 << field(1),
            counter_bits: field(2),
            address_bits: field(3),
            hot_entries: 1 << field(4),
            histogram_bins: field(5),
            channels: field(6),
            seed,
        }
        .checked()
    }
}

fn within(name: &'static str, value: u32, range: RangeInclusive<u32>) -> Result<(), ParameterError> {
    let expected = format_args!("{} to {}", range.start(), range.end());
    require(range.contains(&value), name, value, expected)
}

fn require(
    holds: bool,
    name: &'static str,
    value: u32,
    expected: impl Display,
) -> Result<(), ParameterError> {
    if holds { Ok(()) } else { Err(ParameterError { name, expected: expected.to_string(), value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_states_the_papers_sizes() {
        let paper = Parameters::default();
        assert_eq!(paper.to_word(), 0x0002_400e_2010_1302);
        assert_eq!(Parameters::from_word(paper.to_word(), 1), Ok(paper));
    }

    #[test]
    fn what_cannot_be_built_is_named() {
        let paper = Parameters::default();
        let text = |parameters: Parameters| parameters.checked().unwrap_err().to_string();
        assert_eq!(
            text(Parameters { lanes: 0, ..paper }),
            "lanes of a NeoProf device: expected 1 to 4, not 0"
        );
        assert_eq!(
            text(Parameters { width: 100, ..paper }),
            "width of a NeoProf device: expected a power of two, not 100"
        );
        assert_eq!(
            text(Parameters { histogram_bins: 63, ..paper }),
            "histogram bins of a NeoProf device: expected a multiple of 8, not 63"
        );
    }

    #[test]
    fn words_of_no_device_are_refused() {
        for word in [0, u64::MAX, 0x0102_400e_2010_1302, 0x0002_400e_2010_ff02] {
            assert!(Parameters::from_word(word, 1).is_err(), "{word:#x}");
        }
    }
}
