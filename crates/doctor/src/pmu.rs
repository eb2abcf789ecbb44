//! Check of PMU sampling: whether the processor, the kernel and the settings allow it.

use std::path::Path;

use isotherm_linux::files::decimal;
use isotherm_linux::topology::cpu::{Cpu, Model, Vendor};

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Checked, Finding, Remedy, Topic, settled};
use super::sysctls::{self, PARANOID};

const PMU: Topic = Area::Sources.topic("source-pmu");
const DEVICES: &str = "/sys/bus/event_source/devices";

pub(super) fn examine(root: &Path, facts: &Facts<'_>) -> [Finding; 2] {
    let processor = Area::Sources.topic("processor");
    match Cpu::read(root) {
        Err(error) => [processor.unknown(&error), PMU.unknown(error)],
        Ok(cpu) => {
            let guest = if cpu.virtualized { ", in a virtual machine" } else { "" };
            let meaning = format!("{} ({}){guest}", cpu.name, cpu.microarchitecture);
            [processor.ok(meaning), settled(pmu(facts, &cpu))]
        }
    }
}

fn missing(meaning: impl Into<String>, remedy: Remedy) -> Finding {
    PMU.missing(meaning, "samples of addresses by the PMU, the best and cheapest source", remedy)
}

fn pmu(facts: &Facts<'_>, cpu: &Cpu) -> Checked {
    if let Some(closed) = closed(facts) {
        return Ok(closed);
    }
    if !facts.sys_is_visible() {
        return Ok(PMU.unknown(HIDDEN));
    }
    let devices = PMU.known(facts.tree.names(DEVICES))?;
    if devices.is_empty() {
        return Ok(PMU.unknown(format!("{DEVICES} shows no device")));
    }
    let has = |prefix: &str| devices.iter().any(|device| device.starts_with(prefix));
    Ok(match cpu.vendor {
        Vendor::Intel if devices.iter().any(|device| device == "cpu" || device == "cpu_core") => {
            intel(facts, cpu)
        }
        Vendor::Amd if has("ibs_op") => amd(facts, cpu),
        Vendor::Arm | Vendor::Ampere if has("arm_spe_") => missing(
            format!("Arm SPE on {} is decoded but not sampled yet", cpu.microarchitecture),
            Remedy::advice("choose --source hint-faults or --source accessed-bits"),
        ),
        Vendor::Other => missing(
            "PMU sampling is not supported on this processor",
            Remedy::advice("a processor with Intel PEBS, AMD IBS or Arm SPE"),
        ),
        _ => absent(cpu),
    })
}

fn closed(facts: &Facts<'_>) -> Option<Finding> {
    let probe = facts.probes.software_events;
    if !probe.fails() {
        return None;
    }
    let reason = probe.reason();
    Some(if probe.is_unsupported() && !facts.tree.path("/proc/sys/kernel/perf_event_paranoid").exists() {
        missing("the kernel has no perf events", Remedy::option("CONFIG_PERF_EVENTS=y"))
    } else if facts.rights.seccomp {
        let fix = "give the container --cap-add=PERFMON and a seccomp profile that permits perf_event_open";
        let meaning = format!("perf_event_open is refused, by a seccomp filter or a setting: {reason}");
        missing(meaning, Remedy::advice(fix))
    } else {
        missing(format!("perf_event_open is refused: {reason}"), Remedy::sysctl(PARANOID, 1))
    })
}

fn absent(cpu: &Cpu) -> Finding {
    let (wanted, remedy) = match cpu.vendor {
        Vendor::Amd => ("IBS op sampling", Remedy::advice("switch IBS on in the firmware")),
        Vendor::Arm | Vendor::Ampere => ("Arm SPE", Remedy::command("modprobe arm_spe_pmu")),
        Vendor::Intel | Vendor::Other => ("PMU", Remedy::advice("switch the PMU on in the firmware")),
    };
    if !cpu.virtualized {
        return missing(format!("the kernel shows no {wanted}"), remedy);
    }
    let remedy = match cpu.vendor {
        Vendor::Intel => "give the guest a PMU (QEMU: -cpu host,pmu=on), or run Isotherm on the host",
        _ => "run Isotherm on the host",
    };
    missing(format!("the hypervisor shows this guest no {wanted}"), Remedy::advice(remedy))
}

fn found(cpu: &Cpu, how: &str) -> Finding {
    PMU.ok(format!("samples by {how} on {}", cpu.microarchitecture))
}

fn intel(facts: &Facts<'_>, cpu: &Cpu) -> Finding {
    let probe = facts.probes.hardware_events;
    if probe.is_denied() {
        let meaning = format!("the PMU may not be used: {}", probe.reason());
        return missing(meaning, Remedy::sysctl(PARANOID, 1));
    }
    if probe.fails() {
        let remedy = "stop what uses the PMU: another guest, the NMI watchdog, a profiler";
        let meaning = format!("the PMU does not count cycles: {}", probe.reason());
        return missing(meaning, Remedy::advice(remedy));
    }
    let precise = ["cpu", "cpu_core"]
        .iter()
        .find_map(|device| facts.tree.text(&format!("{DEVICES}/{device}/caps/max_precise")).ok());
    if precise.as_deref().and_then(decimal::<u32>) == Some(0) {
        let remedy = Remedy::advice("run Isotherm on the host: this guest's PMU has no PEBS");
        return missing("the PMU has no precise samples, hence no addresses", remedy);
    }
    if cpu.microarchitecture == Model::Unknown {
        return PMU.warning(
            "the PMU works, but Isotherm has no table of events for this processor",
            "the tier that served a sample",
            Remedy::advice("report the first lines of /proc/cpuinfo, or choose --source hint-faults"),
        );
    }
    found(cpu, "PEBS")
}

fn amd(facts: &Facts<'_>, cpu: &Cpu) -> Finding {
    // IBS samples kernel mode too; since Linux 6.13 the kernel can drop those samples.
    let filters = facts.tree.path(&format!("{DEVICES}/ibs_op/format/swfilt")).exists();
    let paranoid = sysctls::value(facts, PARANOID).ok().flatten();
    if !filters && !facts.rights.perfmon() && paranoid.is_some_and(|value| value > 1) {
        let meaning = "IBS samples kernel mode too, which kernel.perf_event_paranoid forbids";
        return missing(meaning, Remedy::sysctl(PARANOID, 1));
    }
    found(cpu, "IBS")
}
