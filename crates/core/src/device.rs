//! The reports of a profiling device in front of a slower tier, and a policy's requests to it.
//!
//! Such a device sees every access to its memory and finds hot pages by itself (NeoProf; the CXL 3.2 hotness
//! monitoring unit). A host reads it with each batch from the policy's first [`DeviceRequest`] on, and pays
//! for each register that it reads.

use crate::{Histogram, PageId, TierId};

/// One reading of a device. A host with several devices delivers one of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceReading {
    /// The tier that its memory belongs to.
    pub tier: TierId,
    /// Pages found hot since the reading before, oldest first; a page may come twice.
    pub hot: Vec<PageId>,
    /// Whether a page comes each time that it was accessed so often, as from a hotness monitoring unit.
    /// NeoProf's come once until the device is cleared.
    pub again: bool,
    /// Its counts, if they were requested.
    pub report: Option<DeviceReport>,
}

/// A device's counts since it was last cleared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceReport {
    /// The counts of one row of its sketch; empty where it keeps none.
    pub histogram: Histogram,
    /// Rows of the sketch that the counts come from.
    pub lanes: u32,
    /// The traffic through it.
    pub traffic: DeviceTraffic,
    /// Accesses of hot pages that found its buffer full: their pages are reported later, or not at all.
    pub refused: u64,
    /// Accesses that it did not count because it was behind.
    pub dropped: u64,
}

/// The traffic through a device since it was last cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceTraffic {
    /// Cycles of its memory controller, in each of which one request can pass.
    pub cycles: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// A policy's request to all devices. They work from the first request on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceRequest {
    /// A page is hot when it was accessed more often than this since the last clear. At first nothing is.
    pub threshold: Option<u32>,
    /// Whether to forget all counts and all hot pages that were not read.
    pub clear: bool,
    /// Whether the next batch carries a [`DeviceReport`].
    pub report: bool,
}

impl DeviceTraffic {
    /// Returns the traffic since `earlier`, or all of it if the device was cleared between.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        if self.cycles < earlier.cycles {
            return self;
        }
        Self {
            cycles: self.cycles - earlier.cycles,
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
        }
    }

    /// Returns the share of cycles in which a request passed, 0 to 1 (NeoMem, section V-A).
    #[must_use]
    pub fn utilisation(self) -> f64 {
        ((self.reads + self.writes) as f64 / self.cycles.max(1) as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_a_difference_unless_the_device_was_cleared() {
        let (early, late) = (
            DeviceTraffic { cycles: 100, reads: 20, writes: 5 },
            DeviceTraffic { cycles: 300, reads: 60, writes: 15 },
        );
        assert_eq!(late.since(early), DeviceTraffic { cycles: 200, reads: 40, writes: 10 });
        assert_eq!(early.since(late), early);
        assert_eq!(late.since(early).utilisation(), 0.25);
        assert_eq!(DeviceTraffic::default().utilisation(), 0.0);
    }
}
