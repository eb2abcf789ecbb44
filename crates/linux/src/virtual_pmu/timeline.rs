//! Defines how modelled time becomes the clock's: between two drains both are known at both ends.

use isotherm_core::Nanos;

/// The last moment at which both times were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeline {
    modelled: u64,
    clock: Nanos,
}

/// The stretch between two such moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    from: Timeline,
    to: Timeline,
}

impl Timeline {
    /// Both times begin now.
    pub(super) fn new(clock: Nanos) -> Self {
        Self { modelled: 0, clock }
    }

    /// Goes on to a later moment. Where modelled time went back, it began anew with an epoch.
    pub(super) fn advance(&mut self, modelled: u64, clock: Nanos) -> Span {
        let from = if modelled < self.modelled { Self { modelled: 0, ..*self } } else { *self };
        *self = Self { modelled, clock: clock.max(self.clock) };
        Span { from, to: *self }
    }
}

impl Span {
    /// The clock's time for a modelled one, within the span.
    pub(super) fn clock(&self, modelled: u64) -> Nanos {
        let length = self.to.modelled - self.from.modelled;
        let into = modelled.clamp(self.from.modelled, self.to.modelled) - self.from.modelled;
        let elapsed = u128::from((self.to.clock - self.from.clock).0);
        let share = (elapsed * u128::from(into)).checked_div(u128::from(length));
        self.from.clock + Nanos(share.unwrap_or(elapsed) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_two_drains_are_in_proportion() {
        let mut timeline = Timeline::new(Nanos(1000));
        let span = timeline.advance(100, Nanos(3000));
        assert_eq!([0, 50, 100, 200].map(|time| span.clock(time).0), [1000, 2000, 3000, 3000]);
        let span = timeline.advance(200, Nanos(3500));
        assert_eq!([50, 100, 150, 200].map(|time| span.clock(time).0), [3000, 3000, 3250, 3500]);
    }

    #[test]
    fn no_modelled_time_and_a_new_epoch_stay_in_order() {
        let mut timeline = Timeline::new(Nanos(1000));
        let span = timeline.advance(0, Nanos(2000));
        assert_eq!(span.clock(0), Nanos(2000));
        timeline.advance(500, Nanos(3000));
        let span = timeline.advance(100, Nanos(4000));
        assert_eq!([0, 50, 100].map(|time| span.clock(time).0), [3000, 3500, 4000]);
        let span = timeline.advance(200, Nanos(3900));
        assert_eq!(span.clock(150), Nanos(4000), "a clock does not go back");
    }
}
