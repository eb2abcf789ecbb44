//! Checks of this process's capabilities.

use super::facts::Facts;
use super::finding::{Area, Finding, Remedy};
use super::rights::Capability;

struct Row {
    name: &'static str,
    capability: Capability,
    /// Loss without it; empty where Isotherm does not need it.
    lost: &'static str,
    /// Whether `setcap` can give it to the program alone, so that root is not needed.
    grant: bool,
}

const fn row(name: &'static str, capability: Capability, grant: bool, lost: &'static str) -> Row {
    Row { name, capability, lost, grant }
}

/// From `capabilities(7)`, `perf_event_open(2)`, `move_pages(2)`, `userfaultfd(2)` and
/// `Documentation/admin-guide/mm/pagemap.rst`.
#[rustfmt::skip]
const ROWS: [Row; 8] = [
    row("cap-perfmon", Capability::Perfmon, true,
        "counters of the memory controllers, and PMU samples where perf_event_paranoid forbids them"),
    row("cap-sys-nice", Capability::SysNice, true, "moving pages that several processes share"),
    row("cap-sys-ptrace", Capability::SysPtrace, true, "following programs of other users"),
    row("cap-sys-resource", Capability::SysResource, true, "limits above the hard ones, for many threads at once"),
    row("cap-sys-admin", Capability::SysAdmin, false, "frame numbers of pages, and with them idle page tracking"),
    row("cap-dac-override", Capability::DacOverride, false,
        "root's files: reclaim of nodes, demotion_enabled, accessed bits of other users' programs"),
    row("cap-bpf", Capability::Bpf, false, ""),
    row("cap-checkpoint-restore", Capability::CheckpointRestore, false, ""),
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let setcap = setcap(facts);
    ROWS.iter().map(|row| finding(facts, row, &setcap)).collect()
}

/// Returns one command for all obtainable capabilities, as each use of `setcap` replaces the last one's.
fn setcap(facts: &Facts<'_>) -> Remedy {
    let obtainable = |row: &&Row| row.grant && facts.rights.can_have(row.capability);
    let names: Vec<String> = ROWS.iter().filter(obtainable).map(|row| row.name.replace('-', "_")).collect();
    facts.grant(Remedy::Command(format!("setcap {}+ep $(command -v isotherm)", names.join(","))))
}

fn finding(facts: &Facts<'_>, row: &Row, setcap: &Remedy) -> Finding {
    let (topic, rights) = (Area::Capabilities.topic(row.name), &facts.rights);
    if let Some(error) = &facts.rights_error {
        return topic.unknown(error);
    }
    if row.lost.is_empty() {
        let held = if rights.has(row.capability) { "held" } else { "not held" };
        return topic.ok(format!("{held}; Isotherm does not need it"));
    }
    if rights.holds(row.capability) {
        return topic.ok("held");
    }
    let meaning =
        if rights.has(row.capability) { "held only inside this user namespace" } else { "not held" };
    let command = if row.grant { setcap.clone() } else { Remedy::as_root() };
    let name = row.name.trim_start_matches("cap-").replace('-', "_").to_uppercase();
    let remedy = facts.give(row.capability, &name, command);
    topic.missing(meaning, row.lost, remedy)
}
