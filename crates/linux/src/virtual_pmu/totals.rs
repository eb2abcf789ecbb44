//! Counters that continue over epochs, which whoever measures the program may begin at any time.

use isotherm_virtual_pmu::layout::MAX_TIERS;
use isotherm_virtual_pmu::{Snapshot, TierCount};

#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Counts of past epochs, as far as seen.
    over: [TierCount; MAX_TIERS],
    last: Snapshot,
}

impl Totals {
    /// Applies a snapshot; returns the sums over all epochs.
    pub(super) fn update(&mut self, snapshot: &Snapshot) -> [TierCount; MAX_TIERS] {
        if snapshot.epoch != self.last.epoch {
            self.over = sum(&self.over, &self.last.tiers);
        }
        self.last = *snapshot;
        sum(&self.over, &snapshot.tiers)
    }
}

fn sum(left: &[TierCount; MAX_TIERS], right: &[TierCount; MAX_TIERS]) -> [TierCount; MAX_TIERS] {
    std::array::from_fn(|tier| {
        let (left, right) = (left[tier], right[tier]);
        TierCount {
            load_misses: left.load_misses + right.load_misses,
            store_misses: left.store_misses + right.store_misses,
            bytes_read: left.bytes_read + right.bytes_read,
            bytes_written: left.bytes_written + right.bytes_written,
            stall: left.stall + right.stall,
            occupancy: left.occupancy + right.occupancy,
            busy: left.busy + right.busy,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(epoch: u64, misses: u64) -> Snapshot {
        let mut snapshot = Snapshot { epoch, ..Snapshot::default() };
        snapshot.tiers[1] = TierCount { load_misses: misses, stall: misses * 3, ..TierCount::default() };
        snapshot
    }

    #[test]
    fn counters_never_go_back() {
        let mut totals = Totals::default();
        let mut seen = |epoch, misses| {
            let tier = totals.update(&snapshot(epoch, misses))[1];
            (tier.load_misses, tier.stall)
        };
        assert_eq!([seen(1, 5), seen(1, 7), seen(2, 1), seen(2, 4)], [(5, 15), (7, 21), (8, 24), (11, 33)]);
        assert_eq!(seen(4, 0), (11, 33));
    }
}
