//! Counts misses, stalls and queue occupancy, for policies that need counters.
//!
//! The processor's own events are counted per followed thread, with inheritance, in one group, so that they
//! run at the same time. The caching and home agents' events count whole sockets: the kernel cannot count
//! them for one program, and they need CAP_PERFMON. Both stay open until the counters are dropped, because
//! heirs count on them.

use std::io;
use std::path::Path;

use isotherm_core::{Counters, Nanos, Signal, Signals, TierCounters, TierId};

pub use super::counter_events::{CountSpec, CounterEvents, Measure, SocketGroup};
use super::data_source::TierMap;
use super::events::unsupported;
use super::open::{encoded, explain};
use super::sys::{self, Attr, Event, Join, flag, read};
use crate::LinuxError;
use crate::files::Tree;
use crate::topology::cpu::Cpu;

/// Share of its time above which a group had its counters to itself.
const WHOLE: f64 = 0.99;

#[derive(Debug)]
struct Group {
    events: Vec<Event>,
    measures: Vec<Measure>,
    /// Number of agents that count the same, and of all agents.
    share: (u64, u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    /// Nanoseconds for which it was enabled.
    enabled: u64,
    /// Nanoseconds for which it counted; fewer if counters were multiplexed.
    running: u64,
    values: Vec<u64>,
}

/// Returns `value * numerator / denominator`, 0 where nothing was counted.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator);
    u64::try_from(product.checked_div(u128::from(denominator)).unwrap_or(0)).unwrap_or(u64::MAX)
}

impl Group {
    fn open(events: &[CountSpec], share: (u64, u64), task: i32, cpu: i32) -> io::Result<Self> {
        let inherit = if task < 0 { 0 } else { flag::INHERIT };
        let mut group = Self { events: Vec::new(), measures: Vec::new(), share };
        for event in events {
            let attr = Attr {
                read_format: read::GROUP | read::TIME_ENABLED | read::TIME_RUNNING,
                flags: inherit,
                ..encoded(event.encoding)
            };
            let join = group.events.first().map_or(Join::Alone, Join::Group);
            let opened = sys::open(&attr, task, cpu, join).or_else(|error| match error.raw_os_error() {
                // Retries for users who may count user mode only. Agents know no modes.
                Some(libc::EACCES | libc::EPERM) if task >= 0 => {
                    let flags = attr.flags | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR;
                    sys::open(&Attr { flags, ..attr }, task, cpu, join)
                }
                _ => Err(error),
            })?;
            group.events.push(opened);
            group.measures.push(event.measure);
        }
        Ok(group)
    }

    fn read(&self) -> io::Result<Reading> {
        let mut words = vec![0; 3 + self.events.len()];
        let count = self.events[0].read(&mut words)?;
        if count != words.len() || words[0] != self.events.len() as u64 {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(Reading { enabled: words[1], running: words[2], values: words.split_off(3) })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    tiers: Vec<TierCounters>,
    inserts: Vec<u64>,
    stall_cycles: u64,
}

impl Sums {
    fn tier(&mut self, tier: TierId) -> &mut TierCounters {
        if self.tiers.len() <= tier.index() {
            self.tiers.resize(tier.index() + 1, TierCounters::default());
        }
        &mut self.tiers[tier.index()]
    }

    fn add(&mut self, measures: &[Measure], (own, all): (u64, u64), reading: &Reading) {
        let clock = measures.iter().position(|&measure| measure == Measure::Clock);
        let ticks = clock.map_or(reading.running, |at| reading.values[at]);
        for (&measure, &value) in measures.iter().zip(&reading.values) {
            let value = scaled(value, all, own);
            let whole = scaled(value, reading.enabled, reading.running);
            // An agent's own clock, which ran as long as the group, turns its cycles into nanoseconds.
            let nanoseconds = scaled(value, reading.enabled, ticks);
            match measure {
                Measure::Loads(tier) => self.tier(tier).load_misses += whole,
                Measure::Stalls => self.stall_cycles += whole,
                // The TOR events count demand reads: Table 1 of PACT.
                Measure::Occupancy(tier) => {
                    let tier = self.tier(tier);
                    tier.occupancy += nanoseconds;
                    tier.load_occupancy += nanoseconds;
                }
                Measure::Busy(tier) => {
                    let tier = self.tier(tier);
                    tier.busy += nanoseconds;
                    tier.load_busy += nanoseconds;
                }
                Measure::Inserts(tier) => {
                    self.tier(tier);
                    self.inserts.resize(self.tiers.len(), 0);
                    self.inserts[tier.index()] += whole;
                }
                Measure::Clock => {}
            }
        }
    }

    /// Uses the agents' requests as loads of tiers that no thread's event counts.
    fn take_inserts(&mut self, tiers: &[TierId]) {
        for &tier in tiers {
            let inserts = self.inserts.get(tier.index()).copied().unwrap_or(0);
            self.tier(tier).load_misses += inserts;
        }
    }

    /// Shares stalls out by occupancy where it is counted, else by misses. No processor counts them by tier.
    fn share_stalls(&mut self, megahertz: u32) {
        let nanoseconds = scaled(self.stall_cycles, 1000, u64::from(megahertz));
        let occupied = self.tiers.iter().any(|tier| tier.occupancy > 0);
        let weight = |tier: &TierCounters| if occupied { tier.occupancy } else { tier.load_misses };
        let all = self.tiers.iter().map(weight).fold(0, u64::saturating_add);
        for tier in &mut self.tiers {
            tier.stall = Nanos(scaled(nanoseconds, weight(tier), all));
        }
    }
}

#[derive(Debug)]
pub struct PmuCounters {
    events: CounterEvents,
    by_inserts: Vec<TierId>,
    megahertz: u32,
    threads: Vec<Group>,
    sockets: Vec<Group>,
    sockets_refused: Option<LinuxError>,
    min_share: f64,
}

impl PmuCounters {
    /// Opens counters of `events`, whose stall cycles run at `megahertz`. If the agents may not be counted,
    /// [`Self::sockets_refused`] tells why; fails if `events` is empty.
    pub fn new(events: CounterEvents, megahertz: u32) -> Result<Self, LinuxError> {
        if events.threads.is_empty() && events.sockets.is_empty() {
            return Err(unsupported("the event table has no counters for this processor".into()));
        }
        let open = |group: &SocketGroup| Group::open(&group.events, group.share, -1, group.cpu as i32);
        let opened: io::Result<Vec<_>> = events.sockets.iter().map(open).collect();
        let (sockets, refused) = match opened {
            Ok(sockets) => (sockets, None),
            Err(error) => (Vec::new(), Some(explain(error, "uncore_cha", Tree::new("/".as_ref()), None))),
        };
        Ok(Self {
            by_inserts: events.by_inserts(),
            events,
            megahertz,
            threads: Vec::new(),
            sockets,
            sockets_refused: refused,
            min_share: 1.0,
        })
    }

    /// Opens counters of this machine that follow the calling thread; `tiers` maps memory to tiers. Fails if
    /// the processor has no counters, or the kernel does not permit them.
    pub fn here(tiers: TierMap) -> Result<Self, LinuxError> {
        let root = Path::new("/");
        let events = CounterEvents::of(root, Cpu::read(root)?.microarchitecture, tiers)?;
        let mut counters = Self::new(events, super::settings::megahertz(Tree::new(root)))?;
        counters.attach(0)?;
        Ok(counters)
    }

    /// Returns why queue occupancy is not counted although the table has it.
    pub fn sockets_refused(&self) -> Option<&LinuxError> {
        self.sockets_refused.as_ref()
    }

    /// Returns the minimum share of its time that a group counted: below 1, its counts are extrapolated.
    pub fn min_share(&self) -> f64 {
        self.min_share
    }

    pub fn offers(&self, signals: Signals) -> Signals {
        let mut counted = self.events.threads.iter().flatten();
        let hits = counted.any(|event| matches!(event.measure, Measure::Loads(_)));
        let stalls = self.events.queues() && !self.sockets.is_empty();
        let signals = if hits { signals.with(Signal::TierHits) } else { signals };
        if stalls && self.megahertz > 0 { signals.with(Signal::TierStalls) } else { signals }
    }

    /// Counts a thread too, and its later children.
    pub(crate) fn attach(&mut self, tid: u32) -> Result<(), LinuxError> {
        for events in &self.events.threads {
            match Group::open(events, (1, 1), tid as i32, -1) {
                Ok(group) => self.threads.push(group),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                Err(error) => return Err(explain(error, &events[0].name, Tree::new("/".as_ref()), None)),
            }
        }
        Ok(())
    }

    pub fn count(&mut self, counters: &mut Counters) -> Result<(), LinuxError> {
        let mut sums = Sums::default();
        for group in self.threads.iter().chain(&self.sockets) {
            let reading =
                group.read().map_err(|error| LinuxError::Call { call: "read of a perf counter", error })?;
            if reading.enabled > 0 {
                self.min_share = self.min_share.min(reading.running as f64 / reading.enabled as f64);
            }
            sums.add(&group.measures, group.share, &reading);
        }
        sums.take_inserts(&self.by_inserts);
        sums.share_stalls(self.megahertz);
        let tiers = sums.tiers.len().max(counters.tiers.len());
        sums.tiers.resize(tiers, TierCounters::default());
        counters.tiers = sums.tiers;
        counters.multiplexed = self.min_share < WHOLE;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
