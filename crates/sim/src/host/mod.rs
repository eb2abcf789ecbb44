//! The simulator as a [`Host`]: pays for everything that the engine asks for.
//!
//! The tiering thread runs beside the program on its own clock. Its work takes time: the program runs on for
//! as long before the engine gets its answer, and samples collect in the ring meanwhile.

mod moving;

use std::ops::Range;

use isotherm_core::{
    Bytes, Copying, DeviceRequest, Gauge, Host, MigrationContext, MoveStatus, Nanos, Outcome, PageId,
    PageSize, Pages, Plan, SampleBatch, Sampling, Signal, Signals, TierId, View, Work,
};
use isotherm_machine::{Cause, Costs, DeviceProfile, LINE_BYTES, Profile, transfer_time};
use isotherm_neoprof::Parameters;

pub(crate) use self::moving::Migrations;
use crate::Charges;
use crate::device::{self, Devices};
use crate::long::{Counted, Rounds};
use crate::page_table::PageTable;
use crate::page_walk::PAGES_PER_TABLE;
use crate::processor::Processor;

#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyInterval {
    pub(crate) promotions: u64,
    pub(crate) demotions: u64,
    pub(crate) samples: u64,
    pub(crate) gauges: Vec<Gauge>,
}

type Account = fn(&mut Charges) -> &mut Nanos;

pub(crate) struct SimHost<'a> {
    pub(crate) processor: Processor<'a, PageTable>,
    pub(crate) migrations: Migrations,
    /// Cumulative counts at each interval's end so far.
    pub(crate) history: Vec<PolicyInterval>,
    pub(crate) samples: u64,
    pub(crate) tiering_cpu: Nanos,
    migration_context: MigrationContext,
    /// Whether samples are read while time passes.
    reads_ahead: bool,
    profile: &'a Profile,
    costs: &'a Costs,
    device: Option<(&'a DeviceProfile, Parameters)>,
    page_size: PageSize,
    /// How many times larger the footprint is that the run stands for.
    scale: f64,
    /// Bytes per second of one core that reads the fast tier in order: a line per miss register and latency.
    sweep_bandwidth: u64,
    /// When the tiering thread completes its work so far, in picoseconds.
    busy_until: u64,
    last_delivery: Nanos,
    gauges: Vec<Gauge>,
    /// Pages moved since the last shootdown.
    unflushed: Vec<PageId>,
    /// The next batch of pages to copy.
    departing: Vec<moving::Departure>,
    /// The rounds of a long run.
    pub(crate) rounds: Option<Rounds>,
}

impl<'a> SimHost<'a> {
    pub(crate) fn new(
        processor: Processor<'a, PageTable>,
        profile: &'a Profile,
        page_size: PageSize,
        migration_context: MigrationContext,
        footprint_scale: f64,
    ) -> Self {
        let device = profile.device.as_ref().map(|device| (device, device::sizes(device, footprint_scale)));
        Self {
            processor,
            migrations: Migrations::default(),
            history: Vec::new(),
            samples: 0,
            tiering_cpu: Nanos(0),
            migration_context,
            reads_ahead: false,
            profile,
            costs: &profile.costs,
            device,
            page_size,
            scale: footprint_scale,
            sweep_bandwidth: u64::from(profile.core.miss_registers) * LINE_BYTES * 1_000_000_000
                / profile.tiers[0].latency.0.max(1),
            busy_until: 0,
            last_delivery: Nanos(0),
            gauges: Vec::new(),
            unflushed: Vec::new(),
            departing: Vec::new(),
            rounds: None,
        }
    }

    pub(crate) fn note_gauges(&mut self, fill: impl FnOnce(&mut Vec<Gauge>)) {
        self.gauges.clear();
        fill(&mut self.gauges);
        self.note_intervals();
    }

    fn waiting(&self) -> usize {
        self.processor.sampler.waiting() + self.processor.faults.waiting()
    }

    pub(crate) fn run_block(&mut self) -> bool {
        let running = self.processor.run_block();
        self.note_intervals();
        if running && self.processor.ended() {
            self.end_round();
        }
        running
    }

    fn end_round(&mut self) {
        let Migrations { promotions, demotions, .. } = self.migrations;
        let now = Counted { promotions, demotions, ..self.processor.counted() };
        if self.rounds.as_mut().is_some_and(|rounds| rounds.end(now)) {
            self.processor.rewind();
        }
    }

    fn note_intervals(&mut self) {
        while self.history.len() < self.processor.intervals.len() {
            self.history.push(PolicyInterval {
                promotions: self.migrations.promotions,
                demotions: self.migrations.demotions,
                samples: self.samples,
                gauges: self.gauges.clone(),
            });
        }
    }

    /// Charges `cost` to the thread that carries the plan out: a program thread if the policy runs in faults.
    fn charge_migration(&mut self, account: Account, cause: Cause, cost: Nanos, thread: Option<u16>) {
        match self.migration_context {
            MigrationContext::Shared | MigrationContext::Dedicated => self.charge(account, cost),
            MigrationContext::Faulting => {
                *account(&mut self.processor.charges) += cost;
                self.processor.delay_program(thread, cost.0 * 1000, cause);
            }
        }
    }

    /// Charges work of the tiering thread; the program runs on meanwhile.
    fn charge(&mut self, account: Account, cost: Nanos) {
        self.compute(account, cost);
        self.pass(cost);
    }

    /// Occupies a core with a thread of the tiering system for `cost`.
    fn compute(&mut self, account: Account, cost: Nanos) {
        *account(&mut self.processor.charges) += cost;
        self.tiering_cpu += cost;
        self.processor.cores.occupy(cost.0 * 1000);
    }

    /// Reads samples on the sampling thread while another thread carries a plan out.
    fn read_ahead(&mut self) {
        let samples = self.processor.sampler.read() as u64;
        self.compute(|charges| &mut charges.draining, Nanos(self.costs.drain_sample.0 * samples));
    }

    /// Lets `duration` pass in which the tiering thread is busy or asleep.
    fn pass(&mut self, duration: Nanos) {
        self.busy_until = self.busy_until.max(self.processor.cores.now()) + duration.0 * 1000;
        // The program runs in whole blocks: less than half a block is owed.
        while self.processor.cores.now() + self.processor.cores.block_time() / 2 < self.busy_until
            && self.run_block()
        {
            if self.reads_ahead {
                self.read_ahead();
            }
        }
    }

    /// Makes the next access to each page fault, with one flush for all of them.
    fn arm(&mut self, pages: &[PageId]) {
        let (now, count) = (self.processor.now(), self.processor.locator.pages());
        let mut newly = Vec::new();
        for &page in pages {
            if self.processor.locator.arm(page) {
                self.processor.faults.arm(page, count, now);
                newly.push(page);
            }
        }
        let armed = newly.len() as u64;
        if armed > 0 {
            let cost = Nanos(self.costs.arm_page.0 * armed);
            self.charge_migration(|charges| &mut charges.arming, Cause::Sampling, cost, None);
            self.processor.hold_lock(armed.div_ceil(PAGES_PER_TABLE), Cause::Sampling);
            self.shoot_down_now(&newly, Cause::Sampling);
        }
    }

    /// Passes a policy's request to the devices; the first request switches them on.
    fn tell_devices(&mut self, request: DeviceRequest) {
        if self.processor.devices.is_none()
            && let Some((profile, sizes)) = &self.device
        {
            let (tiers, now) = (self.processor.locator.tiers(), self.processor.cores.now());
            self.processor.devices = Devices::new(profile, *sizes, tiers, now);
        }
        let cost = self.processor.devices.as_mut().map_or(Nanos(0), |devices| devices.request(request));
        self.charge(|charges| &mut charges.draining, cost);
    }
}

impl View for SimHost<'_> {
    fn tiers(&self) -> usize {
        self.processor.locator.tiers()
    }

    fn page_size(&self) -> PageSize {
        self.page_size
    }

    fn latency(&self, tier: TierId) -> Nanos {
        let own = self.profile.tiers[tier.index()].latency;
        let compressed = self.processor.locator.compression().is_some() && tier.index() + 1 == self.tiers();
        own + if compressed { self.processor.decompression() } else { Nanos(0) }
    }

    fn bandwidth(&self, tier: TierId) -> u64 {
        self.profile.tiers[tier.index()].read_bandwidth
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.processor.locator.capacity(tier)
    }

    fn free(&self, tier: TierId) -> Pages {
        self.processor.locator.free(tier)
    }

    fn pages(&self) -> usize {
        self.processor.locator.pages()
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        self.processor.locator.tier_of(page)
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        let (next, read) = self.processor.locator.walk(cursor, limit, found);
        let cost = Nanos(self.costs.scan_page.0 * read);
        self.charge_migration(|charges| &mut charges.scanning, Cause::Deciding, cost, None);
        next
    }

    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId> {
        let (next, read) = self.processor.locator.scan_accessed(cursor, limit, found);
        let cost = Nanos(self.costs.accessed_page.0 * read);
        self.charge_migration(|charges| &mut charges.scanning, Cause::Deciding, cost, None);
        self.processor.hold_lock(read.div_ceil(PAGES_PER_TABLE), Cause::Deciding);
        next
    }

    fn huge_range(&self, page: PageId) -> Range<u32> {
        self.processor.huge_range(page)
    }
}

impl Host for SimHost<'_> {
    fn offers(&self) -> Signals {
        let device = |signal| matches!(signal, Signal::DeviceHotPages | Signal::DeviceReports);
        let offered = Signal::ALL.into_iter().filter(|&signal| self.device.is_some() || !device(signal));
        offered.fold(Signals::NONE, Signals::with)
    }

    fn remedy(&self, _missing: Signal) -> String {
        "give the machine's profile a [device] (docs/reference/machines.md); each of the built-in ones has it"
            .into()
    }

    fn view(&mut self) -> &mut dyn View {
        self
    }

    fn now(&self) -> Nanos {
        self.processor.now()
    }

    fn sample(&mut self, request: Sampling) {
        let threads = self.processor.thread_count();
        let changed = !self.processor.sampler.request().same_events(&request);
        self.processor.sampler.set(request, threads);
        if changed {
            self.processor.restart_events();
        }
    }

    fn advance(&mut self, batch: &mut SampleBatch) -> bool {
        let request = self.processor.sampler.request();
        let deadline = Nanos(self.last_delivery.0.saturating_add(request.tick.0));
        while self.waiting() < request.batch && self.processor.now() < deadline {
            if !self.run_block() {
                break;
            }
            // A batch that the ring does not hold is collected in parts.
            if self.processor.sampler.wakes(request.batch) {
                self.read_ahead();
            }
        }
        batch.samples.clear();
        batch.faults.clear();
        self.processor.faults.drain(&mut batch.faults);
        batch.devices.clear();
        let reading = self.processor.devices.as_mut().map(|devices| devices.read(&mut batch.devices));
        let drained = self.processor.sampler.drain(request.batch, &mut batch.samples);
        batch.lost = drained.lost;
        self.samples += batch.samples.len() as u64;
        self.processor.cores.counters(&mut batch.counters);
        batch.spent = self.processor.spent();
        self.last_delivery = self.processor.now();
        let samples = Nanos(self.costs.drain_sample.0 * drained.read as u64);
        self.charge(|charges| &mut charges.draining, samples + reading.unwrap_or_default());
        !self.processor.ended()
    }

    fn spend(&mut self, work: Work, metadata: Bytes, sleep: Nanos) {
        // The metadata, too, is that of a footprint `scale` times smaller.
        let cache = self.profile.llc_size.0 as f64 / self.scale;
        let cached = (cache / metadata.0.max(1) as f64).min(1.0);
        let touch = self.costs.cached_touch.0 as f64 * cached
            + self.profile.tiers[0].latency.0 as f64 * (1.0 - cached);
        let swept = transfer_time(work.swept, self.sweep_bandwidth) / 1000;
        let operations = self.costs.operation.0 * work.operations;
        self.charge(
            |charges| &mut charges.tracking,
            Nanos((work.touches as f64 * touch) as u64 + operations + swept),
        );
        self.pass(sleep);
    }

    fn carry_out(&mut self, plan: &Plan, outcome: &mut Outcome) {
        self.reads_ahead = self.migration_context == MigrationContext::Dedicated;
        plan.split.iter().for_each(|&page| self.split(page));
        for reclaim in &plan.reclaim {
            let reclaimed = self.reclaim(reclaim.from, reclaim.pages, &mut outcome.demoted);
            outcome.reclaimed.push(reclaimed);
        }
        if !plan.moves.is_empty() && self.migration_context != MigrationContext::Faulting {
            self.charge(|charges| &mut charges.moving, self.costs.move_call);
        }
        for entry in &plan.moves {
            let status = match plan.copying {
                _ if self.processor.ended() => MoveStatus::Gone,
                Copying::Exclusive => self.relocate(entry.page, entry.to),
                Copying::Transactional => self.relocate_mapped(entry.page, entry.to),
            };
            outcome.moves.push(status);
        }
        self.depart();
        self.shoot_down();
        plan.collapse.iter().for_each(|&page| self.collapse(page));
        self.arm(&plan.arm);
        if let Some(request) = plan.device {
            self.tell_devices(request);
        }
        self.reads_ahead = false;
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Allocation;
    use isotherm_core::parameters::Scale;

    use super::*;
    use crate::replay::Replay;
    use crate::{Access, Stream};

    /// Returns the time of a million touches of 1 MiB of metadata.
    fn touches(footprint: f64) -> Nanos {
        let mut profile = Profile::builtin("pact").expect("it comes with Isotherm");
        profile.set("costs.operation", "0ns").expect("a cost");
        let stream = Stream {
            accesses: vec![Access::default(); 10],
            pages: vec![(0, 0)],
            threads: 1,
            ..Stream::default()
        };
        let scale = Scale { footprint, time: 1.0 };
        let replay = Replay::new(&stream, &[], &profile, scale, 1, 1).expect("two tiers");
        let table = PageTable::new(1, vec![1, 1], 0.0, Allocation::FastFirst);
        let context = MigrationContext::Shared;
        let mut host = SimHost::new(replay.processor(table), &profile, stream.page_size, context, footprint);
        let work = Work { touches: 1_000_000, ..Work::default() };
        host.spend(work, Bytes(1 << 20), Nanos(0));
        host.processor.charges.tracking
    }

    #[test]
    fn the_metadata_of_a_scaled_run_hits_a_cache_of_its_scale() {
        // 13.75 MiB hold 1 MiB, and an eighth of the 110 MiB that it stands for at 1:110.
        assert_eq!(touches(1.0), Nanos(26_000_000));
        assert_eq!(touches(110.0), Nanos(26_000_000 / 8 + 90_000_000 / 8 * 7));
    }
}
