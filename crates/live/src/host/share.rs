//! The share of one host among several on a machine, and what the host tells about itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use isotherm_core::live_result::{Estimate, Traffic};
use isotherm_core::machine_status::{GroupStatus, MappingStatus, ProgramStatus};
use isotherm_core::{Bytes, Nanos};
use isotherm_linux::process::Pid;
use isotherm_shares::Curve;

/// The fast memory that a host may use, set by whoever divides it, and the host's latest report. Both sides
/// hold a clone; neither waits for the other.
#[derive(Debug, Clone)]
pub struct Share(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fast: AtomicU64,
    /// Whether the next report is to look at the memory by address.
    watched: AtomicBool,
    report: Mutex<Option<Arc<HostReport>>>,
}

/// The state of a host; counts are since its start.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// Time since the host's start.
    pub time: Nanos,
    /// The tiers, fastest first.
    pub tiers: Vec<TierReport>,
    /// Whether nothing moves.
    pub shadow: bool,
    pub traffic: Traffic,
    pub samples: u64,
    pub lost: u64,
    /// The fast tier's share of all accesses so far; `None` while too little is known.
    pub hit_ratio: Option<Estimate>,
    /// Processor time of the programs while they were followed.
    pub running: Nanos,
    /// Time that the programs lost to being observed.
    pub observing: Nanos,
    /// Processor time of the engine's thread and of agents, moves included.
    pub engine: Nanos,
    /// Processor time of the engine for moves.
    pub moving: Nanos,
    /// Memory of the engine for page numbers, residency and heat.
    pub memory: Bytes,
    /// Hit ratio by fast pages.
    pub curve: Curve,
    pub processes: Vec<ProcessReport>,
    /// Memory in swap.
    pub swapped: Bytes,
    /// How much of it zswap holds, or less; `None` if that is unknown.
    pub zswapped: Option<Bytes>,
    /// The memory by address, as of the last report that was asked for it ([`Share::watch`]).
    pub mappings: Arc<Vec<MappingStatus>>,
    /// Names of the access sources.
    pub sources: Vec<&'static str>,
    /// Problems so far, each once.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierReport {
    pub latency: Nanos,
    /// Capacity available to the programs.
    pub capacity: Bytes,
    pub resident: Bytes,
    /// Accesses served, counted by the hardware or summed over samples.
    pub hits: u64,
}

/// One followed process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    pub process: Pid,
    /// Bytes on each tier, fastest first.
    pub resident: Vec<Bytes>,
    /// Bytes in swap.
    pub swapped: Bytes,
    /// Sampled accesses to its memory; old ones count for less.
    pub accesses: u64,
}

impl HostReport {
    /// Returns the state as that of a group without a name, with all programs unnamed.
    pub fn group(&self, policy: &str) -> GroupStatus {
        let program = |process: &ProcessReport| ProgramStatus {
            pid: process.process.0,
            resident_bytes: process.resident.clone(),
            swapped_bytes: process.swapped,
            accesses: process.accesses,
            ..ProgramStatus::default()
        };
        GroupStatus {
            policy: policy.to_owned(),
            weight: 1.0,
            resident_bytes: self.tiers.iter().map(|tier| tier.resident).collect(),
            swapped_bytes: self.swapped,
            zswapped_bytes: self.zswapped,
            hits: self.tiers.iter().map(|tier| tier.hits).collect(),
            hit_ratio: self.hit_ratio.map(|known| known.value),
            hit_ratio_bounds: self.hit_ratio.map(Estimate::bounds),
            traffic: self.traffic,
            samples: self.samples,
            lost: self.lost,
            running_ns: self.running,
            observing_ns: self.observing,
            engine_ns: self.engine,
            saved_ns: Nanos((self.saved_since(None).max(0.0) * 1e9) as u64),
            engine_bytes: self.memory,
            sources: self.sources.iter().map(|&name| name.to_owned()).collect(),
            programs: self.processes.iter().map(program).collect(),
            warnings: self.warnings.clone(),
            ..GroupStatus::default()
        }
    }

    /// Returns the seconds that tiering has saved the programs since an earlier report, or the start, against
    /// as much fast memory filled at random: a bound, as if they only waited for each access in turn.
    pub fn saved_since(&self, before: Option<&Self>) -> f64 {
        let then = |tier: usize| before.and_then(|before| Some(before.tiers.get(tier)?.hits)).unwrap_or(0);
        let hits = |tier: usize| self.tiers[tier].hits.saturating_sub(then(tier)) as f64;
        let latency = |tier: usize| self.tiers[tier].latency.0.max(1) as f64;
        let tiers = || 0..self.tiers.len();
        let mean = |weight: &dyn Fn(usize) -> f64| {
            let all: f64 = tiers().map(weight).sum();
            (all > 0.0).then(|| tiers().map(|tier| weight(tier) * latency(tier)).sum::<f64>() / all)
        };
        let resident = |tier: usize| self.tiers[tier].resident.0 as f64;
        let (Some(waited), Some(at_random)) = (mean(&hits), mean(&resident)) else { return 0.0 };
        let running = (self.running - before.map_or(Nanos(0), |before| before.running)).as_seconds();
        running * (at_random / waited - 1.0)
    }
}

impl Share {
    pub fn new(fast: Bytes) -> Self {
        let watched = AtomicBool::new(false);
        Self(Arc::new(Shared { fast: AtomicU64::new(fast.0), watched, report: Mutex::default() }))
    }

    /// Has the next report look at the memory by address, which costs a walk over all pages.
    pub fn watch(&self) {
        self.0.watched.store(true, Relaxed);
    }

    pub(super) fn take_watched(&self) -> bool {
        self.0.watched.swap(false, Relaxed)
    }

    pub fn fast(&self) -> Bytes {
        Bytes(self.0.fast.load(Relaxed))
    }

    /// Sets the fast memory; the host demotes what exceeds it within a second.
    pub fn set_fast(&self, fast: Bytes) {
        self.0.fast.store(fast.0, Relaxed);
    }

    /// Returns the latest report; `None` until the host's first.
    pub fn report(&self) -> Option<Arc<HostReport>> {
        self.0.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_report(&self, report: HostReport) {
        *self.0.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(report));
    }
}
