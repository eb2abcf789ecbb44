//! The result file.

use std::path::Path;

use isotherm_core::{Counters, TierCounters};
use isotherm_virtual_pmu::Snapshot;
use serde::Serialize;

use crate::accounts::{Account, Accounts};
use crate::device::Uses;
use crate::history::History;
use crate::options::Options;

const MAX_PHASES: usize = 256;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Version of the format; grows with every change.
    format: u32,
    plugin: &'static str,
    machine: String,
    cache: CacheShape,
    tiers: Vec<Tier>,
    /// Whether the cost model knows dependences between misses; if not, all of a window overlap.
    dependence: bool,
    dropped_phases: u64,
    phases: Vec<Phase>,
}

#[derive(Debug, Serialize)]
struct CacheShape {
    bytes: u64,
    sets: u32,
    ways: u32,
}

#[derive(Debug, Serialize)]
struct Tier {
    name: String,
    latency_ns: u64,
    /// Physical addresses; the end is the first address after the range.
    ranges: Vec<[u64; 2]>,
}

/// Samples of the virtual PMU; the lab's `Samples` describes the fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Samples {
    pub(crate) taken: u64,
    pub(crate) lost: u64,
    pub(crate) unresolved: u64,
}

/// Counts from one epoch command to the next. Phase 0 comes before the first.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Phase {
    pub(crate) epoch: u64,
    modelled_ns: u64,
    /// Accesses of user-mode code that is followed.
    pub(crate) accesses: u64,
    /// Instructions of user-mode code that is followed.
    pub(crate) instructions: u64,
    pub(crate) elsewhere: u64,
    /// Fraction of the misses that the first tier served; 0 without misses.
    hit_ratio: f64,
    tiers: Vec<TierCounters>,
    pub(crate) samples: Samples,
    pub(crate) device: Option<Uses>,
    processes: Vec<Account>,
    history: History,
}

impl Phase {
    pub(crate) fn begin(epoch: u64) -> Self {
        Self { epoch, ..Self::default() }
    }

    pub(crate) fn finish(
        self,
        snapshot: &Snapshot,
        counters: &Counters,
        accounts: &Accounts,
        history: History,
    ) -> Self {
        let misses = |tier: &TierCounters| tier.load_misses + tier.store_misses;
        let all: u64 = counters.tiers.iter().map(misses).sum();
        let fast = counters.tiers.first().map_or(0, misses);
        Self {
            modelled_ns: snapshot.time,
            hit_ratio: if all == 0 { 0.0 } else { fast as f64 / all as f64 },
            tiers: counters.tiers.clone(),
            processes: accounts.used().cloned().collect(),
            history,
            ..self
        }
    }
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        let tier = |(index, tier): (usize, &isotherm_machine::TierProfile)| Tier {
            name: tier.name.clone(),
            latency_ns: tier.latency.0,
            ranges: options.ranges.of(index as u8).map(|range| [range.start, range.end]).collect(),
        };
        let geometry = options.geometry;
        Self {
            format: 1,
            plugin: env!("CARGO_PKG_VERSION"),
            machine: options.profile.name.clone(),
            cache: CacheShape { bytes: geometry.size().0, sets: geometry.sets, ways: geometry.ways },
            tiers: options.profile.tiers.iter().enumerate().map(tier).collect(),
            dependence: false,
            dropped_phases: 0,
            phases: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, phase: Phase) {
        if self.phases.len() == MAX_PHASES {
            self.phases.remove(0);
            self.dropped_phases += 1;
        }
        self.phases.push(phase);
    }

    /// Writes the file with all phases and the current one. Replaces the file as a whole.
    pub(crate) fn write(&mut self, path: &Path, running: Phase) {
        self.phases.push(running);
        let written = serde_json::to_vec(self).map_err(Into::into).and_then(|json| replace(path, &json));
        self.phases.pop();
        if let Err(error) = written {
            eprintln!("isotherm-lab-plugin: {}: {error}", path.display());
        }
    }
}

fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, content)?;
    std::fs::rename(&beside, path)
}
