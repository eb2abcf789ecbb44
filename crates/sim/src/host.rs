//! The simulator as a [`Host`]: the engine's view of the simulated machine, which pays for everything it is asked to do.
//!
//! The tiering thread runs beside the program on its own clock. Whatever it does takes time; the program runs on for
//! that long before the engine is answered, and samples collect in the ring meanwhile.

use isotherm_core::{
    Bytes, Gauge, Host, MoveStatus, Nanos, Outcome, PageId, PageSize, Pages, Plan, SampleBatch, Sampling,
    Signal, Signals, TierId, View, Work,
};

use crate::machine::Machine;
use crate::placement::PageTable;
use crate::tiers::transfer_time;
use crate::{Costs, FailedMoves, Profile};

/// What the migrator did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Migrations {
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
    pub(crate) failed: FailedMoves,
    pub(crate) bytes: Bytes,
}

/// The policy's numbers at an interval's end.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyInterval {
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
    pub(crate) samples: u64,
    pub(crate) gauges: Vec<Gauge>,
}

/// Which account a cost of the tiering thread goes to.
#[derive(Clone, Copy)]
enum Account {
    Draining,
    Tracking,
    Scanning,
    Moving,
    Reclaiming,
}

/// A machine with an engine on it.
pub(crate) struct SimHost<'a> {
    pub(crate) machine: Machine<'a, PageTable>,
    pub(crate) migrations: Migrations,
    /// Cumulative numbers at each interval's end, as far as the run has come.
    pub(crate) history: Vec<PolicyInterval>,
    pub(crate) samples: u64,
    pub(crate) tiering_cpu: Nanos,
    costs: Costs,
    llc: Bytes,
    page_size: PageSize,
    copy_bandwidth: Vec<(u64, u64)>,
    fast_latency: Nanos,
    /// Bytes per second of one core reading the fast tier in order: as many lines as it has miss registers, each latency.
    sweep_bandwidth: u64,
    /// When the tiering thread is done with what it was asked so far, in picoseconds.
    busy_until: u64,
    last_delivery: Nanos,
    /// Gauges at the engine's last step.
    gauges: Vec<Gauge>,
    /// Pages moved since the last shootdown.
    unflushed: u32,
}

impl<'a> SimHost<'a> {
    pub(crate) fn new(machine: Machine<'a, PageTable>, profile: &Profile, page_size: PageSize) -> Self {
        Self {
            machine,
            migrations: Migrations::default(),
            history: Vec::new(),
            samples: 0,
            tiering_cpu: Nanos(0),
            costs: profile.costs.clone(),
            llc: profile.llc_size,
            page_size,
            copy_bandwidth: profile
                .tiers
                .iter()
                .map(|tier| (tier.read_bandwidth, tier.write_bandwidth))
                .collect(),
            fast_latency: profile.tiers[0].latency,
            sweep_bandwidth: u64::from(profile.core.miss_registers) * 64 * 1_000_000_000
                / profile.tiers[0].latency.0.max(1),
            busy_until: 0,
            last_delivery: Nanos(0),
            gauges: Vec::new(),
            unflushed: 0,
        }
    }

    /// Takes the policy's gauges after a step.
    pub(crate) fn note_gauges(&mut self, fill: impl FnOnce(&mut Vec<Gauge>)) {
        self.gauges.clear();
        fill(&mut self.gauges);
        self.note_intervals();
    }

    fn run_block(&mut self) -> bool {
        let running = self.machine.run_block();
        self.note_intervals();
        running
    }

    fn note_intervals(&mut self) {
        while self.history.len() < self.machine.intervals.len() {
            self.history.push(PolicyInterval {
                promotions: self.migrations.promotions,
                demotions: self.migrations.demotions,
                samples: self.samples,
                gauges: self.gauges.clone(),
            });
        }
    }

    /// The tiering thread computes for `cost`; the program runs on meanwhile.
    fn charge(&mut self, account: Account, cost: Nanos) {
        let charges = &mut self.machine.charges;
        let entry = match account {
            Account::Draining => &mut charges.draining,
            Account::Tracking => &mut charges.tracking,
            Account::Scanning => &mut charges.scanning,
            Account::Moving => &mut charges.moving,
            Account::Reclaiming => &mut charges.reclaiming,
        };
        *entry += cost;
        self.tiering_cpu += cost;
        self.machine.occupy_core(cost.0 * 1000);
        self.pass(cost);
    }

    /// The tiering thread is busy or asleep for `duration`.
    fn pass(&mut self, duration: Nanos) {
        self.busy_until = self.busy_until.max(self.machine.now_ps()) + duration.0 * 1000;
        // The program runs in whole blocks: what is less than half of one is owed.
        while self.machine.now_ps() + self.machine.block_time() / 2 < self.busy_until && self.run_block() {}
    }

    /// Moves one page and pays for it.
    fn relocate(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let from = self.machine.locator.tier_of(page);
        let status = self.machine.locator.relocate(page, to);
        self.count(status, from, to);
        if let (MoveStatus::Moved, Some(from)) = (status, from) {
            self.copy(from, to);
        }
        status
    }

    fn count(&mut self, status: MoveStatus, from: Option<TierId>, to: TierId) {
        let migrations = &mut self.migrations;
        match status {
            MoveStatus::Moved if from.is_some_and(|from| to < from) => migrations.promotions += 1,
            MoveStatus::Moved => migrations.demotions += 1,
            MoveStatus::AlreadyThere => {}
            MoveStatus::NoRoom => migrations.failed.no_room += 1,
            MoveStatus::Busy => migrations.failed.busy += 1,
            MoveStatus::Gone => migrations.failed.gone += 1,
            MoveStatus::Denied => migrations.failed.denied += 1,
        }
    }

    fn copy(&mut self, from: TierId, to: TierId) {
        let size = self.page_size.bytes();
        self.migrations.bytes += size;
        self.machine.tier(from).copy(size, false);
        self.machine.tier(to).copy(size, true);
        let slowest = self.copy_bandwidth[from.index()].0.min(self.copy_bandwidth[to.index()].1);
        let copying = transfer_time(size.0, slowest.min(self.costs.copy_bandwidth)) / 1000;
        self.charge(Account::Moving, self.costs.move_page + Nanos(copying));
        self.unflushed += 1;
        // Linux batches the flushes of base pages only (migrate_pages_batch).
        if self.page_size == PageSize::Huge || self.unflushed >= self.costs.shootdown_batch {
            self.shoot_down();
        }
    }

    fn shoot_down(&mut self) {
        if std::mem::take(&mut self.unflushed) > 0 {
            self.machine.interrupt(self.costs.shootdown.0 * 1000);
        }
    }

    fn reclaim(&mut self, from: TierId, pages: Pages) -> Pages {
        let mut reclaimed = Pages(0);
        while reclaimed < pages {
            let mut scanned = 0;
            let victim = self.machine.locator.next_victim(from, &mut scanned);
            self.charge(Account::Reclaiming, Nanos(self.costs.reclaim_page.0 * scanned));
            let Some(victim) = victim else { break };
            if self.relocate(victim, from.slower()) != MoveStatus::Moved {
                break;
            }
            reclaimed += Pages(1);
        }
        reclaimed
    }
}

impl View for SimHost<'_> {
    fn tiers(&self) -> usize {
        self.machine.locator.tiers()
    }

    fn page_size(&self) -> PageSize {
        self.page_size
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.machine.locator.capacity(tier)
    }

    fn free(&self, tier: TierId) -> Pages {
        self.machine.locator.free(tier)
    }

    fn pages(&self) -> usize {
        self.machine.locator.pages()
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        self.machine.locator.tier_of(page)
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        let (next, read) = self.machine.locator.walk(cursor, limit, found);
        self.charge(Account::Scanning, Nanos(self.costs.scan_page.0 * read));
        next
    }
}

impl Host for SimHost<'_> {
    fn offers(&self) -> Signals {
        Signal::ALL.into_iter().fold(Signals::NONE, Signals::with)
    }

    fn remedy(&self, _missing: Signal) -> String {
        "the simulator offers every signal there is".into()
    }

    fn view(&mut self) -> &mut dyn View {
        self
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }

    fn sample(&mut self, request: Sampling) {
        let threads = self.machine.thread_count();
        let changed = self.machine.sampler.request().rate != request.rate
            || self.machine.sampler.request().scope != request.scope
            || self.machine.sampler.request().stores != request.stores;
        self.machine.sampler.set(request, threads);
        if changed {
            self.machine.restart_events();
        }
    }

    fn advance(&mut self, batch: &mut SampleBatch) -> bool {
        let request = self.machine.sampler.request();
        let deadline = Nanos(self.last_delivery.0.saturating_add(request.tick.0));
        while self.machine.sampler.waiting() < request.batch && self.machine.now() < deadline {
            if !self.run_block() {
                break;
            }
        }
        batch.samples.clear();
        batch.lost = self.machine.sampler.drain(request.batch, &mut batch.samples);
        self.samples += batch.samples.len() as u64;
        self.machine.counters(&mut batch.counters);
        self.last_delivery = self.machine.now();
        self.charge(Account::Draining, Nanos(self.costs.drain_sample.0 * batch.samples.len() as u64));
        !self.machine.ended()
    }

    fn spend(&mut self, work: Work, metadata: Bytes, sleep: Nanos) {
        let cached = (self.llc.0 as f64 / metadata.0.max(1) as f64).min(1.0);
        let touch = self.costs.cached_touch.0 as f64 * cached + self.fast_latency.0 as f64 * (1.0 - cached);
        let swept = transfer_time(work.swept, self.sweep_bandwidth) / 1000;
        let operations = self.costs.operation.0 * work.operations;
        self.charge(Account::Tracking, Nanos((work.touches as f64 * touch) as u64 + operations + swept));
        self.pass(sleep);
    }

    fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome) {
        for reclaim in &plan.reclaim {
            let reclaimed = self.reclaim(reclaim.from, reclaim.pages);
            outcome.reclaimed.push(reclaimed);
        }
        if !plan.moves.is_empty() {
            self.charge(Account::Moving, self.costs.move_call);
        }
        for entry in &plan.moves {
            let status =
                if self.machine.ended() { MoveStatus::Gone } else { self.relocate(entry.page, entry.to) };
            outcome.moves.push(status);
        }
        self.shoot_down();
    }
}
