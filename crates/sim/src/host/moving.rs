//! Moving pages: copies, mappings changed, translations shot down; reclaim of the least recently used.

use isotherm_core::{Bytes, MigrationContext, MoveStatus, Nanos, PageId, PageSize, Pages, TierId};
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

impl SimHost<'_> {
    pub(super) fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let Some(from) = self.processor.locator.tier_of(page) else {
            return self.count(MoveStatus::Gone, to, to);
        };
        let shadowed = self.processor.locator.has_shadow(page, to);
        let status = self.processor.locator.relocate(page, to);
        if status == MoveStatus::Moved {
            let cost = self.costs.move_page + if shadowed { Nanos(0) } else { self.copy(page, from, to) };
            let thread = self.processor.faults.thread(page);
            self.charge_migration(|charges| &mut charges.moving, Cause::Moving, cost, thread);
            self.remapped(page);
        }
        self.count(status, from, to)
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
        let tiers = &self.profile.tiers;
        let slowest = tiers[from.index()].read_bandwidth.min(tiers[to.index()].write_bandwidth);
        Nanos(transfer_time(size.0, slowest.min(self.costs.copy_bandwidth)) / 1000)
    }

    /// Accounts for a changed mapping: flushes its translation now or with its batch.
    fn remapped(&mut self, page: PageId) {
        self.processor.hold_lock(1, Cause::Moving);
        self.unflushed.push(page);
        // Linux batches the flushes of base pages only (migrate_pages_batch).
        if self.page_size == PageSize::Huge || self.unflushed.len() >= self.costs.shootdown_batch as usize {
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
