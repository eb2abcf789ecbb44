//! Access source over the virtual PMU.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_core::{
    Bytes, Counters, Nanos, Operation, Sampling, SamplingRate, SamplingScope, Signal, Signals, TierCounters,
    TierId,
};
use isotherm_virtual_pmu::layout::{MAX_TIERS, USUAL_BYTES};
use isotherm_virtual_pmu::{Control, Process, Record, Snapshot};

use super::frequency::{Frequency, differ};
use super::handle::VirtualPmu;
use super::timeline::Timeline;
use super::totals::Totals;
use crate::LinuxError;
use crate::process::Pid;
use crate::source::{Access, AccessSource, Cause, Prices, SourceStatistics};

/// Samples misses of followed processes and counts those of each tier.
///
/// The plugin counts descendants of followed processes from their first instruction. The first followed
/// process begins an epoch, unless it began one itself ([`VirtualPmu::measure`]). The clock is the modelled
/// machine's.
#[derive(Debug)]
pub struct VirtualPmuSource {
    pmu: VirtualPmu,
    followed: BTreeSet<u32>,
    begun: bool,
    request: Option<Sampling>,
    frequency: Option<Frequency>,
    timeline: Timeline,
    totals: Totals,
    /// Samples lost before the source was made.
    lost_before: u64,
    statistics: SourceStatistics,
}

impl VirtualPmuSource {
    pub fn open(root: &Path) -> Result<Self, LinuxError> {
        let mut pmu = VirtualPmu::open(root)?;
        pmu.sample([0; MAX_TIERS], 0, false, false)?;
        Ok(Self {
            lost_before: pmu.lost(),
            pmu,
            followed: BTreeSet::new(),
            begun: false,
            request: None,
            frequency: None,
            timeline: Timeline::default(),
            totals: Totals::default(),
            statistics: SourceStatistics { memory: Bytes(USUAL_BYTES as u64), ..SourceStatistics::default() },
        })
    }

    /// Opens it for an engine that is the calling thread of the program, whose accesses are excluded.
    pub fn inside(root: &Path) -> Result<Self, LinuxError> {
        let mut source = Self::open(root)?;
        source.pmu.leave_out(own_thread())?;
        Ok(source)
    }

    fn set_scope(&mut self) -> Result<(), LinuxError> {
        let tgids: Vec<u32> = self.followed.iter().copied().collect();
        // Those that do not fit are descendants of others, which the plugin follows by itself.
        self.pmu.set_scope(&tgids).map(drop)
    }

    fn adapt(&mut self, snapshot: &Snapshot, now: Nanos) -> Result<(), LinuxError> {
        let Some((request, frequency)) = self.request.zip(self.frequency.as_mut()) else { return Ok(()) };
        frequency.learn(events(snapshot, &request), now);
        let periods = slower_fast_tier(&request, frequency.periods());
        if differ(&self.pmu.periods, &periods) { self.sample(&request, periods) } else { Ok(()) }
    }

    fn sample(&mut self, request: &Sampling, periods: [u64; MAX_TIERS]) -> Result<(), LinuxError> {
        let each_tier = request.scope != SamplingScope::AllTiers;
        self.pmu.sample(periods, Control::all_events(request.stores), each_tier, false)
    }

    /// Returns the time that a sample takes of the program: in frequency mode each has an interrupt.
    fn sample_price(&self) -> Nanos {
        let prices = self.pmu.prices();
        let buffered = self.frequency.is_none();
        Nanos(if buffered { prices.buffered_sample } else { prices.sample })
    }

    fn deliver(&mut self, record: Record, accesses: &mut Vec<Access>) {
        match record.process {
            Process::Tgid(tgid) if self.followed.contains(&tgid) => {
                accesses.push(access(tgid, &record, self.timeline.time_of(record.time)));
                self.statistics.delivered += 1;
                self.statistics.program_time += self.sample_price();
            }
            _ => self.statistics.foreign += 1,
        }
    }
}

fn own_thread() -> u32 {
    // `/proc/thread-self` is `PID/task/TID`.
    let link = std::fs::read_link("/proc/thread-self");
    link.ok().and_then(|path| path.file_name()?.to_str()?.parse().ok()).unwrap_or(0)
}

/// Returns the periods with that of the fast tier's own event as much longer as the request wants it.
fn slower_fast_tier(request: &Sampling, mut periods: [u64; MAX_TIERS]) -> [u64; MAX_TIERS] {
    if request.scope == SamplingScope::EachTier && request.fast_divisor > 1 {
        periods[0] = periods[0].saturating_mul(request.fast_divisor.into()).min(Record::MAX_WEIGHT.into());
    }
    periods
}

/// Returns the misses that each event has counted.
fn events(snapshot: &Snapshot, request: &Sampling) -> [u64; MAX_TIERS] {
    let of_tier =
        snapshot.tiers.map(|tier| tier.load_misses + if request.stores { tier.store_misses } else { 0 });
    match request.scope {
        SamplingScope::EachTier | SamplingScope::EachSlowTier => of_tier,
        SamplingScope::AllTiers => {
            let mut events = [0; MAX_TIERS];
            events[0] = of_tier.iter().sum();
            events
        }
    }
}

fn access(tgid: u32, record: &Record, time: Nanos) -> Access {
    Access {
        time,
        process: Pid(tgid),
        address: record.address,
        weight: record.weight,
        latency: record.latency,
        tier: Some(TierId(record.tier)),
        operation: if record.store { Operation::Store } else { Operation::Load },
        cause: Cause::Sampled,
    }
}

impl AccessSource for VirtualPmuSource {
    fn name(&self) -> &'static str {
        "virtual-pmu"
    }

    fn offers(&self) -> Signals {
        use Signal::{LoadSamples, SampleLatency, StoreSamples, TierHits, TierStalls};
        let signals = [LoadSamples, StoreSamples, SampleLatency, TierHits, TierStalls];
        signals.into_iter().fold(Signals::NONE, Signals::with)
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        if !self.followed.insert(process.0) {
            return Ok(());
        }
        let counted = self.pmu.counts(process.0);
        self.set_scope()?;
        if !std::mem::replace(&mut self.begun, true) && !counted {
            self.pmu.begin_epoch()?;
        }
        Ok(())
    }

    fn forget(&mut self, process: Pid) {
        if self.followed.remove(&process.0) {
            // A plugin that does not answer is noticed at the next drain.
            let _ = self.set_scope();
        }
    }

    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        if self.request.is_some_and(|before| before.same_events(sampling)) {
            return Ok(());
        }
        self.request = Some(*sampling);
        self.frequency = None;
        let periods = match sampling.rate {
            SamplingRate::Off => [0; MAX_TIERS],
            SamplingRate::Period(period) => [period.max(1); MAX_TIERS],
            SamplingRate::Frequency(hertz) => {
                let snapshot = self.pmu.counters()?;
                let (misses, now) = (events(&snapshot, sampling), self.timeline.advance(&snapshot));
                // The rate is per running thread, and as many run as there are processors.
                let hertz = hertz.saturating_mul(self.pmu.vcpus().max(1));
                self.frequency.insert(Frequency::new(hertz, misses, now)).periods()
            }
        };
        self.sample(sampling, slower_fast_tier(sampling, periods))
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let snapshot = self.pmu.recent_counters();
        let now = snapshot.as_ref().map_or(self.timeline.now(), |snapshot| self.timeline.advance(snapshot));
        // Periods first: reading a full ring takes so long that one too short would fill it again meanwhile.
        let adapted = snapshot.map_or(Ok(()), |snapshot| self.adapt(&snapshot, now));
        // At most a ring's worth, so that this ends; later samples wait.
        for _ in 0..self.pmu.capacity() {
            let Some(record) = self.pmu.pop() else { break };
            self.deliver(record, accesses);
        }
        self.statistics.lost = self.pmu.lost().wrapping_sub(self.lost_before);
        adapted
    }

    fn count(&mut self, counters: &mut Counters) -> Result<(), LinuxError> {
        let snapshot = self.pmu.counters()?;
        let now = self.timeline.advance(&snapshot);
        // An engine that is behind drains nothing, and periods that are too short would keep it so.
        self.adapt(&snapshot, now)?;
        let totals = self.totals.update(&snapshot);
        let tier = |index: usize| {
            let count = &totals[index];
            TierCounters {
                load_misses: count.load_misses,
                store_misses: count.store_misses,
                stall: Nanos(count.stall),
                occupancy: count.occupancy,
                busy: count.busy,
                // The device does not count loads and stores apart.
                load_occupancy: count.occupancy,
                load_busy: count.busy,
                bytes_read: Bytes(count.bytes_read),
                bytes_written: Bytes(count.bytes_written),
            }
        };
        counters.tiers = (0..self.pmu.tiers()).map(tier).collect();
        Ok(())
    }

    fn clock(&self) -> Option<Nanos> {
        Some(self.timeline.now())
    }

    fn prices(&self) -> Option<Prices> {
        let prices = self.pmu.prices();
        Some(Prices { call: Nanos(prices.move_call), page: Nanos(prices.move_page) })
    }

    /// The device's samples cost the guest nothing; they count as on the modelled machine.
    fn statistics(&self) -> SourceStatistics {
        self.statistics
    }
}

impl Drop for VirtualPmuSource {
    fn drop(&mut self) {
        // Counting continues. A plugin that does not answer needs no request.
        let _ = self.pmu.sample([0; MAX_TIERS], 0, false, false);
        let _ = self.pmu.leave_out(0);
    }
}
