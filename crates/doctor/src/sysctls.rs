//! Checks of settings below `/proc/sys` (`Documentation/admin-guide/sysctl`).

use isotherm_linux::LinuxError;

use super::facts::Facts;
use super::finding::{Area, Checked, Finding, Remedy, Topic, settled};

pub(super) const PARANOID: &str = "kernel.perf_event_paranoid";
const PTRACE: &str = "kernel.yama.ptrace_scope";

/// Setting that costs a run something below a limit.
struct Floor {
    name: &'static str,
    key: &'static str,
    min: i64,
    /// Value that the remedy sets.
    wanted: i64,
    lost: &'static str,
}

const fn floor(name: &'static str, key: &'static str, min: i64, wanted: i64, lost: &'static str) -> Floor {
    Floor { name, key, min, wanted, lost }
}

/// The kernel's own defaults, or what a run needs where that is less.
#[rustfmt::skip]
const FLOORS: [Floor; 4] = [
    floor("perf-event-max-sample-rate", "kernel.perf_event_max_sample_rate", 20_000, 100_000,
        "samples: the kernel limits their rate"),
    floor("perf-event-mlock-kb", "kernel.perf_event_mlock_kb", 516, 516,
        "room in sampling buffers for users without CAP_IPC_LOCK: samples may be lost"),
    floor("perf-cpu-time-max-percent", "kernel.perf_cpu_time_max_percent", 5, 25,
        "samples: the kernel throttles sampling that takes more of a processor's time"),
    floor("max-map-count", "vm.max_map_count", 65_530, 65_530,
        "room for mappings: a tiered program near the limit may fail to get more"),
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![settled(paranoid(facts))];
    findings.extend(FLOORS.iter().map(|floor| settled(at_least(facts, floor))));
    findings.push(settled(ptrace_scope(facts)));
    findings
}

/// Reads a sysctl written with dots; `None` where the kernel does not have it.
pub(super) fn value(facts: &Facts<'_>, key: &str) -> Result<Option<i64>, LinuxError> {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    facts.tree.parsed_if_there(&path, "a whole number", |text| text.parse().ok())
}

fn read(facts: &Facts<'_>, topic: Topic, key: &str) -> Result<i64, Box<Finding>> {
    let value = topic.known(value(facts, key))?;
    topic.known(value.ok_or_else(|| format!("{key} is hidden, or unknown to this kernel")))
}

fn at_least(facts: &Facts<'_>, floor: &Floor) -> Checked {
    let topic = Area::Sources.topic(floor.name);
    let value = read(facts, topic, floor.key)?;
    // 0 and 100 switch this one throttle off.
    let unlimited = floor.key.ends_with("max_percent") && value == 0;
    let meaning = format!("{} is {value}", floor.key);
    Ok(if value >= floor.min || unlimited {
        topic.ok(meaning)
    } else {
        topic.warning(meaning, floor.lost, Remedy::sysctl(floor.key, floor.wanted))
    })
}

fn paranoid(facts: &Facts<'_>) -> Checked {
    let topic = Area::Sources.topic("perf-event-paranoid");
    let value = read(facts, topic, PARANOID)?;
    let meaning = format!("{PARANOID} is {value}");
    if facts.rights.perfmon() {
        return Ok(topic.ok(format!("{meaning}, which does not restrict this process")));
    }
    let controllers = "counters of the memory controllers";
    let set = |value| Remedy::sysctl(PARANOID, value);
    Ok(match value {
        ..=0 => topic.ok(meaning),
        1 => topic.warning(meaning, format!("{controllers}, for stalls by tier"), set(0)),
        2 => {
            let amd = "samples of kernel mode, all AMD samples before Linux 6.13";
            topic.warning(meaning, format!("{amd}, and {controllers}"), set(1))
        }
        _ => topic.missing(meaning, "all PMU samples and counters", set(1)),
    })
}

/// Reports Yama's setting, which restricts attaching and not the reading that Isotherm does.
fn ptrace_scope(facts: &Facts<'_>) -> Checked {
    let topic = Area::Sources.topic("yama-ptrace-scope");
    Ok(topic.ok(match topic.known(value(facts, PTRACE))? {
        None => "the kernel has no Yama, or hides it".to_owned(),
        Some(value) => format!("{PTRACE} is {value}, which restricts nothing that Isotherm does"),
    }))
}
