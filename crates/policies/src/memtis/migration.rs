//! A round of Memtis' migration: hot units up, cold ones down, warm ones only if hot ones need their room.

use isotherm_core::{Move, PageId, Plan, TierId, View};

use super::counts::PageCounts;
use super::{COLD, HOT, Memtis, PROMOTED, WARM};

impl<C: PageCounts> Memtis<C> {
    /// Plans one round: at most `budget` pages in either direction, but whole units.
    pub(super) fn migrate(&mut self, view: &dyn View, plan: &mut Plan) {
        if std::mem::take(&mut self.stale) {
            self.classify(view);
        }
        let budget = self.derived.budget;
        let wanted = self.choose_hot(budget, view);
        let free = view.free(TierId::FAST).0;
        let missing = (wanted + self.derived.demotion_mark).saturating_sub(free).min(budget);
        let mut room = free + self.demote(COLD, missing, view, plan);
        self.short = room - free < missing && self.has_unlisted(view);
        let missing = wanted.saturating_sub(room).min(budget.saturating_sub(room - free));
        room += self.demote(WARM, missing, view, plan);
        self.promote(room, view, plan);
    }

    /// Returns whether there may be unlisted fast pages: a list does not tell how many of a range's are fast.
    fn has_unlisted(&self, view: &dyn View) -> bool {
        let used = view.capacity(TierId::FAST) - view.free(TierId::FAST);
        let listed = [COLD, WARM, HOT].map(|list| self.lists.len(list) as u64).iter().sum::<u64>();
        self.splitter.is_some() || listed < used.0
    }

    /// Puts every unit into the list of its class, in the order of addresses.
    fn classify(&mut self, view: &dyn View) {
        let mut page = 0;
        while (page as usize) < view.pages() {
            let unit = self.units.unit(PageId(page));
            let class = self.thresholds.class(self.bin(unit));
            let list = self.list_for(unit, class, view);
            self.enlist(unit, list);
            page = self.units.pages(unit).end;
        }
        self.work.swept += (self.counts.bytes() + self.lists.bytes()) as u64;
        self.work.operations += u64::from(page);
    }

    /// Chooses hot units until they have `limit` pages outside the fast tier. Returns that number of pages.
    fn choose_hot(&mut self, limit: u64, view: &dyn View) -> u64 {
        self.chosen.clear();
        let mut pages = 0;
        while pages < limit
            && let Some(unit) = self.lists.dequeue(PROMOTED)
        {
            pages += self.pages_where(unit, view, |tier| tier != TierId::FAST).count() as u64;
            self.chosen.push(unit);
        }
        pages
    }

    fn pages_where<'a>(
        &self,
        unit: PageId,
        view: &'a dyn View,
        wanted: impl Fn(TierId) -> bool + 'a,
    ) -> impl Iterator<Item = PageId> + 'a {
        let pages = self.units.pages(unit).map(PageId);
        pages.filter(move |&page| view.tier_of(page).is_some_and(&wanted))
    }

    /// Plans the demotion of `missing` pages or a little more, from a list's front. Returns their number.
    fn demote(&mut self, list: usize, missing: u64, view: &dyn View, plan: &mut Plan) -> u64 {
        let before = plan.moves.len();
        while ((plan.moves.len() - before) as u64) < missing
            && let Some(unit) = self.lists.dequeue(list)
        {
            let pages = self.pages_where(unit, view, |tier| tier == TierId::FAST);
            plan.moves.extend(pages.map(|page| Move { page, to: TierId::FAST.slower() }));
            self.work.touches += 4;
        }
        (plan.moves.len() - before) as u64
    }

    /// Plans the promotion of the chosen units, as far as there is room; the others keep their turn.
    fn promote(&mut self, mut room: u64, view: &dyn View, plan: &mut Plan) {
        let chosen = std::mem::take(&mut self.chosen);
        let mut placed = 0;
        for &unit in &chosen {
            let before = plan.moves.len();
            let pages = self.pages_where(unit, view, |tier| tier != TierId::FAST);
            plan.moves.extend(pages.map(|page| Move { page, to: TierId::FAST }));
            let pages = (plan.moves.len() - before) as u64;
            if pages > room {
                plan.moves.truncate(before);
                break;
            }
            room -= pages;
            placed += 1;
        }
        chosen[placed..].iter().rev().for_each(|&unit| self.lists.enqueue_first(PROMOTED, unit));
        self.work.touches += 4 * chosen.len() as u64;
        self.chosen = chosen;
    }
}
