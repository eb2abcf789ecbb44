//! The effects of an access: cache, tier, cost, sample, count.

use isotherm_core::cache::{Cache, Geometry};
use isotherm_core::{Counters, PageSize};
use isotherm_machine::{CostModel, Footprint, Miss, transfer_time};
use isotherm_qemu_api::access::Kind as Access;
use isotherm_virtual_pmu::{
    Control, Device, Identity, LayoutError, Mailbox, Prices, Process, Record, Snapshot, TierCount, layout,
};

use crate::accounts::{AccountId, Accounts, Followed};
use crate::device::Profiler;
use crate::history::History;
use crate::options::Options;
use crate::report::{Phase, Report};
use crate::sampler::Sampler;
use crate::shared_memory::Memory;

/// Misses between two publications of the counters: a block of the cost model.
const BLOCK: u64 = 1024;
/// Blocks between two writes of the result file.
const REPORT_BLOCKS: u64 = 4096;

/// Miss of the last-level cache.
pub(crate) struct Missed {
    pub(crate) vcpu: u16,
    pub(crate) process: Process,
    pub(crate) account: AccountId,
    pub(crate) address: u64,
    /// Physical address; `None` if the TLB does not have it.
    pub(crate) physical: Option<u64>,
    pub(crate) store: bool,
    /// Instructions of the vCPU since the previous miss or stretch.
    pub(crate) instructions: u64,
}

/// Work of a vCPU between entering and leaving user mode.
pub(crate) struct Stretch {
    pub(crate) vcpu: u16,
    pub(crate) account: AccountId,
    pub(crate) accesses: u64,
    pub(crate) instructions: u64,
    /// Instructions since the last miss.
    pub(crate) rest: u64,
}

pub(crate) struct Model {
    cache: Cache,
    options: Options,
    device: Device<Memory>,
    vcpus: u16,
    pub(crate) control: Control,
    /// Where the guest's kernel keeps processes.
    pub(crate) mailbox: Option<Mailbox>,
    followed: Followed,
    sampler: Sampler,
    cost: CostModel,
    accounts: Accounts,
    history: History,
    pub(crate) phase: Phase,
    report: Report,
    /// Instructions of each vCPU that no miss has charged yet.
    pending: Vec<u64>,
    block: u64,
    blocks: u64,
    counters: Counters,
    pub(crate) profiler: Option<Profiler>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("a machine of {0} vCPUs cannot be modelled")]
    Machine(u16),
}

/// The guest's frames stand for its pages, which it does not tell: a page that moves is in no TLB again.
fn cost_model(options: &Options, vcpus: u16) -> Result<CostModel, ModelError> {
    let pages = u32::try_from(options.ranges.pages()).map_err(|_| ModelError::Machine(vcpus))?;
    let memory = Footprint { pages: pages as usize, page_size: PageSize::Base, scale: 1.0 };
    CostModel::new(&options.profile, vcpus, memory).ok_or(ModelError::Machine(vcpus))
}

/// Returns what tiering costs on the modelled machine, by its profile.
fn prices(options: &Options) -> Prices {
    let costs = &options.profile.costs;
    let copy = transfer_time(PageSize::Base.bytes().0, costs.copy_bandwidth) / 1000;
    Prices {
        sample: costs.sample.0,
        buffered_sample: costs.buffered_sample.0,
        move_call: costs.move_call.0,
        move_page: costs.move_page.0 + copy,
    }
}

impl Model {
    /// Makes a model of `vcpus` vCPUs that counts nothing until the guest asks.
    pub(crate) fn new(options: Options, memory: Memory, vcpus: u16) -> Result<Self, ModelError> {
        let tiers = options.profile.tiers.len();
        let control = Control::default();
        Ok(Self {
            cache: Cache::new(options.geometry),
            device: Device::new(memory, Identity { tiers, vcpus: vcpus.into(), prices: prices(&options) })?,
            vcpus,
            mailbox: None,
            followed: Followed::default(),
            sampler: Sampler::new(&control),
            control,
            cost: cost_model(&options, vcpus)?,
            accounts: Accounts::new(tiers),
            history: History::default(),
            phase: Phase::default(),
            report: Report::new(&options),
            options,
            pending: vec![0; vcpus.into()],
            block: 0,
            blocks: 0,
            counters: Counters::default(),
            profiler: None,
        })
    }

    /// Returns the cache's shape.
    pub(crate) fn geometry(&self) -> Geometry {
        self.cache.geometry()
    }

    /// Updates the profiling device's registers, since code that is not followed may read them.
    pub(crate) fn stage_registers(&mut self) {
        if let Some(profiler) = &mut self.profiler {
            profiler.stage(self.cost.now().0);
        }
    }

    /// Uses the profiling device's register at a physical address, and returns whether there is one.
    pub(crate) fn use_register(
        &mut self,
        physical: u64,
        access: Access,
        word: impl FnOnce() -> Option<u64>,
    ) -> bool {
        let Some(profiler) = &mut self.profiler else { return false };
        let used = self.options.ranges.tier(physical).is_none() && profiler.is_register(physical, word);
        if used {
            profiler.used(physical, access, self.cost.now().0);
        }
        used
    }

    /// Returns whether the running thread is left out; calls `thread` only if a thread is.
    pub(crate) fn leaves_out(&self, thread: impl FnOnce() -> Option<u32>) -> bool {
        self.control.left_out != 0 && thread() == Some(self.control.left_out)
    }

    /// Returns the account of a process, if it is followed.
    pub(crate) fn account(
        &mut self,
        process: Process,
        parent: impl FnOnce() -> Option<u32>,
    ) -> Option<AccountId> {
        self.followed.has(process, parent).then(|| self.accounts.number(process))
    }

    /// Looks a line up in the cache and brings it in. The upper bits of the line's number are its process.
    #[inline]
    pub(crate) fn touch(&mut self, line: u64) -> bool {
        self.cache.touch(line)
    }

    pub(crate) fn miss(&mut self, missed: &Missed) {
        let ranges = &self.options.ranges;
        let place = |address| Some((ranges.tier(address)?, ranges.page(address)? as u32));
        let Some((tier, page)) = missed.physical.and_then(place) else {
            self.phase.elsewhere += 1;
            self.pending[usize::from(missed.vcpu)] += missed.instructions;
            return;
        };
        let pending = std::mem::take(&mut self.pending[usize::from(missed.vcpu)]);
        let instructions = u32::try_from(pending + missed.instructions).unwrap_or(u32::MAX);
        let (thread, store) = (missed.vcpu, missed.store);
        let Some(cost) = self.cost.miss(Miss { thread, instructions, dependence: 0, store, tier, page })
        else {
            return;
        };
        if let (Some(profiler), Some(physical)) = (&mut self.profiler, missed.physical) {
            profiler.pass(physical, store, || self.cost.now().0);
        }
        if let Some(account) = self.accounts.get(missed.account) {
            account.misses[usize::from(tier)][usize::from(store)] += 1;
            account.stall_ps += cost.stall_ps;
        }
        if let Some(weight) = self.sampler.count(tier, store) {
            self.sample(missed, tier, weight, u32::try_from(cost.latency.0).unwrap_or(u32::MAX));
        }
        self.block += 1;
        if self.block == BLOCK {
            self.block = 0;
            self.blocks += 1;
            self.publish();
            if self.blocks.is_multiple_of(REPORT_BLOCKS) {
                self.write_report();
            }
        }
    }

    fn sample(&mut self, missed: &Missed, tier: u8, weight: u64, latency: u32) {
        if matches!(missed.process, Process::PageTables(_)) {
            self.phase.samples.unresolved += 1;
            self.device.count_unresolved();
        }
        let fits = self.device.push(Record {
            address: missed.address,
            process: missed.process,
            time: self.cost.clock(missed.vcpu).0,
            tier,
            store: missed.store,
            vcpu: missed.vcpu as u8,
            latency,
            weight: u32::try_from(weight).unwrap_or(u32::MAX),
        });
        self.phase.samples.taken += 1;
        self.phase.samples.lost += u64::from(!fits);
    }

    pub(crate) fn end_stretch(&mut self, stretch: &Stretch) {
        self.pending[usize::from(stretch.vcpu)] += stretch.rest;
        self.phase.accesses += stretch.accesses;
        self.phase.instructions += stretch.instructions;
        if let Some(account) = self.accounts.get(stretch.account) {
            account.accesses += stretch.accesses;
            account.instructions += stretch.instructions;
        }
    }

    /// Answers the guest's doorbell: applies its requests and publishes the counters.
    pub(crate) fn obey(&mut self, doorbell: u64) {
        let control = self.device.control();
        self.settle();
        if control.epoch != self.phase.epoch {
            self.begin_phase(control.epoch);
        }
        self.sampler.change(&control);
        self.followed.set(self.device.filter(), control.children);
        self.mailbox = self.device.mailbox();
        self.control = control;
        self.publish();
        self.device.answer(doorbell);
    }

    /// Charges the rest, so that counters are current.
    fn settle(&mut self) {
        let mut charged = self.block > 0;
        for (thread, pending) in self.pending.iter_mut().enumerate() {
            let instructions = std::mem::take(pending);
            self.cost.run(thread as u16, instructions);
            charged |= instructions > 0;
        }
        if charged {
            self.cost.settle();
            self.block = 0;
        }
    }

    fn begin_phase(&mut self, epoch: u64) {
        let finished = self.finished_phase();
        self.report.add(finished);
        self.phase = Phase::begin(epoch);
        self.accounts = Accounts::new(self.options.profile.tiers.len());
        self.history = History::default();
        self.sampler = Sampler::new(&self.control);
        if let Ok(cost) = cost_model(&self.options, self.vcpus) {
            self.cost = cost;
        }
        self.profiler.iter_mut().for_each(Profiler::begin_phase);
    }

    fn publish(&mut self) {
        let snapshot = self.snapshot();
        self.device.publish(&snapshot);
        if self.history.is_due(snapshot.time) {
            self.history.add(snapshot.time, misses(&self.counters));
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.cost.counters(&mut self.counters);
        let mut snapshot = Snapshot {
            epoch: self.phase.epoch,
            time: self.cost.now().0,
            accesses: self.phase.accesses,
            instructions: self.phase.instructions,
            elsewhere: self.phase.elsewhere,
            ..Snapshot::default()
        };
        for (count, tier) in snapshot.tiers.iter_mut().zip(&self.counters.tiers) {
            *count = TierCount {
                load_misses: tier.load_misses,
                store_misses: tier.store_misses,
                bytes_read: tier.bytes_read.0,
                bytes_written: tier.bytes_written.0,
                stall: tier.stall.0,
                occupancy: tier.occupancy,
                busy: tier.busy,
            };
        }
        snapshot
    }

    fn finished_phase(&mut self) -> Phase {
        let snapshot = self.snapshot();
        let mut history = self.history.clone();
        history.add(snapshot.time, misses(&self.counters));
        let mut phase = self.phase.clone();
        phase.device = self.profiler.as_mut().map(Profiler::uses);
        phase.finish(&snapshot, &self.counters, &self.accounts, history)
    }

    pub(crate) fn write_report(&mut self) {
        let phase = self.finished_phase();
        self.report.write(&self.options.result, phase);
    }

    /// Writes the final results, since QEMU ends.
    pub(crate) fn finish(&mut self) {
        self.settle();
        self.publish();
        self.write_report();
    }
}

fn misses(counters: &Counters) -> Vec<u64> {
    counters.tiers.iter().map(|tier| tier.load_misses + tier.store_misses).collect()
}

// Both the layout and the cost model have room for these tiers.
const _: () = assert!(CostModel::MAX_TIERS <= layout::MAX_TIERS);

#[cfg(test)]
mod tests;
