//! Modelled time that continues over epochs.

use isotherm_core::Nanos;
use isotherm_virtual_pmu::Snapshot;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timeline {
    epoch: u64,
    began: u64,
    /// Time within the epoch, as last seen.
    time: u64,
}

impl Timeline {
    /// Applies a snapshot; returns the time now.
    pub(super) fn advance(&mut self, snapshot: &Snapshot) -> Nanos {
        if snapshot.epoch != self.epoch {
            *self = Self { epoch: snapshot.epoch, began: self.now().0, time: 0 };
        }
        self.time = self.time.max(snapshot.time);
        self.now()
    }

    pub(super) fn now(&self) -> Nanos {
        Nanos(self.began + self.time)
    }

    /// Returns the time of a moment of the epoch. One later than what was seen belongs to an earlier epoch.
    pub(super) fn time_of(&self, time: u64) -> Nanos {
        Nanos(self.began + time.min(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(epoch: u64, time: u64) -> Snapshot {
        Snapshot { epoch, time, ..Snapshot::default() }
    }

    #[test]
    fn time_goes_on_over_epochs_and_never_back() {
        let mut timeline = Timeline::default();
        let times = [(1, 50), (1, 70), (2, 5), (2, 3), (2, 9)]
            .map(|(epoch, time)| timeline.advance(&seen(epoch, time)));
        assert_eq!(times.map(|time| time.0), [50, 70, 75, 75, 79]);
        assert_eq!(timeline.time_of(4), Nanos(74));
        assert_eq!(timeline.time_of(60), Nanos(79), "a sample of the epoch before is not of the future");
    }
}
