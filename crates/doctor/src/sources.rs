//! Defines the findings about sources beside the PMU: the lab's virtual PMU, hint faults, accessed bits, idle pages.

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Finding, Remedy};
use super::probes::Probe;
use super::rights::Capability;
use super::sysctls;
use isotherm_linux::devices::perf_chmu;
use isotherm_linux::virtual_pmu;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let own = [hint_faults(facts), accessed_bits(facts), idle_pages(facts), placement(facts)];
    virtual_pmu(facts).into_iter().chain(hotness_units(facts)).chain(own).collect()
}

/// Hotness monitoring units that the kernel's driver has taken; only where there are some.
fn hotness_units(facts: &Facts<'_>) -> Option<Finding> {
    let (area, name) = (Area::Sources, "source-device");
    let lost = "pages that a device finds hot, at no cost to the processor";
    let units = match perf_chmu::all(facts.tree) {
        Ok(units) => units,
        Err(error) => return Some(Finding::unknown(area, name, error)),
    };
    if units.is_empty() {
        return None;
    }
    let names = units.iter().map(|unit| unit.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some((unit, field)) = units.iter().find_map(|unit| Some((unit, perf_chmu::lacks(unit)?))) {
        let meaning = format!("{}: its driver has no field {field}", unit.name);
        let remedy =
            Remedy::advice("a kernel whose driver has the fields of the one proposed in November 2024");
        return Some(Finding::missing(area, name, meaning, lost, remedy));
    }
    // The events of a processor need CAP_PERFMON at least; whose page a frame is, the kernel tells CAP_SYS_ADMIN alone.
    Some(if facts.rights.holds(Capability::SysAdmin) {
        Finding::ok(area, name, format!("hot pages of CXL memory, by the kernel's driver: {names}"))
    } else {
        let meaning = format!("{names}: events of a processor, and frame numbers, need CAP_SYS_ADMIN");
        Finding::missing(area, name, meaning, lost, Remedy::command("sudo isotherm run -- PROGRAM"))
    })
}

/// Only where there is one: no other machine lacks it.
fn virtual_pmu(facts: &Facts<'_>) -> Option<Finding> {
    let (area, name) = (Area::Sources, "source-virtual-pmu");
    let memory = virtual_pmu::memory_file(facts.tree)?;
    Some(match facts.writable(&memory) {
        Ok(()) => {
            Finding::ok(area, name, "of the lab's virtual machine, with samples and counters of each tier")
        }
        Err(error) => Finding::missing(
            area,
            name,
            format!("the memory of the lab's device may not be used: {error}"),
            "samples and counters of each tier, exact and for nothing",
            Remedy::command("sudo isotherm run -- PROGRAM"),
        ),
    })
}

fn hint_faults(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "source-hint-faults");
    let lost = "the source that tells most where there is no PMU, by libisotherm.so inside of programs";
    let missing = |meaning: &str, remedy| Finding::missing(area, name, meaning, lost, remedy);
    let (probes, permit) = (facts.probes, Remedy::command("sysctl -w vm.unprivileged_userfaultfd=1"));
    match (probes.userfaultfd, probes.userfaultfd_move) {
        (Probe::Untried, _) => Finding::unknown(area, name, "userfaultfd was not tried"),
        (Probe::Fails(libc::ENOSYS), _) if !facts.rights.seccomp => {
            missing("the kernel has no userfaultfd", Remedy::option("CONFIG_USERFAULTFD=y"))
        }
        (_, Probe::Fails(libc::ENOSYS)) if !facts.rights.seccomp => {
            missing("the kernel's userfaultfd cannot move pages", Remedy::advice("Linux 6.8 or later"))
        }
        (Probe::Works, _) if programs_may_use(facts) => {
            Finding::ok(area, name, "by libisotherm.so inside of programs, with userfaultfd")
        }
        _ if facts.userfaultfd_device().is_ok() => {
            Finding::ok(area, name, "by libisotherm.so inside of programs, with /dev/userfaultfd")
        }
        (Probe::Works, _) => {
            missing("programs that Isotherm starts may not handle faults inside of system calls", permit)
        }
        (refused, _) => {
            let reason = refused.reason();
            missing(&format!("userfaultfd may not handle faults inside of system calls: {reason}"), permit)
        }
    }
}

/// Whether userfaultfd is permitted to programs too, not only to this process.
fn programs_may_use(facts: &Facts<'_>) -> bool {
    let for_all = sysctls::value(facts, "vm.unprivileged_userfaultfd")
        .is_ok_and(|value| value.is_some_and(|value| value != 0));
    for_all || facts.rights.passes_on(Capability::SysPtrace)
}

fn accessed_bits(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "source-accessed-bits");
    if facts.rights_error.is_some() {
        return Finding::unknown(area, name, "/proc/self cannot be read");
    }
    let lacking = ["clear_refs", "smaps", "pagemap"]
        .into_iter()
        .find(|file| !facts.tree.path(&format!("/proc/self/{file}")).exists());
    match lacking {
        None => Finding::ok(area, name, "of every process of this user, one mapping at a time"),
        Some(file) => Finding::missing(
            area,
            name,
            format!("the kernel has no /proc/PID/{file}"),
            "accessed bits of programs that libisotherm.so is not in",
            Remedy::option("CONFIG_PROC_PAGE_MONITOR=y"),
        ),
    }
}

fn idle_pages(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "source-idle-pages");
    let lost = "accessed bits page by page, from outside of the program";
    let there = facts.tree.path(BITMAP).exists();
    if !there && !facts.sys_is_visible() {
        return Finding::unknown(area, name, HIDDEN);
    }
    if !there {
        let remedy = Remedy::option("CONFIG_IDLE_PAGE_TRACKING=y");
        return Finding::missing(area, name, "the kernel has no idle page tracking", lost, remedy);
    }
    match facts.writable(BITMAP) {
        Err(error) => {
            let meaning = format!("{BITMAP} may not be written: {error}");
            Finding::missing(area, name, meaning, lost, facts.write_remedy(&error))
        }
        Ok(()) if !facts.rights.holds(Capability::SysAdmin) => {
            let remedy = Remedy::command("sudo isotherm run -- PROGRAM");
            Finding::missing(area, name, "frame numbers are hidden without CAP_SYS_ADMIN", lost, remedy)
        }
        Ok(()) => Finding::ok(area, name, "of every page of the machine"),
    }
}

/// Not a source, and needed with each: where pages are, and moving them.
fn placement(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Sources, "move-pages");
    let probe = facts.probes.move_pages;
    let lost = "moving pages, and knowing which node holds them";
    match probe {
        Probe::Untried => Finding::unknown(area, name, "move_pages was not tried"),
        Probe::Works => Finding::ok(area, name, "the kernel says where pages are"),
        Probe::Fails(libc::ENOSYS) if !facts.rights.seccomp => {
            let remedy = Remedy::option("CONFIG_NUMA=y CONFIG_MIGRATION=y");
            Finding::missing(area, name, "the kernel has no move_pages", lost, remedy)
        }
        Probe::Fails(_) => Finding::missing(
            area,
            name,
            format!("move_pages is refused: {}", probe.reason()),
            lost,
            Remedy::advice("give the container --cap-add=SYS_NICE, which its seccomp profile asks for"),
        ),
    }
}
