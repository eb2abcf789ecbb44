//! Checks for other software that moves pages: NUMA balancing, DAMON, daemons. They are only observed.

use isotherm_linux::accessed_bits::KDAMONDS;
use isotherm_linux::process::ProcRoot;
use isotherm_linux::process::lock::{Tiered, tiered};

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Checked, Finding, Remedy, Topic, settled};
use super::sysctls;

const DAMON: Topic = Area::Conflicts.topic("damon");
const PROCESS: Topic = Area::Conflicts.topic("conflict-process");
const ENGINE: Topic = Area::Conflicts.topic("engine");
/// Modules that run their own DAMON (`Documentation/admin-guide/mm/damon`).
const DAMON_MODULES: [&str; 2] = ["damon_reclaim", "damon_lru_sort"];
const MOVING: [&str; 6] = ["pageout", "cold", "migrate_hot", "migrate_cold", "lru_prio", "lru_deprio"];
/// Programs and kernel threads that tier or balance memory: whole names, or prefixes ending in `*`.
const CONFLICTS: [&str; 9] =
    ["memtierd", "damo", "numad", "memtis*", "ksamplingd", "hmem*", "hemem*", "tpp*", "kpromote*"];
/// Arguments of an interpreter that are searched for a conflicting program's name.
const ARGUMENTS: usize = 3;
const PLACEMENT: &str = "placement: pages do not stay where a policy put them";

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![settled(numa_balancing(facts))];
    findings.extend(damon(facts).unwrap_or_else(|unknown| vec![*unknown]));
    findings.extend(damon_modules(facts));
    findings.extend(processes(facts).unwrap_or_else(|unknown| vec![*unknown]));
    findings.extend(engines(facts).unwrap_or_else(|unknown| vec![*unknown]));
    findings
}

/// Finds programs that Isotherm tiers already; `isotherm ps` lists them with their policies.
fn engines(facts: &Facts<'_>) -> Result<Vec<Finding>, Box<Finding>> {
    let tiered = ENGINE.known(tiered(&ProcRoot::at(facts.tree.path("/proc"))))?;
    let finding = |Tiered { process, engine }: &Tiered| {
        let by = if engine == process { "inside it".into() } else { format!("process {}", engine.0) };
        let lost = "fast memory: each engine plans with all that is free";
        let remedy = Remedy::Command(format!("kill -INT {}", engine.0));
        let meaning = format!("process {} is tiered by Isotherm, {by}", process.0);
        ENGINE.warning(meaning, lost, remedy).about(process.0.to_string())
    };
    let found: Vec<Finding> = tiered.iter().map(finding).collect();
    Ok(if found.is_empty() { vec![ENGINE.ok("Isotherm tiers no program that is visible")] } else { found })
}

fn numa_balancing(facts: &Facts<'_>) -> Checked {
    let (topic, key) = (Area::Conflicts.topic("numa-balancing"), "kernel.numa_balancing");
    Ok(match topic.known(sysctls::value(facts, key))? {
        None if !facts.tree.path("/proc/sys/kernel").exists() => {
            topic.unknown("there is no /proc/sys/kernel")
        }
        None => topic.ok("not in this kernel"),
        Some(0) => topic.ok(format!("{key} is 0")),
        Some(value) => topic.warning(
            format!("{key} is {value}: the kernel moves pages too"),
            format!("{PLACEMENT}; and time, to the kernel's hint faults"),
            Remedy::sysctl(key, 0),
        ),
    })
}

fn damon(facts: &Facts<'_>) -> Result<Vec<Finding>, Box<Finding>> {
    if !facts.sys_is_visible() {
        return Ok(vec![DAMON.unknown(HIDDEN)]);
    }
    let threads = DAMON.known(facts.tree.numbered(KDAMONDS, ""))?;
    let findings: Vec<Finding> = threads.into_iter().filter_map(|thread| kdamond(facts, thread)).collect();
    if !findings.is_empty() {
        return Ok(findings);
    }
    let exists = facts.tree.path(KDAMONDS).exists();
    Ok(vec![DAMON.ok(if exists { "no kdamond runs" } else { "not in this kernel" })])
}

fn kdamond(facts: &Facts<'_>, thread: u32) -> Option<Finding> {
    let finding = match facts.tree.text(&format!("{KDAMONDS}/{thread}/state")) {
        Err(error) => DAMON.unknown(error),
        Ok(state) if state != "on" => return None,
        Ok(_) => {
            let mut actions = actions(facts, thread);
            actions.retain(|action| MOVING.contains(&action.as_str()));
            if actions.is_empty() {
                DAMON.ok("it runs and moves nothing")
            } else {
                DAMON.warning(
                    format!("it runs with the scheme {}", actions.join(", ")),
                    format!("{PLACEMENT}; and accessed bits, which it clears"),
                    Remedy::advice("ask its owner to stop it; Isotherm never stops a running DAMON"),
                )
            }
        }
    };
    Some(finding.about(format!("kdamond{thread}")))
}

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
    let finding = |module: &str| {
        let file = format!("/sys/module/{module}/parameters/enabled");
        let enabled = facts.tree.text(&file).is_ok_and(|text| text == "Y");
        let remedy = Remedy::Command(format!("echo N > {file}"));
        let topic = Area::Conflicts.topic("damon-module");
        enabled.then(|| topic.warning("switched on", PLACEMENT, remedy).about(module))
    };
    DAMON_MODULES.into_iter().filter_map(finding).collect()
}

fn processes(facts: &Facts<'_>) -> Result<Vec<Finding>, Box<Finding>> {
    let pids = PROCESS.known(facts.tree.numbered("/proc", ""))?;
    if pids.is_empty() {
        return Ok(vec![PROCESS.unknown("/proc shows no process")]);
    }
    let conflicts: Vec<Finding> = pids.into_iter().filter_map(|pid| conflict(facts, pid)).collect();
    Ok(if conflicts.is_empty() { vec![PROCESS.ok("none among the visible processes")] } else { conflicts })
}

fn conflict(facts: &Facts<'_>, pid: u32) -> Option<Finding> {
    let found = names(facts, pid).into_iter().find(|name| is_conflicting(name))?;
    let meaning = format!("process {pid}, {found}, tiers memory too, judging by its name");
    let remedy = Remedy::Command(format!("kill {pid}"));
    Some(PROCESS.warning(meaning, PLACEMENT, remedy).about(pid.to_string()))
}

/// Returns a process's names: the kernel's, and its first arguments, as scripts run under an interpreter.
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
