//! Defines the finding about PMU sampling: whether the processor, the kernel and the settings allow it.

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Finding, Remedy};
use super::probes::Probe;
use super::sysctls;
use isotherm_linux::topology::cpu::{Cpu, Model, Vendor};
use isotherm_linux::topology::files::decimal;

const NAME: &str = "source-pmu";
const DEVICES: &str = "/sys/bus/event_source/devices";
const LOST: &str = "samples of addresses by the PMU, the best and cheapest source";

/// The processor, and what its PMU offers.
pub(super) fn examine(root: &std::path::Path, facts: &Facts<'_>) -> [Finding; 2] {
    match Cpu::read(root) {
        Err(error) => [
            Finding::unknown(Area::Sources, "processor", &error),
            Finding::unknown(Area::Sources, NAME, error),
        ],
        Ok(cpu) => [processor(&cpu), pmu(facts, &cpu)],
    }
}

fn processor(cpu: &Cpu) -> Finding {
    let machine = if cpu.virtualized { ", in a virtual machine" } else { "" };
    let meaning = format!("{} ({}){machine}", cpu.name, cpu.microarchitecture);
    Finding::ok(Area::Sources, "processor", meaning)
}

fn missing(meaning: impl Into<String>, remedy: Remedy) -> Finding {
    Finding::missing(Area::Sources, NAME, meaning, LOST, remedy)
}

fn pmu(facts: &Facts<'_>, cpu: &Cpu) -> Finding {
    if let Some(closed) = closed(facts) {
        return closed;
    }
    if !facts.sys_is_visible() {
        return Finding::unknown(Area::Sources, NAME, HIDDEN);
    }
    let devices = match facts.tree.names(DEVICES) {
        Ok(devices) if devices.is_empty() => {
            return Finding::unknown(Area::Sources, NAME, format!("{DEVICES} shows no device"));
        }
        Ok(devices) => devices,
        Err(error) => return Finding::unknown(Area::Sources, NAME, error),
    };
    let has = |prefix: &str| devices.iter().any(|device| device.starts_with(prefix));
    match cpu.vendor {
        Vendor::Intel if devices.iter().any(|device| device == "cpu" || device == "cpu_core") => {
            intel(facts, cpu)
        }
        Vendor::Amd if has("ibs_op") => amd(facts, cpu),
        Vendor::Arm | Vendor::Ampere if has("arm_spe_") => found(cpu, "Arm SPE"),
        Vendor::Other => missing(
            "PMU sampling is not known for this processor",
            Remedy::advice("a processor with Intel PEBS, AMD IBS or Arm SPE"),
        ),
        _ => absent(cpu),
    }
}

/// Why no event at all can be opened, if that is so.
fn closed(facts: &Facts<'_>) -> Option<Finding> {
    let reason = facts.probes.software_events.reason();
    match facts.probes.software_events {
        Probe::Fails(libc::ENOSYS) if !facts.tree.path("/proc/sys/kernel/perf_event_paranoid").exists() => {
            Some(missing("the kernel has no perf events", Remedy::option("CONFIG_PERF_EVENTS=y")))
        }
        Probe::Fails(_) if facts.rights.seccomp => Some(missing(
            format!("perf_event_open is refused, by a seccomp filter or a setting: {reason}"),
            Remedy::advice(
                "give the container --cap-add=PERFMON and a seccomp profile that permits perf_event_open",
            ),
        )),
        Probe::Fails(_) => Some(missing(
            format!("perf_event_open is refused: {reason}"),
            Remedy::command("sysctl -w kernel.perf_event_paranoid=1"),
        )),
        Probe::Works | Probe::Untried => None,
    }
}

fn absent(cpu: &Cpu) -> Finding {
    let (wanted, here) = match cpu.vendor {
        Vendor::Amd => ("IBS op sampling", Remedy::advice("switch IBS on in the firmware")),
        Vendor::Arm | Vendor::Ampere => ("Arm SPE", Remedy::command("modprobe arm_spe_pmu")),
        Vendor::Intel | Vendor::Other => ("PMU", Remedy::advice("switch the PMU on in the firmware")),
    };
    if !cpu.virtualized {
        return missing(format!("the kernel shows no {wanted}"), here);
    }
    let remedy = match cpu.vendor {
        Vendor::Intel => "give the guest a PMU (QEMU: -cpu host,pmu=on), or run Isotherm on the host",
        _ => "run Isotherm on the host, where the PMU is",
    };
    missing(format!("the hypervisor shows this guest no {wanted}"), Remedy::advice(remedy))
}

fn found(cpu: &Cpu, how: &str) -> Finding {
    Finding::ok(Area::Sources, NAME, format!("samples by {how} on {}", cpu.microarchitecture))
}

fn intel(facts: &Facts<'_>, cpu: &Cpu) -> Finding {
    let precise = ["cpu", "cpu_core"]
        .iter()
        .find_map(|device| facts.tree.text(&format!("{DEVICES}/{device}/caps/max_precise")).ok());
    if let Some(denied) = denied(facts) {
        return denied;
    }
    if precise.as_deref().and_then(decimal::<u32>) == Some(0) {
        let remedy = Remedy::advice("run Isotherm on the host: this guest's PMU has no PEBS");
        return missing("the PMU gives no precise samples, hence no addresses", remedy);
    }
    if cpu.microarchitecture == Model::Unknown {
        return Finding::warning(
            Area::Sources,
            NAME,
            "the PMU is there, and no table of events is known for this processor",
            "the tier that served a sample",
            Remedy::advice("report the first lines of /proc/cpuinfo, or choose --source hint-faults"),
        );
    }
    found(cpu, "PEBS")
}

fn amd(facts: &Facts<'_>, cpu: &Cpu) -> Finding {
    // IBS sees kernel mode too; since Linux 6.13 the kernel can drop those samples for users without rights to them.
    let filters = facts.tree.path(&format!("{DEVICES}/ibs_op/format/swfilt")).exists();
    let paranoid = sysctls::value(facts, "kernel.perf_event_paranoid").ok().flatten();
    if !filters && !facts.rights.perfmon() && paranoid.is_some_and(|value| value > 1) {
        return missing(
            "IBS samples kernel mode too, which kernel.perf_event_paranoid forbids",
            Remedy::command("sysctl -w kernel.perf_event_paranoid=1"),
        );
    }
    found(cpu, "IBS")
}

/// Why cycles cannot be counted although the PMU is there.
fn denied(facts: &Facts<'_>) -> Option<Finding> {
    let probe = facts.probes.hardware_events;
    match probe {
        Probe::Works | Probe::Untried => None,
        probe if probe.is_denied() => Some(missing(
            format!("the PMU may not be used: {}", probe.reason()),
            Remedy::command("sysctl -w kernel.perf_event_paranoid=1"),
        )),
        probe => Some(missing(
            format!("the PMU does not count cycles: {}", probe.reason()),
            Remedy::advice("stop what has taken the PMU: another guest, the NMI watchdog, a profiler"),
        )),
    }
}
