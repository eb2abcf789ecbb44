//! Moving pages: copies, mappings changed, translations shot down; reclaim of the least recently used.

use isotherm_core::{
    Bytes, MOVED_AT_ONCE, MigrationContext, MoveStatus, Nanos, PageId, PageSize, Pages, TierId,
};
use isotherm_machine::{Cause, transfer_time};

use super::SimHost;
use crate::FailedMoves;
use crate::lru::Pass;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Migrations {
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
    pub(crate) failed: FailedMoves,
    pub(crate) bytes: Bytes,
}

/// Pages up to which x86 Linux flushes one by one (`tlb_single_page_flush_ceiling`).
const FULL_FLUSH_ABOVE: usize = 33;

/// A page that has moved and is still to be copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departure {
    page: PageId,
    from: TierId,
    to: TierId,
    /// Whether the other tier does not have a copy already.
    copied: bool,
}

impl SimHost<'_> {
    /// Moves a page, with the others of its batch: each is mapped nowhere from the batch's start until it is
    /// copied, and threads that touch it wait (`migrate_pages_batch` in Linux's mm/migrate.c). A thread that
    /// moves the page in a fault of its own waits alone: no other is likely to touch it in that microsecond.
    ///
    /// Of a footprint that is `scale` times larger each page is touched as many times more rarely. Waits grow
    /// with the square of a page's time away, so that is shortened by the scale's root.
    pub(super) fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let Some(from) = self.processor.locator.tier_of(page) else {
            return self.count(MoveStatus::Gone, to, to);
        };
        let shadowed = self.processor.locator.has_shadow(page, to);
        let status = self.processor.locator.relocate(page, to);
        self.count(status, from, to);
        if status == MoveStatus::Moved {
            let departure = Departure { page, from, to, copied: !shadowed };
            if self.migration_context == MigrationContext::Faulting {
                let cost = self.arrive(departure);
                let thread = self.processor.faults.thread(page);
                self.charge_migration(|charges| &mut charges.moving, Cause::Moving, cost, thread);
                self.remapped(page);
            } else {
                self.processor.hold_lock(1, Cause::Moving);
                self.departing.push(departure);
                if self.departing.len() >= self.batch() {
                    self.depart();
                }
            }
        }
        status
    }

    /// Returns the pages that move together and share a flush of translations; a huge page moves by itself.
    fn batch(&self) -> usize {
        if self.page_size == PageSize::Huge {
            1
        } else {
            MOVED_AT_ONCE.min(self.costs.shootdown_batch as usize)
        }
    }

    /// Returns how long one core moves a page.
    fn time_of(&self, departure: Departure) -> Nanos {
        let copying = if departure.copied { self.copying(departure.from, departure.to) } else { Nanos(0) };
        self.costs.move_page + copying
    }

    /// Copies a page; returns how long one core moves it.
    fn arrive(&mut self, departure: Departure) -> Nanos {
        let Departure { page, from, to, copied } = departure;
        self.costs.move_page + if copied { self.copy(page, from, to) } else { Nanos(0) }
    }

    /// Flushes the batch's translations and copies its pages, one after the other.
    pub(super) fn depart(&mut self) {
        if self.departing.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.departing);
        let pages: Vec<PageId> = batch.iter().map(|departure| departure.page).collect();
        self.shoot_down_now(&pages, Cause::Moving);
        let since = self.busy_until.max(self.processor.cores.now());
        let shorter = self.scale.max(1.0).sqrt();
        let mut until = since;
        self.processor.locator.depart(since);
        for &departure in &batch {
            until += (self.time_of(departure).0 as f64 * 1000.0 / shorter) as u64;
            self.processor.locator.unmap(departure.page, until);
        }
        for &departure in &batch {
            let cost = self.arrive(departure);
            self.charge(|charges| &mut charges.moving, cost);
        }
        self.processor.locator.land();
        self.departing = batch;
        self.departing.clear();
    }

    /// Moves one page while it stays mapped. A promoted page leaves a shadow behind.
    pub(super) fn relocate_mapped(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let Some(from) = self.processor.locator.tier_of(page) else {
            return self.count(MoveStatus::Gone, to, to);
        };
        let shadowed = self.processor.locator.has_shadow(page, to);
        let status = self.processor.locator.may_move(page, to);
        if status != MoveStatus::Moved {
            return self.count(status, from, to);
        }
        let copying = if shadowed { Nanos(0) } else { self.copy(page, from, to) };
        // Its dirty bit is cleared and flushed before the copy; its mapping is changed and flushed after it.
        self.shoot_down_now(&[page], Cause::Moving);
        let written = !shadowed && self.processor.stores_within(page, copying.0 * 1000);
        self.charge(|charges| &mut charges.moving, self.costs.move_page + copying);
        if written {
            return self.count(MoveStatus::Busy, from, to);
        }
        // The program ran on meanwhile: check again.
        let status = self.processor.locator.relocate(page, to);
        if status == MoveStatus::Moved {
            if to.slower() == from {
                self.processor.locator.keep_shadow(page);
            }
            self.remapped(page);
        }
        self.count(status, from, to)
    }

    fn count(&mut self, status: MoveStatus, from: TierId, to: TierId) -> MoveStatus {
        let migrations = &mut self.migrations;
        match status {
            MoveStatus::Moved if to < from => migrations.promotions += 1,
            MoveStatus::Moved => migrations.demotions += 1,
            MoveStatus::AlreadyThere => {}
            MoveStatus::NoRoom => migrations.failed.no_room += 1,
            MoveStatus::Busy => migrations.failed.busy += 1,
            MoveStatus::Gone => migrations.failed.gone += 1,
            MoveStatus::Denied => migrations.failed.denied += 1,
        }
        status
    }

    /// Returns how long one core copies a page.
    fn copying(&self, from: TierId, to: TierId) -> Nanos {
        let tiers = &self.profile.tiers;
        let slowest = tiers[from.index()].read_bandwidth.min(tiers[to.index()].write_bandwidth);
        Nanos(transfer_time(self.page_size.bytes().0, slowest.min(self.costs.copy_bandwidth)) / 1000)
    }

    /// Copies a page's bytes on both tiers. Returns how long that takes one core.
    fn copy(&mut self, page: PageId, from: TierId, to: TierId) -> Nanos {
        let size = self.page_size.bytes();
        if let Some(devices) = &mut self.processor.devices {
            devices.copy(from, page, size.0, false);
            devices.copy(to, page, size.0, true);
        }
        self.migrations.bytes += size;
        let table = &self.processor.locator;
        let [(source, read), (target, written)] = [from, to].map(|tier| table.holds(page, tier, size));
        self.processor.tier(source).copy(read, false);
        self.processor.tier(target).copy(written, true);
        self.copying(from, to)
    }

    /// Accounts for a changed mapping: flushes its translation now or with its batch.
    fn remapped(&mut self, page: PageId) {
        self.processor.hold_lock(1, Cause::Moving);
        self.unflushed.push(page);
        if self.unflushed.len() >= self.batch() {
            self.shoot_down();
        }
    }

    /// Charges a huge page's split: its range's entries are written, and its translation is flushed.
    pub(super) fn split(&mut self, page: PageId) {
        let entries = self.processor.huge_range(page).len() as u64;
        self.remap_range(Nanos(self.costs.arm_page.0 * entries));
    }

    /// Charges a huge page's making: the pages of its range are copied where they are, as khugepaged does.
    pub(super) fn collapse(&mut self, page: PageId) {
        let mut cost = Nanos(0);
        for page in self.processor.huge_range(page).map(PageId) {
            if let Some(tier) = self.processor.locator.tier_of(page) {
                cost += self.copy(page, tier, tier) + self.costs.move_page;
            }
        }
        self.remap_range(cost);
    }

    fn remap_range(&mut self, cost: Nanos) {
        self.charge(|charges| &mut charges.moving, cost);
        self.processor.hold_lock(1, Cause::Moving);
        self.processor.flush(None);
        self.processor.interrupt(self.costs.shootdown.0 * 1000, Cause::Moving);
    }

    pub(super) fn shoot_down(&mut self) {
        if !self.unflushed.is_empty() {
            let pages = std::mem::take(&mut self.unflushed);
            self.shoot_down_now(&pages, Cause::Moving);
            self.unflushed = pages;
            self.unflushed.clear();
        }
    }

    pub(super) fn shoot_down_now(&mut self, pages: &[PageId], cause: Cause) {
        self.processor.flush(Some(pages).filter(|pages| pages.len() <= FULL_FLUSH_ABOVE));
        self.processor.interrupt(self.costs.shootdown.0 * 1000, cause);
    }

    pub(super) fn reclaim(&mut self, from: TierId, pages: Pages, demoted: &mut Vec<PageId>) -> Pages {
        let mut reclaimed = Pages(0);
        let mut pass = Pass::new(from, pages);
        while reclaimed < pages {
            let mut scanned = 0;
            let victim = self.processor.locator.next_victim(&mut pass, &mut scanned);
            self.charge(|charges| &mut charges.reclaiming, Nanos(self.costs.reclaim_page.0 * scanned));
            let Some(victim) = victim else { break };
            if self.demote(victim, from) != MoveStatus::Moved {
                break;
            }
            demoted.push(victim);
            reclaimed += Pages(1);
        }
        self.depart();
        reclaimed
    }

    /// Sets the size of the fast tier and demotes what it has no room for.
    pub(crate) fn limit_fast(&mut self, pages: Pages) {
        let used = self.processor.locator.used(TierId::FAST);
        self.processor.locator.resize(TierId::FAST, pages);
        if used > pages {
            self.reclaim(TierId::FAST, used - pages, &mut Vec::new());
            self.shoot_down();
        }
    }

    /// Demotes a page for reclaim, as work of a kernel thread in any migration context.
    fn demote(&mut self, page: PageId, from: TierId) -> MoveStatus {
        let migration_context = std::mem::replace(&mut self.migration_context, MigrationContext::Shared);
        let status = self.relocate(page, from.slower());
        self.migration_context = migration_context;
        status
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Scale;
    use isotherm_core::{Allocation, Host, Move, Outcome, Plan};
    use isotherm_machine::Profile;

    use super::*;
    use crate::page_table::PageTable;
    use crate::replay::Replay;
    use crate::{Access, Stream};

    /// Returns what the program loses, in picoseconds, by moves of 16 of 64 pages while it accesses the first
    /// 16 in turn, and how long a core moves them.
    fn lost(first: u32) -> (u64, u64) {
        let profile = Profile::builtin("sapphire-rapids").expect("it comes with Isotherm");
        let page = |access| if access < 64 { access } else { access % 16 };
        let access = |number| Access { page: page(number), instructions: 10, ..Access::default() };
        let stream = Stream {
            accesses: (0..100_000).map(access).collect(),
            pages: (0..64).map(|page| (0, page << 12)).collect(),
            threads: 1,
            ..Stream::default()
        };
        let scale = Scale { footprint: 1.0, time: 1.0 };
        let replay = Replay::new(&stream, &[], &profile, scale, 1, 1).expect("two tiers");
        let table = PageTable::new(64, vec![64, 64], 0.0, Allocation::FastFirst);
        let context = MigrationContext::Shared;
        let mut host = SimHost::new(replay.processor(table), &profile, stream.page_size, context, 1.0);
        assert!(host.run_block());
        let before = host.processor.cores.taken()[Cause::Moving as usize];
        let moves = (first..first + 16).map(|page| Move { page: PageId(page), to: TierId(1) }).collect();
        let mut outcome = Outcome::default();
        host.carry_out(&Plan { moves, ..Plan::default() }, &mut outcome);
        assert_eq!(outcome.moves, [MoveStatus::Moved; 16]);
        assert!(host.run_block());
        let lost = host.processor.cores.taken()[Cause::Moving as usize] - before;
        (lost, (host.processor.charges.moving - profile.costs.move_call).0 * 1000)
    }

    #[test]
    fn threads_wait_for_pages_that_are_on_their_way_and_for_no_others() {
        let ((hot, busy), (cold, _)) = (lost(0), lost(32));
        let shootdown = Profile::builtin("sapphire-rapids").expect("it comes with Isotherm").costs.shootdown;
        assert_eq!(cold, shootdown.0 * 1000, "one interrupt");
        // The thread waits for each page in its turn, nearly all of the time.
        assert!(hot > cold + busy * 9 / 10 && hot < cold + busy * 2, "{hot}, of {busy}");
    }
}
