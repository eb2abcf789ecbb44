//! Checks of settings below `/proc/sys` (`Documentation/admin-guide/sysctl`).

use std::io::ErrorKind;

use isotherm_linux::LinuxError;

use super::facts::{Facts, USERFAULTFD_DEVICE};
use super::finding::{Area, Checked, Finding, Remedy, Topic, settled};
use super::probes::Probe;
use super::rights::Capability;

pub(super) const PARANOID: &str = "kernel.perf_event_paranoid";
pub(super) const USERFAULTFD: &str = "vm.unprivileged_userfaultfd";
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
    findings.extend([userfaultfd(facts), Ok(device(facts)), ptrace_scope(facts)].map(settled));
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

/// Checks that faults inside system calls can be handled by any way.
fn userfaultfd(facts: &Facts<'_>) -> Checked {
    let topic = Area::Sources.topic("unprivileged-userfaultfd");
    let value = read(facts, topic, USERFAULTFD)?;
    let meaning = format!("{USERFAULTFD} is {value}");
    if value != 0 || facts.rights.passes_on(Capability::SysPtrace) {
        return Ok(topic.ok(meaning));
    }
    if facts.userfaultfd_device().is_ok() {
        return Ok(topic.ok(format!("{meaning}, and {USERFAULTFD_DEVICE} replaces it")));
    }
    let lost = "hint faults, for users without CAP_SYS_PTRACE";
    Ok(topic.warning(meaning, lost, Remedy::sysctl(USERFAULTFD, 1)))
}

fn device(facts: &Facts<'_>) -> Finding {
    let topic = Area::Sources.topic("dev-userfaultfd");
    let lost = "hint faults for chosen users, by permissions of a file";
    match facts.userfaultfd_device() {
        Ok(()) => topic.ok(format!("{USERFAULTFD_DEVICE} can be opened")),
        Err(_) if facts.probes.userfaultfd == Probe::Works => {
            topic.ok(format!("{USERFAULTFD_DEVICE} cannot be opened, and is not needed"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let remedy = Remedy::option("CONFIG_USERFAULTFD=y (Linux 6.1 or later)");
            topic.missing(format!("there is no {USERFAULTFD_DEVICE}"), lost, remedy)
        }
        Err(error) => {
            let remedy = Remedy::Command(format!("sudo setfacl -m u:$USER:rw {USERFAULTFD_DEVICE}"));
            topic.missing(format!("cannot open {USERFAULTFD_DEVICE}: {error}"), lost, remedy)
        }
    }
}

/// Reports Yama's setting, which restricts attaching and not the reading that Isotherm does.
fn ptrace_scope(facts: &Facts<'_>) -> Checked {
    let topic = Area::Sources.topic("yama-ptrace-scope");
    Ok(topic.ok(match topic.known(value(facts, PTRACE))? {
        None => "the kernel has no Yama, or hides it".to_owned(),
        Some(value) => format!("{PTRACE} is {value}, which restricts nothing that Isotherm does"),
    }))
}
