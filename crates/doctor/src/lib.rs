//! Says what this machine offers for tiering, what it lacks, and how to fix that; it changes nothing.

#![forbid(unsafe_code)]

use std::path::Path;

use isotherm_core::Signals;
use serde::Serialize;

pub mod calibrate;
mod capabilities;
mod confinement;
mod conflicts;
mod display;
mod facts;
mod finding;
mod kernel;
mod known_loop;
mod memory;
mod pmu;
mod policies;
mod probes;
mod reclaim;
mod rights;
mod self_test;
mod sources;
mod sysctls;
#[cfg(test)]
mod tests;

use facts::Facts;
pub use finding::{Area, Finding, Remedy, State};
pub use known_loop::{BUFFER_BYTES, known_loop};
pub use policies::{Lack, Offered, PolicySupport};
pub use probes::{Probe, Probes};
pub use self_test::{SelfTest, self_test};

/// What the doctor has found. Printed, it is plain text of 80 columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// In the order of [`Area::ALL`].
    pub findings: Vec<Finding>,
    /// What each policy can use, once [`Self::judge`] was asked.
    pub policies: Vec<PolicySupport>,
}

/// Examines the machine below `root`, `/` for the live one, whose kernel answered the `probes`.
///
/// Never fails: what cannot be read is a finding in the state [`State::Unknown`], with the reason.
pub fn examine(root: &Path, probes: &Probes) -> Findings {
    let facts = Facts::gather(root, probes);
    let (memory, topology) = memory::examine(root, &facts);
    let mut findings = vec![kernel::examine(&facts)];
    findings.extend(memory);
    findings.extend(reclaim::examine(&facts, topology.as_ref()));
    findings.extend(pmu::examine(root, &facts));
    findings.extend(sources::examine(&facts));
    findings.extend(sysctls::examine(&facts));
    findings.extend(capabilities::examine(&facts));
    findings.extend(confinement::examine(&facts));
    findings.extend(conflicts::examine(&facts));
    Findings { findings, policies: Vec::new() }
}

impl Findings {
    /// Examines this machine.
    pub fn live() -> Self {
        examine(Path::new("/"), &Probes::live())
    }

    /// The finding of that name, and of that subject where it has one.
    pub fn find(&self, title: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.title() == title)
    }

    /// Takes in what the self-tests of sources showed.
    pub fn add_self_tests(&mut self, tests: &[SelfTest]) {
        self.findings.extend(tests.iter().map(SelfTest::finding));
        self.findings.sort_by_key(|finding| finding.area);
    }

    /// Judges each policy, given its name and what it needs, on a host that offers `offered`.
    pub fn judge<'a>(&mut self, policies: impl IntoIterator<Item = (&'a str, Signals)>, offered: &Offered) {
        let judged = policies
            .into_iter()
            .map(|(policy, needs)| PolicySupport::judge(policy, needs, offered, &self.findings));
        self.policies = judged.collect();
    }
}
