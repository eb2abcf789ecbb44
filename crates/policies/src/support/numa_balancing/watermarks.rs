//! The free memory that kswapd keeps on the fast tier in tiering mode.

use isotherm_core::{Pages, Plan, Reclaim, TierId, View};

use super::settings::{HeadroomSettings, WatermarkSettings};
use crate::Setup;

/// Free pages of the fast tier at which something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watermarks {
    /// Below it an allocation wakes kswapd.
    pub(crate) low: u64,
    /// A promotion that would leave less wakes kswapd.
    pub(crate) high: u64,
    /// Where kswapd stops (`WMARK_PROMO`).
    pub(crate) promo: u64,
}

impl Watermarks {
    pub(crate) fn new(settings: &WatermarkSettings, setup: &Setup) -> Self {
        let min = setup.share(settings.min_watermark);
        let step = setup.share(settings.watermark_step).max(min / 4);
        Self { low: min + step, high: min + 2 * step, promo: min + 3 * step }
    }

    /// Does kswapd's work: makes room for `wanted` promotions and, once woken, up to the promotion watermark.
    pub(crate) fn keep(self, wanted: u64, view: &dyn View, plan: &mut Plan) {
        let free = view.free(TierId::FAST).0;
        let woken = free < self.low || (wanted > 0 && free < self.high + wanted);
        if woken && view.tiers() > 1 && free < self.promo + wanted {
            plan.reclaim.push(Reclaim { from: TierId::FAST, pages: Pages(self.promo + wanted - free) });
        }
    }
}

/// Free memory that TPP keeps ahead of allocation and promotion, apart from the watermarks of allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headroom {
    mark: u64,
}

impl Headroom {
    pub(crate) fn new(settings: &HeadroomSettings, setup: &Setup) -> Self {
        Self { mark: setup.share(settings.demote_watermark) }
    }

    pub(crate) fn keep(self, view: &dyn View, plan: &mut Plan) {
        let free = view.free(TierId::FAST).0;
        if free < self.mark && view.tiers() > 1 {
            plan.reclaim.push(Reclaim { from: TierId::FAST, pages: Pages(self.mark - free) });
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::PageSize;

    use super::*;
    use crate::support::test_view::TestView;

    fn reclaimed(mapped: usize, wanted: u64) -> u64 {
        let setup = Setup { pages: 2000, fast: Pages(1000), page_size: PageSize::Base, tiers: 2, seed: 1 };
        let settings = WatermarkSettings { min_watermark: 0.01, watermark_step: 0.01 };
        let marks = Watermarks::new(&settings, &setup);
        assert_eq!(marks, Watermarks { low: 20, high: 30, promo: 40 });
        let mut plan = Plan::default();
        marks.keep(wanted, &TestView::new(&[Pages(1000), Pages(2000)], mapped), &mut plan);
        plan.reclaim.iter().map(|reclaim| reclaim.pages.0).sum()
    }

    #[test]
    fn kswapd_sleeps_between_low_and_promo_and_then_works_up_to_promo() {
        assert_eq!(reclaimed(980, 0), 0, "20 free: not below low");
        assert_eq!(reclaimed(981, 0), 21);
        assert_eq!(reclaimed(900, 0), 0);
    }

    #[test]
    fn a_promotion_wakes_kswapd_below_high() {
        assert_eq!(reclaimed(965, 5), 0, "35 free: 30 are left");
        assert_eq!(reclaimed(966, 5), 11);
    }
}
