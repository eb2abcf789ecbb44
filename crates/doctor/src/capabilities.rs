//! Defines the findings about capabilities.

use super::facts::Facts;
use super::finding::{Area, Finding, Remedy};
use super::rights::Capability;

struct Row {
    name: &'static str,
    capability: Capability,
    /// What it is needed for; `None` where nothing here needs it.
    need: Option<Need>,
}

struct Need {
    lost: &'static str,
    /// Whether it can be given to the program alone, or asks for root.
    grant: bool,
}

const fn row(name: &'static str, capability: Capability, grant: bool, lost: &'static str) -> Row {
    Row { name, capability, need: Some(Need { lost, grant }) }
}

/// What the capabilities permit, from `capabilities(7)`, `perf_event_open(2)`, `move_pages(2)`, `userfaultfd(2)` and
/// `Documentation/admin-guide/mm/pagemap.rst`.
const ROWS: [Row; 8] = [
    row(
        "cap-perfmon",
        Capability::Perfmon,
        true,
        "counters of the memory controllers, and PMU samples where perf_event_paranoid forbids them",
    ),
    row("cap-sys-nice", Capability::SysNice, true, "moving pages that several processes share"),
    row("cap-sys-ptrace", Capability::SysPtrace, true, "following programs of other users"),
    row(
        "cap-sys-resource",
        Capability::SysResource,
        true,
        "limits above the hard ones, for many threads at once",
    ),
    row(
        "cap-sys-admin",
        Capability::SysAdmin,
        false,
        "frame numbers of pages, and with them idle page tracking",
    ),
    row(
        "cap-dac-override",
        Capability::DacOverride,
        false,
        "root's files: reclaim of nodes, demotion_enabled, accessed bits of other users' programs",
    ),
    Row { name: "cap-bpf", capability: Capability::Bpf, need: None },
    Row { name: "cap-checkpoint-restore", capability: Capability::CheckpointRestore, need: None },
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let setcap = setcap(facts);
    ROWS.iter().map(|row| finding(facts, row, &setcap)).collect()
}

/// One command for all that can be had: each use of `setcap` takes away what the one before gave.
fn setcap(facts: &Facts<'_>) -> Remedy {
    let wanted = |row: &&Row| is_granted_alone(row) && facts.rights.can_have(row.capability);
    let names: Vec<String> = ROWS.iter().filter(wanted).map(|row| row.name.replace('-', "_")).collect();
    facts.grant(format!("setcap {}+ep $(command -v isotherm)", names.join(",")))
}

fn is_granted_alone(row: &Row) -> bool {
    row.need.as_ref().is_some_and(|need| need.grant)
}

/// What gives the process the capability.
fn remedy(facts: &Facts<'_>, row: &Row, setcap: &Remedy) -> Remedy {
    if !facts.rights.can_have(row.capability) {
        let name = row.name.trim_start_matches("cap-").replace('-', "_").to_uppercase();
        return Remedy::advice(format!(
            "the bounding set excludes it: start the container with --cap-add={name}"
        ));
    }
    if is_granted_alone(row) {
        setcap.clone()
    } else {
        facts.grant("sudo isotherm run -- PROGRAM".to_owned())
    }
}

fn finding(facts: &Facts<'_>, row: &Row, setcap: &Remedy) -> Finding {
    let (area, rights) = (Area::Capabilities, &facts.rights);
    if let Some(error) = &facts.rights_error {
        return Finding::unknown(area, row.name, error);
    }
    let Some(need) = &row.need else {
        let held = if rights.has(row.capability) { "held" } else { "not held" };
        return Finding::ok(area, row.name, format!("{held}, and nothing here needs it"));
    };
    if rights.holds(row.capability) {
        return Finding::ok(area, row.name, "held");
    }
    let meaning =
        if rights.has(row.capability) { "held inside of this user namespace alone" } else { "not held" };
    Finding::missing(area, row.name, meaning, need.lost, remedy(facts, row, setcap))
}
