//! Synthetic accesses from records that tell how hot a region was over a time, but no single accesses.
//!
//! In round `r` of a record's time, every region is walked once that was found accessed at least `r` times,
//! with one access per [`HeatOptions::bytes_per_access`]. The order within a round and the line within a page
//! are made up. Instructions are the time times [`HeatOptions::instructions_per_microsecond`], spread evenly.

use isotherm_core::cache::LINE_SHIFT;

use super::output::Output;
use crate::Row;

pub(super) const EXPECTED_SIZE: &str =
    "fewer accesses: at most 2^16 of a page and 2^28 rows at one time; more bytes per access make fewer rows";
const MAX_ROWS: u64 = 1 << 28;
/// Most times that a page is found accessed at one time, so that a short line cannot make rows without end.
const MAX_ROUNDS: u64 = 1 << 16;
pub(super) const PAGE: u64 = 4096;

/// Rules for what records of regions and their heat do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeatOptions {
    /// Bytes of a region per access in a round; at least 64.
    pub bytes_per_access: u64,
    /// Speed of the program.
    pub instructions_per_microsecond: u64,
}

impl Default for HeatOptions {
    /// Returns one access per page and round, and 1,000 instructions per microsecond, as at 1 IPC and 1 GHz.
    fn default() -> Self {
        Self { bytes_per_access: PAGE, instructions_per_microsecond: 1000 }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) process: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Number of times that a page was found accessed.
    pub(super) found: u64,
    /// Number of times that a page was found written.
    pub(super) stores: u64,
}

impl Region {
    fn accesses(&self, options: &HeatOptions) -> u64 {
        (self.end - self.start).div_ceil(options.bytes_per_access.max(1 << LINE_SHIFT))
    }

    /// Returns an access of a round; the line in its page changes from round to round.
    fn row(&self, access: u64, round: u64, instructions: u32, options: &HeatOptions) -> Row {
        let mut address = self.start + access * options.bytes_per_access.max(1 << LINE_SHIFT);
        if options.bytes_per_access >= PAGE {
            let lines = PAGE >> LINE_SHIFT;
            let line = (address / PAGE).wrapping_add(round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            address = (address & !(PAGE - 1)) + ((line % lines) << LINE_SHIFT);
        }
        let (process, thread, line) = (self.process, self.process, address >> LINE_SHIFT);
        Row { process, thread, instructions, line, store: round < self.stores, dependence: 0 }
    }
}

/// Regions of one time.
#[derive(Default)]
pub(super) struct Snapshot {
    regions: Vec<Region>,
    pub(super) nanoseconds: f64,
    rows: u64,
}

impl Snapshot {
    /// Adds a region. Returns false if there are too many accesses or rows.
    pub(super) fn add(&mut self, region: Region, options: &HeatOptions) -> bool {
        let is_few = region.found <= MAX_ROUNDS;
        self.rows = self.rows.saturating_add(region.accesses(options).saturating_mul(region.found));
        if region.found > 0 {
            self.regions.push(region);
        }
        is_few && self.rows <= MAX_ROWS
    }

    /// Makes the rows, and empties the snapshot.
    pub(super) fn expand(&mut self, options: &HeatOptions, output: &mut Output<'_>) {
        let rounds = self.regions.iter().map(|region| region.found).max().unwrap_or(0);
        let instructions = self.nanoseconds / 1000.0 * options.instructions_per_microsecond as f64;
        // Conversion from floating point saturates.
        let instructions = (instructions / self.rows.max(1) as f64) as u32;
        for round in 0..rounds {
            for region in self.regions.iter().filter(|region| region.found > round) {
                for access in 0..region.accesses(options) {
                    output.push(region.row(access, round, instructions.max(1), options));
                }
            }
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_regions_are_refused() {
        let add = |end, found| {
            let region = Region { process: 0, start: 0, end, found, stores: 0 };
            Snapshot::default().add(region, &HeatOptions::default())
        };
        assert!(add(4096, 1 << 16) && !add(4096, (1 << 16) + 1));
        assert!(add(1 << 40, 1) && !add((1 << 40) + 1, 1));
        assert!(!add(u64::MAX, 20));
    }
}
