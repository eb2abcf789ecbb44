//! Policies that can run here: the signals that each lacks, and the findings that tell how to get them.

use isotherm_core::{Signal, Signals};
use serde::Serialize;

use super::finding::{Finding, State};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lack {
    pub signal: String,
    /// Titles of findings that tell how to get it, best first; empty where this machine cannot offer it.
    pub mended_by: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    pub signals: Signals,
    /// Whether nothing can move, because there is no slow tier.
    pub shadow: bool,
    /// Signals of each working source, by its name in `--source`, best first.
    pub sources: Vec<(&'static str, Signals)>,
}

impl Offered {
    /// Returns the sources that a run takes for these needs: best first, each with a signal still missing.
    fn sources_for(&self, needs: Signals) -> Vec<String> {
        let mut told = Signals::NONE;
        let mut taken = Vec::new();
        for &(name, tells) in &self.sources {
            if needs.missing(told).any(|signal| tells.has(signal)) {
                told = needs.missing(told).filter(|&signal| tells.has(signal)).fold(told, Signals::with);
                taken.push(name.to_owned());
            }
        }
        taken
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicySupport {
    pub policy: String,
    pub needs: Vec<String>,
    /// As `--source` names them.
    pub sources: Vec<String>,
    pub usable: bool,
    pub lacks: Vec<Lack>,
}

impl PolicySupport {
    pub fn judge(policy: &str, needs: Signals, offered: &Offered, findings: &[Finding]) -> Self {
        let lack = |signal: Signal| {
            let lacking = |name| {
                findings.iter().filter(move |finding| finding.name == name && finding.state != State::Ok)
            };
            let mended_by = providers(signal).iter().copied().flat_map(lacking).map(Finding::title);
            Lack { signal: signal.to_string(), mended_by: mended_by.collect() }
        };
        let lacks: Vec<Lack> = needs.missing(offered.signals).map(lack).collect();
        Self {
            policy: policy.to_owned(),
            needs: needs.missing(Signals::NONE).map(|signal| signal.to_string()).collect(),
            sources: offered.sources_for(needs),
            usable: lacks.is_empty(),
            lacks,
        }
    }
}

/// Returns the names of findings about what provides a signal, best first.
const fn providers(signal: Signal) -> &'static [&'static str] {
    match signal {
        Signal::LoadSamples | Signal::StoreSamples => {
            &["source-pmu", "source-hint-faults", "source-idle-pages", "source-accessed-bits", "self-test"]
        }
        Signal::SampleLatency | Signal::TierHits => &["source-pmu", "perf-event-paranoid"],
        Signal::TierStalls => &["source-pmu", "perf-event-paranoid", "cap-perfmon"],
        Signal::KernelReclaim => &["node-reclaim", "cgroup-reclaim", "demotion", "memory-tiers"],
        Signal::HintFaults => &["source-hint-faults", "self-test"],
        Signal::AccessedBits => &["source-accessed-bits", "source-idle-pages", "self-test"],
        // No released kernel moves pages in transactions, and samples do not give retire latencies yet.
        Signal::TransactionalMoves | Signal::ExposedLatency => &[],
        // No setting provides a device, but one that is present may be closed.
        Signal::DeviceHotPages => &["source-device"],
        Signal::DeviceReports => &[],
    }
}
