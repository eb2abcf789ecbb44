//! Cases of a machine that lacks something, and the check of the finding.

use super::machine::findings;
use crate::{Findings, Probes, Remedy, State};

/// Error numbers of `asm-generic/errno.h`.
pub(super) const EPERM: i32 = 1;
pub(super) const EACCES: i32 = 13;
pub(super) const ENOSYS: i32 = 38;

pub(super) const UNPRIVILEGED: &str =
    "file proc/self/status CapEff: 0000000000000000\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 0\\nSeccomp: 0";

/// Changes of the machine, title of the finding, its state, part of its meaning or loss, text of its remedy.
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
