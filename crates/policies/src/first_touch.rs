//! First touch: a page stays where it was allocated, in the fast tier while that had room.

use crate::prelude::*;

/// A long tick: it has nothing to do.
const TICK: Nanos = Nanos(3600 * Nanos::SECOND.0);

/// Linux' default placement: no sampling, no moves. What tiering must at least beat.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstTouch;

impl Policy for FirstTouch {
    fn signals(&self) -> Signals {
        Signals::NONE
    }

    fn sampling(&self) -> Sampling {
        Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, usize::MAX, TICK)
    }

    fn observe(&mut self, _batch: &SampleBatch, _view: &mut dyn View) {}

    fn step(&mut self, _now: Nanos, _view: &mut dyn View, _plan: &mut Plan) {}

    fn metadata(&self) -> Bytes {
        Bytes(0)
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::{Pages, TierId};

    use super::*;
    use crate::support::test_view::{TestView, batch_of};

    #[test]
    fn it_samples_nothing_and_moves_nothing() {
        let mut view = TestView::new(&[Pages(4), Pages(8)], 8);
        let mut plan = Plan::default();
        FirstTouch.observe(&batch_of(&view, &[7, 7, 7], (0, 3)), &mut view);
        FirstTouch.step(Nanos::SECOND, &mut view, &mut plan);
        assert!(!plan.moves_pages() && plan.sampling.is_none());
        assert_eq!(FirstTouch.sampling().rate, SamplingRate::Off);
        assert_eq!(FirstTouch.signals(), Signals::NONE);
        assert_eq!(view.tier_of(isotherm_core::PageId(7)), Some(TierId(1)));
    }
}
