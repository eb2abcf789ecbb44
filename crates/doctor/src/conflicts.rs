//! Defines the findings about others that move pages: NUMA balancing, DAMON, daemons. They are looked at, never touched.

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Finding, Remedy};
use super::sysctls;

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Modules that run a DAMON of their own (`Documentation/admin-guide/mm/damon`).
const DAMON_MODULES: [&str; 2] = ["damon_reclaim", "damon_lru_sort"];
/// Schemes of DAMON that move pages, or take them out of memory.
const MOVING: [&str; 6] = ["pageout", "cold", "migrate_hot", "migrate_cold", "lru_prio", "lru_deprio"];
/// Programs and kernel threads that tier or balance memory: whole names, or beginnings where a `*` follows.
const CONFLICTS: [&str; 9] =
    ["memtierd", "damo", "numad", "memtis*", "ksamplingd", "hmem*", "hemem*", "tpp*", "kpromote*"];
/// Arguments of an interpreter that are looked at for a conflict's name.
const ARGUMENTS: usize = 3;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![numa_balancing(facts)];
    findings.extend(damon(facts));
    findings.extend(damon_modules(facts));
    findings.extend(processes(facts));
    findings
}

fn numa_balancing(facts: &Facts<'_>) -> Finding {
    let (area, name, key) = (Area::Conflicts, "numa-balancing", "kernel.numa_balancing");
    match sysctls::value(facts, key) {
        Err(error) => Finding::unknown(area, name, error),
        Ok(None) if !facts.tree.path("/proc/sys/kernel").exists() => {
            Finding::unknown(area, name, "/proc/sys/kernel is not there")
        }
        Ok(None) => Finding::ok(area, name, "the kernel has none"),
        Ok(Some(0)) => Finding::ok(area, name, format!("{key} is 0")),
        Ok(Some(value)) => Finding::warning(
            area,
            name,
            format!("{key} is {value}: the kernel moves pages too"),
            "placement: pages do not stay where a policy put them; and time, to the kernel's hint faults",
            Remedy::command(format!("sysctl -w {key}=0")),
        ),
    }
}

fn damon(facts: &Facts<'_>) -> Vec<Finding> {
    let (area, name) = (Area::Conflicts, "damon");
    if !facts.sys_is_visible() {
        return vec![Finding::unknown(area, name, HIDDEN)];
    }
    let threads = match facts.tree.numbered(KDAMONDS, "") {
        Err(error) => return vec![Finding::unknown(area, name, error)],
        Ok(threads) => threads,
    };
    let findings: Vec<Finding> = threads.into_iter().filter_map(|thread| kdamond(facts, thread)).collect();
    if !findings.is_empty() {
        return findings;
    }
    let meaning = if facts.tree.path(KDAMONDS).exists() {
        "the kernel has it, and none runs"
    } else {
        "the kernel has none"
    };
    vec![Finding::ok(area, name, meaning)]
}

/// What a running kdamond does; `None` for one that stands still.
fn kdamond(facts: &Facts<'_>, thread: u32) -> Option<Finding> {
    let (area, name, subject) = (Area::Conflicts, "damon", format!("kdamond{thread}"));
    let state = match facts.tree.text(&format!("{KDAMONDS}/{thread}/state")) {
        Ok(state) => state,
        Err(error) => return Some(Finding::unknown(area, name, error).about(subject)),
    };
    if state != "on" {
        return None;
    }
    let moving: Vec<String> =
        actions(facts, thread).into_iter().filter(|action| MOVING.contains(&action.as_str())).collect();
    if moving.is_empty() {
        return Some(Finding::ok(area, name, "it runs and moves nothing").about(subject));
    }
    let lost = "placement: pages do not stay where a policy put them; and accessed bits, which it clears";
    let remedy = Remedy::advice("ask its owner to stop it; Isotherm never touches a DAMON that runs");
    let finding =
        Finding::warning(area, name, format!("it runs with the scheme {}", moving.join(", ")), lost, remedy);
    Some(finding.about(subject))
}

/// The actions of a kdamond's schemes; those that cannot be read are left out.
fn actions(facts: &Facts<'_>, thread: u32) -> Vec<String> {
    let mut actions = Vec::new();
    let contexts = format!("{KDAMONDS}/{thread}/contexts");
    for context in facts.tree.numbered(&contexts, "").unwrap_or_default() {
        let schemes = format!("{contexts}/{context}/schemes");
        for scheme in facts.tree.numbered(&schemes, "").unwrap_or_default() {
            actions.extend(facts.tree.text(&format!("{schemes}/{scheme}/action")));
        }
    }
    actions
}

fn damon_modules(facts: &Facts<'_>) -> Vec<Finding> {
    let enabled = |module: &str| {
        facts.tree.text(&format!("/sys/module/{module}/parameters/enabled")).is_ok_and(|text| text == "Y")
    };
    let finding = |module: &str| {
        let remedy = Remedy::command(format!("echo N > /sys/module/{module}/parameters/enabled"));
        let lost = "placement: pages do not stay where a policy put them";
        Finding::warning(Area::Conflicts, "damon-module", "it is switched on", lost, remedy).about(module)
    };
    DAMON_MODULES.iter().filter(|module| enabled(module)).map(|module| finding(module)).collect()
}

fn processes(facts: &Facts<'_>) -> Vec<Finding> {
    let (area, name) = (Area::Conflicts, "conflict-process");
    let pids = match facts.tree.numbered("/proc", "") {
        Ok(pids) if !pids.is_empty() => pids,
        Ok(_) => return vec![Finding::unknown(area, name, "/proc shows no process")],
        Err(error) => return vec![Finding::unknown(area, name, error)],
    };
    let conflicts: Vec<Finding> = pids.into_iter().filter_map(|pid| conflict(facts, pid)).collect();
    if conflicts.is_empty() {
        vec![Finding::ok(area, name, "none among the processes that are visible")]
    } else {
        conflicts
    }
}

fn conflict(facts: &Facts<'_>, pid: u32) -> Option<Finding> {
    let found = names(facts, pid).into_iter().find(|name| is_conflicting(name))?;
    let lost = "placement: pages do not stay where a policy put them";
    let remedy = Remedy::command(format!("kill {pid}"));
    let finding = Finding::warning(
        Area::Conflicts,
        "conflict-process",
        format!("process {pid}, {found}, tiers memory too, by its name"),
        lost,
        remedy,
    );
    Some(finding.about(pid.to_string()))
}

/// What a process is called: by the kernel, and by its first arguments, as scripts run under an interpreter's name.
fn names(facts: &Facts<'_>, pid: u32) -> Vec<String> {
    // A process that has ended meanwhile has no names.
    let mut names: Vec<String> = facts.tree.text(&format!("/proc/{pid}/comm")).into_iter().collect();
    let arguments = facts.tree.text(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = |argument: &str| argument.rsplit('/').next().unwrap_or(argument).to_owned();
    let mut arguments = arguments.split('\0');
    let first = arguments.next().map(program).unwrap_or_default();
    let interpreted = ["python", "perl", "sh", "bash", "node"].iter().any(|name| first.starts_with(name));
    names.push(first);
    if interpreted {
        names.extend(arguments.take(ARGUMENTS).filter(|argument| !argument.starts_with('-')).map(program));
    }
    names
}

fn is_conflicting(name: &str) -> bool {
    CONFLICTS.iter().any(|conflict| match conflict.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *conflict || name.strip_suffix(".py") == Some(conflict),
    })
}
