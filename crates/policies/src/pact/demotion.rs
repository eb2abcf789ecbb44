//! Demotion: by the host's LRU, as in the paper, or on hosts without one by the tracked values.

use isotherm_core::{Move, PageId, Pages, Plan, TierId, View, Work};
use isotherm_trackers::PacTable;

use crate::support::round::Round;

const SCAN: usize = 1024;
/// Fast pages among which the one of least value is demoted.
const CHOICE: u64 = 4;

#[derive(Debug)]
pub(super) struct Demotion {
    pub(super) by_kernel: bool,
    cursor: PageId,
    found: Vec<(PageId, TierId)>,
    fast: Vec<(PageId, f32)>,
}

impl Demotion {
    pub(super) fn new(by_kernel: bool) -> Self {
        Self { by_kernel, cursor: PageId(0), found: Vec::new(), fast: Vec::new() }
    }

    /// Plans to demote `wanted` fast pages: of the next few in the address space those of least value. They
    /// go first, so that promotions find their room.
    pub(super) fn pick(
        &mut self,
        wanted: Pages,
        table: &PacTable,
        view: &mut dyn View,
        plan: &mut Plan,
        work: &mut Work,
    ) {
        self.collect((wanted.0 * CHOICE) as usize, table, view);
        work.touches += self.fast.len() as u64;
        let count = (wanted.0 as usize).min(self.fast.len());
        if count == 0 {
            return;
        }
        self.fast.select_nth_unstable_by(count - 1, |one, other| {
            one.1.total_cmp(&other.1).then(one.0.cmp(&other.0))
        });
        let promotions = std::mem::take(&mut plan.moves);
        let to = TierId::FAST.slower();
        plan.moves.extend(self.fast[..count].iter().map(|&(page, _)| Move { page, to }));
        plan.moves.extend(promotions);
    }

    /// Collects the next `count` fast pages in the address space, with their values.
    fn collect(&mut self, count: usize, table: &PacTable, view: &mut dyn View) {
        self.fast.clear();
        let mut round = Round::from(self.cursor);
        while self.fast.len() < count && !round.complete {
            self.found.clear();
            let next = view.walk(round.cursor, SCAN, &mut self.found);
            let fast = self.found.iter().filter(|&&(page, tier)| tier == TierId::FAST && round.is_new(page));
            self.fast.extend(fast.map(|&(page, _)| (page, table.get(page.0))));
            round.proceed(next);
        }
        self.cursor = round.cursor;
    }
}
