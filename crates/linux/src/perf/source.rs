//! Access source that samples with the PMU.
//!
//! **Events.** Each thread of a followed process gets one event of every sampled kind per processor,
//! inherited by whatever the thread creates later; no event covers all tasks. Events of one kind on one
//! processor write to one ring ([`Ring`]), so the ring identifies the kind. A further event per thread and
//! processor counts nothing and reports forks, exits and execs, from which `tasks.rs` learns who inherits
//! from whom.
//!
//! **Rate.** `PERF_EVENT_IOC_PERIOD` does not reach inherited events, so a new rate or scope replaces the
//! events of all tasks. Off and on again only disables and enables them.
//!
//! **Order.** A drain sorts the content of all rings by time (`CLOCK_MONOTONIC`) and delivers what happened
//! before it began; the rest waits for the next one.
//!
//! **Gap.** A thread created within the microseconds in which its creator gets its events may be missed,
//! unless the program is followed before it executes.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use isotherm_core::{
    Bytes, Counters, Nanos, Operation, Sampling, SamplingRate, SamplingScope, Signal, Signals,
};

use super::counters::{CounterEvents, PmuCounters};
use super::data_source::TierMap;
use super::decode::{Decoded, Decoder};
use super::events::{Choice, EventSpec, Format, SourceEvents, unsupported};
use super::lifecycle::Lifecycle;
use super::open::{self, Grant};
use super::record::Content;
use super::ring::Ring;
use super::sample_cost;
pub use super::settings::PmuOptions;
use super::sys::{Attr, Event, flag};
use super::tasks::Tasks;
use crate::files::{Tree, list};
use crate::process::Pid;
use crate::source::{Access, AccessSource, SourceStatistics};
use crate::topology::cpu::Cpu;
use crate::{LinuxError, clock};

/// Maximum passes over a process's threads until no new ones are found.
const SCANS: usize = 64;

#[derive(Debug)]
struct Slot {
    spec: EventSpec,
    grant: Grant,
    decoder: Decoder,
    rate: SamplingRate,
}

/// Events of a root: those that sample, and those that report the life of tasks.
#[derive(Debug, Default)]
struct Opened {
    sampling: Vec<Event>,
    reports: Vec<Event>,
}

/// Source that samples accesses with the PMU, or with any events that carry addresses.
#[derive(Debug)]
pub struct PmuSource {
    events: SourceEvents,
    options: PmuOptions,
    cpus: Vec<u32>,
    max_rate: u64,
    slots: Vec<Slot>,
    request: Option<Sampling>,
    enabled: bool,
    lifecycle: Lifecycle,
    /// Rings of each slot, one per processor.
    rings: Vec<Vec<Ring>>,
    tasks: Tasks<Opened>,
    muted: HashSet<u32>,
    pending: Vec<Access>,
    statistics: SourceStatistics,
    counters: Option<PmuCounters>,
}

/// Cycles above which loads are sampled when latencies are requested.
const LATENCY_CYCLES: u16 = 30;

impl PmuSource {
    /// Makes a source with this machine's PMU, whose samples carry latencies if `latency` is set. It counts
    /// hits and stalls too where the processor can and `tiers` tells which memory is which tier. Fails if the
    /// processor has no such events, or the kernel does not permit them.
    pub fn detect(latency: bool, tiers: TierMap) -> Result<Self, LinuxError> {
        let root = Path::new("/");
        let cpu = Cpu::read(root)?;
        let choice = Choice { tiers, latency: latency.then_some(LATENCY_CYCLES) };
        let events = SourceEvents::pmu(root, cpu.vendor, cpu.microarchitecture, choice)?;
        for event in &events.all_tiers {
            open::probe(event, root)?;
        }
        let options = PmuOptions::default();
        let counted = CounterEvents::of(root, cpu.microarchitecture, tiers);
        // Who may sample may count. What the table lacks for this processor is summed over samples instead.
        let counters = counted.and_then(|events| PmuCounters::new(events, options.megahertz)).ok();
        Ok(Self { counters, ..Self::new(events, options)? })
    }

    /// Makes a source of `events`. It opens only its own rings; [`open::probe`] checks permissions.
    pub fn new(events: SourceEvents, options: PmuOptions) -> Result<Self, LinuxError> {
        let root = Tree::new(&options.root);
        let cpus = root.parsed("/sys/devices/system/cpu/online", "a list of processors", list)?;
        let lifecycle = Lifecycle::new(&cpus)?;
        let max_rate = open::max_rate(root);
        let mut source = Self {
            events,
            options,
            cpus,
            max_rate,
            slots: Vec::new(),
            request: None,
            enabled: false,
            lifecycle,
            rings: Vec::new(),
            tasks: Tasks::default(),
            muted: HashSet::new(),
            pending: Vec::new(),
            statistics: SourceStatistics::default(),
            counters: None,
        };
        let off = Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, 1, Nanos::SECOND);
        source.slots = source.slots_for(&off)?;
        Ok(source)
    }

    #[must_use]
    pub fn with_counters(mut self, counters: PmuCounters) -> Self {
        self.counters = Some(counters);
        self
    }

    /// Returns the names of sampled events and their permitted settings.
    pub fn sampled(&self) -> impl Iterator<Item = (&str, Grant)> {
        self.slots.iter().map(|slot| (slot.spec.name.as_str(), slot.grant))
    }

    /// Returns the number of events open for other tasks: file descriptors, which are limited per process.
    pub fn open_events(&self) -> usize {
        self.tasks.roots().map(|root| root.sampling.len() + root.reports.len()).sum()
    }

    fn slots_for(&self, sampling: &Sampling) -> Result<Vec<Slot>, LinuxError> {
        let loads = match sampling.scope {
            SamplingScope::AllTiers => &self.events.all_tiers,
            SamplingScope::EachTier | SamplingScope::EachSlowTier => &self.events.each_tier,
        };
        let specs = loads.iter().chain(self.events.stores.iter().filter(|_| sampling.stores));
        specs.map(|spec| self.slot(spec, sampling.rate_of(spec.tier))).collect()
    }

    fn slot(&self, spec: &EventSpec, rate: SamplingRate) -> Result<Slot, LinuxError> {
        let grant = open::probe(spec, &self.options.root)?;
        let fixed = match open::period(spec, rate, self.max_rate) {
            (period, 0) => Some(period),
            _ => None,
        };
        let decoder = Decoder::new(spec, fixed, self.events.tiers, self.options.megahertz);
        let unknown = || unsupported(format!("samples of {} hold fields of unknown size", spec.name));
        Ok(Slot { spec: spec.clone(), grant, decoder: decoder.ok_or_else(unknown)?, rate })
    }

    fn make_rings(&mut self) -> Result<(), LinuxError> {
        while self.rings.len() < self.slots.len() {
            let pages = self.options.ring_pages;
            let ring = |&cpu| Ring::new(cpu, pages).map_err(|error| open::explain_ring(error, pages));
            self.rings.push(self.cpus.iter().map(ring).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn open_sampling(&self, tid: u32) -> io::Result<Vec<Event>> {
        if self.request.is_none() {
            return Ok(Vec::new());
        }
        let disabled = if self.enabled { 0 } else { flag::DISABLED };
        let mut opened = Vec::new();
        for (slot, rings) in self.slots.iter().zip(&self.rings) {
            let attr = open::sampling(&slot.spec, slot.grant, slot.rate, self.max_rate);
            let attr = Attr { flags: attr.flags | flag::INHERIT | disabled, ..attr };
            let leader = open::leading(&slot.spec, slot.grant);
            for ring in rings {
                match leader {
                    None => opened.push(ring.open(&attr, tid)?),
                    Some(leader) => {
                        let leader = Attr { flags: leader.flags | flag::INHERIT, ..leader };
                        opened.extend(ring.open_led(&leader, &attr, tid)?);
                    }
                }
            }
        }
        Ok(opened)
    }

    /// Gives a task its own events. Returns false if it has ended meanwhile.
    fn attach(&mut self, pid: u32, tid: u32) -> Result<bool, LinuxError> {
        let opened = self.lifecycle.open(tid).and_then(|(reports, ids)| {
            let sampling = self.open_sampling(tid)?;
            Ok((Opened { sampling, reports }, ids))
        });
        match opened {
            Ok((opened, ids)) => self.tasks.attach(pid, tid, opened, ids),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                self.tasks.exited(tid);
                return Ok(false);
            }
            Err(error) => {
                let name = self.slots.first().map_or("", |slot| slot.spec.name.as_str());
                return Err(open::explain(error, name, Tree::new(&self.options.root), Some(Pid(pid))));
            }
        }
        Ok(true)
    }

    fn sync(&mut self) {
        self.lifecycle.apply(&mut self.tasks, &mut self.muted);
    }

    fn renew(&mut self) -> Result<(), LinuxError> {
        self.tasks.renew();
        for _ in 0..SCANS {
            self.sync();
            let outdated = self.tasks.outdated();
            if outdated.is_empty() {
                break;
            }
            for (pid, tid) in outdated {
                self.attach(pid, tid)?;
            }
        }
        Ok(())
    }

    fn enable(&mut self, on: bool) -> Result<(), LinuxError> {
        self.enabled = on;
        for event in self.tasks.roots().flat_map(|root| &root.sampling) {
            let done = if on { event.enable() } else { event.disable() };
            done.map_err(|error| LinuxError::Call { call: "ioctl of a perf event", error })?;
        }
        Ok(())
    }

    fn read_rings(&mut self) {
        let keep_stores = self.request.is_some_and(|request| request.stores);
        let Self { slots, rings, pending, statistics, muted, .. } = self;
        for (slot, rings) in slots.iter().zip(rings) {
            for ring in rings {
                ring.drain(|record| match record.content() {
                    Content::Sample(body) => match slot.decoder.decode(body) {
                        Decoded::Access(access) if access.operation == Operation::Store && !keep_stores => {}
                        Decoded::Access(access) if muted.is_empty() || !muted.contains(&access.process.0) => {
                            pending.push(access);
                        }
                        Decoded::Hit => {}
                        Decoded::Access(_) | Decoded::Foreign | Decoded::Malformed => statistics.foreign += 1,
                    },
                    Content::Lost(count) => statistics.lost += count,
                    Content::Throttled => statistics.throttled += 1,
                    _ => {}
                });
            }
        }
    }
}

/// Returns the threads of a process; `None` once it has ended.
fn threads(root: Tree<'_>, pid: u32) -> Option<Vec<u32>> {
    root.numbered(&format!("/proc/{pid}/task"), "").ok().filter(|threads| !threads.is_empty())
}

impl AccessSource for PmuSource {
    fn name(&self) -> &'static str {
        self.events.name
    }

    fn offers(&self) -> Signals {
        let mut signals = Signals::NONE.with(Signal::LoadSamples);
        if self.events.stores_too || self.events.stores.is_some() {
            signals = signals.with(Signal::StoreSamples);
        }
        if self.options.megahertz > 0 && self.events.all_tiers.iter().any(|spec| spec.format != Format::Plain)
        {
            signals = signals.with(Signal::SampleLatency);
        }
        self.counters.as_ref().map_or(signals, |counters| counters.offers(signals))
    }

    fn samples_all_latencies(&self) -> bool {
        // Load latency of PEBS samples only loads above a threshold; IBS tags any op.
        self.options.megahertz > 0 && self.events.all_tiers.iter().all(|spec| spec.format == Format::Ibs)
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        let Pid(pid) = process;
        self.muted.remove(&pid);
        let mut found = false;
        for _ in 0..SCANS {
            self.sync();
            let Some(threads) = threads(Tree::new(&self.options.root), pid) else { break };
            let new: Vec<u32> = threads.into_iter().filter(|&tid| !self.tasks.has(tid)).collect();
            found = true;
            if new.is_empty() {
                break;
            }
            for tid in new {
                if self.attach(pid, tid)?
                    && let Some(counters) = &mut self.counters
                {
                    counters.attach(tid)?;
                }
            }
        }
        if !found || !self.tasks.has_process(pid) {
            return Err(LinuxError::Ended(pid));
        }
        Ok(())
    }

    fn forget(&mut self, process: Pid) {
        self.sync();
        self.tasks.forget(process.0);
        // It may inherit from a process that is still followed.
        if threads(Tree::new(&self.options.root), process.0).is_some() {
            self.muted.insert(process.0);
        }
    }

    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        if sampling.rate == SamplingRate::Off {
            return self.enable(false);
        }
        if self.request.is_some_and(|before| before.same_events(sampling)) {
            return if self.enabled { Ok(()) } else { self.enable(true) };
        }
        let slots = self.slots_for(sampling)?;
        self.enable(false)?;
        self.read_rings();
        self.slots = slots;
        self.make_rings()?;
        self.request = Some(*sampling);
        self.enabled = true;
        self.renew()
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let begun = clock::monotonic();
        self.sync();
        self.read_rings();
        // Each ring is nearly in order: sorting finds these runs and merges them.
        self.pending.sort_by_key(|access| access.time);
        let ready = self.pending.partition_point(|access| access.time <= begun);
        self.statistics.delivered += ready as u64;
        let rate = self.request.map_or(SamplingRate::Off, |request| request.rate);
        self.statistics.program_time += Nanos(ready as u64 * sample_cost(rate).0);
        accesses.extend(self.pending.drain(..ready));
        Ok(())
    }

    fn count(&mut self, counters: &mut Counters) -> Result<(), LinuxError> {
        self.counters.as_mut().map_or(Ok(()), |own| own.count(counters))
    }

    fn statistics(&self) -> SourceStatistics {
        let rings: u64 = self.rings.iter().flatten().map(Ring::memory).sum();
        let pending = self.pending.capacity() * size_of::<Access>();
        let memory = Bytes(rings + self.lifecycle.memory() + pending as u64);
        SourceStatistics { memory, ..self.statistics }
    }
}
