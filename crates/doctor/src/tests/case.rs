//! Defines one way in which a machine can lack something, and the check of what the doctor says of it.

use super::machine::findings;
use crate::{Findings, Probes, Remedy, State};

pub(super) const UNPRIVILEGED: &str =
    "file proc/self/status CapEff: 0000000000000000\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 0\\nSeccomp: 0";

/// The machine's changes, the finding, its state, part of its meaning or of what is lost, the remedy's text.
pub(super) type Case = (&'static str, &'static str, State, &'static str, &'static str);

fn text(remedy: Option<&Remedy>) -> &str {
    match remedy {
        None => "",
        Some(
            Remedy::Command(text)
            | Remedy::KernelOption(text)
            | Remedy::BootParameter(text)
            | Remedy::Advice(text),
        ) => text,
    }
}

pub(super) fn check(found: &Findings, (changes, title, state, part, remedy): Case) {
    let finding = found.find(title).unwrap_or_else(|| panic!("{changes}: no finding {title}"));
    assert_eq!(finding.state, state, "{changes}: {finding:#?}");
    let said = format!("{} / {}", finding.meaning, finding.lost.as_deref().unwrap_or(""));
    assert!(said.contains(part), "{changes}: {said}");
    assert_eq!(text(finding.remedy.as_ref()), remedy, "{changes}");
}

pub(super) fn check_all(probes: &Probes, cases: &[Case]) {
    cases.iter().for_each(|&case| check(&findings(case.0, probes), case));
}
