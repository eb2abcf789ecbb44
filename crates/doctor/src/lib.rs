//! Examines what a machine offers for memory tiering, what it lacks and how to fix that. It changes nothing.
//!
//! [`examine`] reads `/proc` and `/sys` and tries harmless system calls, [`self_test()`] lets access sources
//! watch a loop whose accesses are known, and [`calibrate`] measures tiers.
//!
//! ```
//! use std::path::Path;
//!
//! use isotherm_doctor::{Probes, State, examine};
//!
//! // Nothing can be read here, which is a finding and no error.
//! let findings = examine(Path::new("/nonexistent"), &Probes::default());
//! let kernel = findings.find("kernel").expect("a finding");
//! assert_eq!(kernel.state, State::Unknown);
//! assert!(kernel.meaning.ends_with("No such file or directory (os error 2)"));
//! assert!(findings.to_string().starts_with("memory\n  unknown  kernel: "));
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an internal crate: documented where a name does not say it")]

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
use finding::settled;
pub use finding::{Area, Finding, Remedy, State};
pub use known_loop::{BUFFER_BYTES, known_loop};
pub use policies::{Lack, Offered, PolicySupport};
pub use probes::{Probe, Probes};
pub use self_test::{SelfTest, self_test};

/// Findings of an examination, shown as plain text of 80 columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Findings in the order of [`Area::ALL`].
    pub findings: Vec<Finding>,
    /// Judgements of policies, filled by [`Self::judge`].
    pub policies: Vec<PolicySupport>,
    /// The answer in one line, filled by [`Self::judge`].
    pub verdict: String,
}

/// Examines the machine below `root`, `/` for the live one, whose kernel answered the `probes`. Anything that
/// cannot be read becomes a finding in the state [`State::Unknown`], with the reason.
pub fn examine(root: &Path, probes: &Probes) -> Findings {
    let facts = Facts::gather(root, probes);
    let (memory, topology) = memory::examine(root, &facts);
    let mut findings = vec![settled(kernel::examine(&facts))];
    findings.extend(memory);
    findings.extend(reclaim::examine(&facts, topology.as_ref()));
    findings.extend(pmu::examine(root, &facts));
    findings.extend(sources::examine(&facts));
    findings.extend(sysctls::examine(&facts));
    findings.extend(capabilities::examine(&facts));
    findings.extend(confinement::examine(&facts));
    findings.extend(conflicts::examine(&facts));
    Findings { findings, ..Findings::default() }
}

impl Findings {
    pub fn live() -> Self {
        examine(Path::new("/"), &Probes::live())
    }

    /// Finds by [title](Finding::title).
    pub fn find(&self, title: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.title() == title)
    }

    /// Adds the findings of self-tests.
    pub fn add_self_tests(&mut self, tests: &[SelfTest]) {
        self.findings.extend(tests.iter().map(SelfTest::finding));
        self.findings.sort_by_key(|finding| finding.area);
    }

    /// Judges each policy, given by its name and the signals it needs, on a host that offers `offered`.
    pub fn judge<'a>(&mut self, policies: impl IntoIterator<Item = (&'a str, Signals)>, offered: &Offered) {
        let judge = |(policy, needs)| PolicySupport::judge(policy, needs, offered, &self.findings);
        self.policies = policies.into_iter().map(judge).collect();
        self.verdict = self.verdict(offered.shadow);
    }

    /// Says whether Isotherm can tier here, and what to do first.
    fn verdict(&self, shadow: bool) -> String {
        let usable = self.policies.iter().filter(|policy| policy.usable).count();
        if usable == 0 {
            return "no policy can run here: mend what is missing above".into();
        }
        let how = if shadow { "shadow mode only" } else { "it can move pages" };
        let in_the_way = |finding: &&Finding| {
            finding.area == Area::Conflicts && ![State::Ok, State::Unknown].contains(&finding.state)
        };
        let conflicts = match self.findings.iter().filter(in_the_way).count() {
            0 => String::new(),
            1 => "; first end 1 conflict".into(),
            many => format!("; first end {many} conflicts"),
        };
        format!("{how}: {usable} of {} policies can run{conflicts}", self.policies.len())
    }
}
