//! Defines what each policy can use here: which signals it lacks, and which findings say how to get them.

use isotherm_core::{Signal, Signals};
use serde::Serialize;

use super::finding::{Finding, State};

/// A signal that a policy needs and that nothing here offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// In words, as [`Signal`] prints itself.
    pub signal: String,
    /// Titles of the findings that say how to get it, best first; empty where this machine cannot offer it at all.
    pub mended_by: Vec<String>,
}

/// What a host offers to policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// All of it.
    pub signals: Signals,
    /// What each source that works tells, by its name as in `--source`, the best first.
    pub sources: Vec<(&'static str, Signals)>,
}

impl Offered {
    /// The sources that a run takes for these needs: from the best on, each that tells something still missing.
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

/// Whether a policy can run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicySupport {
    /// The policy.
    pub policy: String,
    /// The signals that it needs, in words.
    pub needs: Vec<String>,
    /// The sources that it would learn accesses from, as `--source` names them.
    pub sources: Vec<String>,
    /// Whether all that it needs is offered.
    pub usable: bool,
    /// What it lacks.
    pub lacks: Vec<Lack>,
}

impl PolicySupport {
    /// Judges a policy that needs `needs` on a host that offers `offered`, with what the doctor has found.
    pub fn judge(policy: &str, needs: Signals, offered: &Offered, findings: &[Finding]) -> Self {
        let lack = |signal: Signal| {
            let lacking = |name: &str| -> Vec<&Finding> {
                findings.iter().filter(|finding| finding.name == name && finding.state != State::Ok).collect()
            };
            let mended_by =
                mending(signal).iter().flat_map(|name| lacking(name)).map(Finding::title).collect();
            Lack { signal: signal.to_string(), mended_by }
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

/// The names of findings that provide a signal, best first.
const fn mending(signal: Signal) -> &'static [&'static str] {
    match signal {
        Signal::LoadSamples | Signal::StoreSamples => {
            &["source-pmu", "source-hint-faults", "source-idle-pages", "source-accessed-bits", "self-test"]
        }
        Signal::SampleLatency | Signal::TierHits => &["source-pmu", "perf-event-paranoid"],
        Signal::TierStalls => &["source-pmu", "perf-event-paranoid", "cap-perfmon"],
        Signal::KernelReclaim => &["node-reclaim", "cgroup-reclaim", "demotion", "memory-tiers"],
        Signal::HintFaults => &["source-hint-faults", "self-test"],
        Signal::AccessedBits => &["source-accessed-bits", "source-idle-pages", "self-test"],
        // Nomad is a patch: no kernel that is released has it. Retire latency is not read from samples yet.
        Signal::TransactionalMoves | Signal::ExposedLatency => &[],
        // A device is a card: nothing that can be switched on provides one, but one that is there may be closed.
        Signal::DeviceHotPages => &["source-device"],
        Signal::DeviceReports => &[],
    }
}
