//! The share of one host among several on a machine, and what the host tells about itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use isotherm_core::live_result::{Estimate, Traffic};
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
    /// Sampled accesses to its memory; old ones count for less.
    pub accesses: u64,
}

impl Share {
    pub fn new(fast: Bytes) -> Self {
        Self(Arc::new(Shared { fast: AtomicU64::new(fast.0), report: Mutex::default() }))
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
