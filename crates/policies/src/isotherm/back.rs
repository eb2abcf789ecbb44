//! The way back: pages that were faster first and have too much at stake return.

use super::*;

/// Share of the pages that are slower than first by which these may be too many: else they would come and go.
const SLACK: f64 = 0.25;

impl Isotherm {
    /// Returns the number of pages that were faster first, if all were there.
    pub(super) fn faster(view: &dyn View) -> f64 {
        (0..view.tiers() as u8 - 1).map(|tier| view.capacity(TierId(tier)).0 as f64).sum::<f64>().max(1.0)
    }

    /// Returns how many more of the pages that were faster first may go to slower tiers; if negative, how
    /// many must come back.
    pub(super) fn demotable(&self, view: &dyn View) -> f64 {
        let faster = Self::faster(view);
        faster * self.books.demotable(self.demoted as f64 / faster, self.known as f64 / faster)
    }

    /// Returns how many pages must come back to the tiers where they were first.
    pub(super) fn owed(&self, view: &dyn View) -> usize {
        if self.demoted == 0 {
            return 0;
        }
        let owed = -self.demotable(view);
        if owed > (SLACK * self.demoted as f64).max(1.0) { owed.ceil() as usize } else { 0 }
    }

    /// Plans that pages come back to where they were first: those that are used most, for the least used ones
    /// that have their places, else for those of all that are used less.
    pub(super) fn go_back(&mut self, view: &dyn View, owed: usize, plan: &mut Plan) {
        let mut count = if self.crowded { owed.min(TRIAL as usize) } else { owed };
        for pair in self.pairs(view.tiers()) {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            self.each_page(view, pair, &sorted(plan), CAUTION, |page, bin, fast| {
                let home = self.rates.home(page, if fast { pair.upper } else { pair.lower });
                if fast && home.is_some_and(|home| home > pair.upper) {
                    down.push((bin, page));
                } else if !fast && home == Some(pair.upper) {
                    up.push((bin, page));
                }
            });
            up.sort_unstable_by_key(|&(bin, page)| (std::cmp::Reverse(bin), page));
            down.sort_unstable();
            let swaps = count.min(up.len()).min(down.len());
            let pages =
                |pages: &[(usize, PageId)]| pages[..swaps].iter().map(|&(_, page)| page).collect::<Vec<_>>();
            self.exchange(&pages(&up), &pages(&down), pair, view, plan);
            count -= swaps;
            if count > 0 && up.len() > swaps {
                count -= self.come_back(view, pair, count, plan);
            }
            self.work.operations += 12 * self.rates.pages() as u64;
        }
    }

    /// Plans that up to `count` pages come back to free room of the upper tier, or for pages there that are
    /// used less. New pages take the room of those that came up and are gone, so the places of some that
    /// went down are lost. Returns how many come.
    fn come_back(&mut self, view: &dyn View, pair: Pair, count: usize, plan: &mut Plan) -> usize {
        let planned = sorted(plan);
        let each_page = |each: &mut dyn FnMut(PageId, usize, bool)| {
            self.each_page(view, pair, &planned, 0.0, |page, bin, fast| {
                if fast || self.rates.home(page, pair.lower) == Some(pair.upper) {
                    each(page, bin, fast);
                }
            });
        };
        let mut swaps = Swaps::new();
        each_page(&mut |_, bin, fast| swaps.add(bin, fast));
        let free = view.free(pair.upper).0.saturating_sub(spare(view, pair.upper));
        let mut cut = swaps.cut(free as u32, 0.0, count as u32);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        each_page(&mut |page, bin, fast| {
            if cut.takes(bin, fast) {
                if fast { down.push(page) } else { up.push(page) }
            }
        });
        self.exchange(&up, &down, pair, view, plan);
        self.work.operations += 18 * self.rates.pages() as u64;
        up.len()
    }
}
