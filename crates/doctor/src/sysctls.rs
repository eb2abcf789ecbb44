//! Defines the findings about settings below `/proc/sys` (`Documentation/admin-guide/sysctl`).

use super::facts::{Facts, USERFAULTFD_DEVICE};
use super::finding::{Area, Finding, Remedy};
use super::rights::Capability;
use isotherm_linux::LinuxError;

const PARANOID: &str = "kernel.perf_event_paranoid";
const USERFAULTFD: &str = "vm.unprivileged_userfaultfd";
const PTRACE: &str = "kernel.yama.ptrace_scope";

/// A setting that is bad below a value.
struct Floor {
    key: &'static str,
    name: &'static str,
    least: i64,
    /// What to set it to.
    wanted: i64,
    lost: &'static str,
}

/// The kernel's own defaults, or what a run needs where that is less.
const FLOORS: [Floor; 4] = [
    Floor {
        key: "kernel.perf_event_max_sample_rate",
        name: "perf-event-max-sample-rate",
        least: 20_000,
        wanted: 100_000,
        lost: "samples: the kernel lowered the limit, or was told to",
    },
    Floor {
        key: "kernel.perf_event_mlock_kb",
        name: "perf-event-mlock-kb",
        least: 516,
        wanted: 516,
        lost: "room in sampling buffers for users without CAP_IPC_LOCK: samples may be lost",
    },
    Floor {
        key: "kernel.perf_cpu_time_max_percent",
        name: "perf-cpu-time-max-percent",
        least: 5,
        wanted: 25,
        lost: "samples: the kernel throttles sampling that takes more of a processor's time",
    },
    Floor {
        key: "vm.max_map_count",
        name: "max-map-count",
        least: 65_530,
        wanted: 65_530,
        lost: "room for mappings: a program near the limit may fail to get more while it is tiered",
    },
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![paranoid(facts)];
    findings.extend(FLOORS.iter().map(|floor| at_least(facts, floor)));
    findings.extend([userfaultfd(facts), device(facts), ptrace_scope(facts)]);
    findings
}

/// The value of a sysctl written with dots; `None` where the kernel does not know it.
pub(super) fn value(facts: &Facts<'_>, key: &str) -> Result<Option<i64>, LinuxError> {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    facts.tree.parsed_if_there(&path, "a whole number", |text| text.parse().ok())
}

fn absent(name: &'static str, key: &str) -> Finding {
    Finding::unknown(Area::Sources, name, format!("{key} is not known to this kernel, or hidden"))
}

/// The value or the finding that says why there is none.
fn read(facts: &Facts<'_>, name: &'static str, key: &str) -> Result<i64, Box<Finding>> {
    match value(facts, key) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(Box::new(absent(name, key))),
        Err(error) => Err(Box::new(Finding::unknown(Area::Sources, name, error))),
    }
}

fn at_least(facts: &Facts<'_>, floor: &Floor) -> Finding {
    let (area, name) = (Area::Sources, floor.name);
    let value = match read(facts, name, floor.key) {
        Ok(value) => value,
        Err(finding) => return *finding,
    };
    // 0 and 100 switch this one throttle off.
    let unlimited = floor.key.ends_with("max_percent") && value == 0;
    let meaning = format!("{} is {value}", floor.key);
    if value >= floor.least || unlimited {
        return Finding::ok(area, name, meaning);
    }
    let remedy = Remedy::command(format!("sysctl -w {}={}", floor.key, floor.wanted));
    Finding::warning(area, name, meaning, floor.lost, remedy)
}

fn paranoid(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "perf-event-paranoid");
    let value = match read(facts, name, PARANOID) {
        Ok(value) => value,
        Err(finding) => return *finding,
    };
    let meaning = format!("{PARANOID} is {value}");
    if facts.rights.perfmon() {
        return Finding::ok(area, name, format!("{meaning}, and this process is above it"));
    }
    let set = |wanted: u8| Remedy::command(format!("sysctl -w {PARANOID}={wanted}"));
    match value {
        ..=0 => Finding::ok(area, name, meaning),
        1 => Finding::warning(
            area,
            name,
            meaning,
            "counters of the memory controllers, for stalls by tier",
            set(0),
        ),
        2 => Finding::warning(
            area,
            name,
            meaning,
            "samples of kernel mode, those of AMD before Linux 6.13 at all, and counters of the memory controllers",
            set(1),
        ),
        _ => Finding::missing(area, name, meaning, "all PMU samples and counters", set(1)),
    }
}

/// Whether faults inside of system calls can be handled, by whichever way.
fn userfaultfd(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "unprivileged-userfaultfd");
    let value = match read(facts, name, USERFAULTFD) {
        Ok(value) => value,
        Err(finding) => return *finding,
    };
    let meaning = format!("{USERFAULTFD} is {value}");
    if value != 0 || facts.rights.passes_on(Capability::SysPtrace) {
        return Finding::ok(area, name, meaning);
    }
    if facts.userfaultfd_device().is_ok() {
        return Finding::ok(area, name, format!("{meaning}, and {USERFAULTFD_DEVICE} stands open"));
    }
    let lost = "hint faults, for users without CAP_SYS_PTRACE";
    Finding::warning(area, name, meaning, lost, Remedy::command(format!("sysctl -w {USERFAULTFD}=1")))
}

fn device(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "dev-userfaultfd");
    let lost = "hint faults for some users alone, by permissions of a file";
    match facts.userfaultfd_device() {
        Ok(_) => Finding::ok(area, name, format!("{USERFAULTFD_DEVICE} may be opened")),
        Err(_) if facts.probes.userfaultfd == super::probes::Probe::Works => {
            Finding::ok(area, name, format!("{USERFAULTFD_DEVICE} may not be opened, and need not"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let meaning = format!("there is no {USERFAULTFD_DEVICE}");
            let remedy = Remedy::option("CONFIG_USERFAULTFD=y (Linux 6.1 or later)");
            Finding::missing(area, name, meaning, lost, remedy)
        }
        Err(error) => {
            let meaning = format!("{USERFAULTFD_DEVICE} may not be opened: {error}");
            let remedy = Remedy::command(format!("sudo setfacl -m u:$USER:rw {USERFAULTFD_DEVICE}"));
            Finding::missing(area, name, meaning, lost, remedy)
        }
    }
}

/// Yama restricts attaching, not reading, which is all that is done here.
fn ptrace_scope(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "yama-ptrace-scope");
    match value(facts, PTRACE) {
        Ok(None) => Finding::ok(area, name, "the kernel has no Yama, or none is shown"),
        Ok(Some(value)) => {
            Finding::ok(area, name, format!("{PTRACE} is {value}; it restricts nothing that is done here"))
        }
        Err(error) => Finding::unknown(area, name, error),
    }
}
