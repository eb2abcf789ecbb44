//! Checks of other sources: the lab's virtual PMU, hotness units, hint faults, accessed bits, idle pages.

use isotherm_linux::devices::perf_chmu;
use isotherm_linux::virtual_pmu;

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Checked, Finding, Remedy, settled};
use super::probes::Probe;
use super::rights::Capability;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let others = [hint_faults(facts), accessed_bits(facts), idle_pages(facts), placement(facts)];
    virtual_pmu(facts).into_iter().chain(hotness_units(facts).map(settled)).chain(others).collect()
}

/// Checks the hotness monitoring units that the kernel drives; machines without any lack nothing.
fn hotness_units(facts: &Facts<'_>) -> Option<Checked> {
    let topic = Area::Sources.topic("source-device");
    let lost = "pages that a device finds hot, at no cost to the processor";
    let units = match topic.known(perf_chmu::all(facts.tree)) {
        Ok(units) if units.is_empty() => return None,
        Ok(units) => units,
        Err(unknown) => return Some(Err(unknown)),
    };
    let names = units.iter().map(|unit| unit.name.as_str()).collect::<Vec<_>>().join(", ");
    let lacking = units.iter().find_map(|unit| Some((unit, perf_chmu::lacks(unit)?)));
    Some(Ok(if let Some((unit, field)) = lacking {
        let remedy = "a kernel whose driver has the fields of the one proposed in November 2024";
        let meaning = format!("{}: its driver has no field {field}", unit.name);
        topic.missing(meaning, lost, Remedy::advice(remedy))
    } else if facts.rights.holds(Capability::SysAdmin) {
        topic.ok(format!("hot pages of CXL memory, by the kernel's driver: {names}"))
    } else {
        // Events of a processor need CAP_PERFMON at least; frame numbers are shown to CAP_SYS_ADMIN only.
        let meaning = format!("{names}: events of a processor and frame numbers need CAP_SYS_ADMIN");
        topic.missing(meaning, lost, Remedy::as_root())
    }))
}

/// Checks the lab's virtual PMU, which only the lab's virtual machine has; its absence is not reported.
fn virtual_pmu(facts: &Facts<'_>) -> Option<Finding> {
    let topic = Area::Sources.topic("source-virtual-pmu");
    let memory = virtual_pmu::memory_file(facts.tree)?;
    Some(match facts.writable(&memory) {
        Ok(()) => topic.ok("the lab's device, with samples and counters of each tier"),
        Err(error) => topic.missing(
            format!("cannot write the lab's device: {error}"),
            "samples and counters of each tier, exact and free of cost",
            Remedy::as_root(),
        ),
    })
}

/// Checks whether the program that Isotherm starts may open what its agent needs, as it has no more rights.
fn hint_faults(facts: &Facts<'_>) -> Finding {
    let topic = Area::Sources.topic("source-hint-faults");
    let lost = "the best source without a PMU, by libisotherm.so inside programs";
    let missing = |meaning: &str, remedy| topic.missing(meaning, lost, remedy);
    let refused = |probe: Probe| {
        let fix = "start the container with --security-opt seccomp=unconfined, or a profile that permits \
                   userfaultfd";
        missing(&format!("userfaultfd is refused: {}", probe.reason()), Remedy::advice(fix))
    };
    let (probes, rights) = (facts.probes, &facts.rights);
    if facts.rights_error.is_some() {
        return topic.unknown("cannot read /proc/self");
    }
    match (probes.userfaultfd, probes.userfaultfd_move) {
        (Probe::Untried, _) => topic.unknown("userfaultfd was not tried"),
        (probe, _) if probe.is_unsupported() && !rights.seccomp => {
            missing("the kernel has no userfaultfd", Remedy::option("CONFIG_USERFAULTFD=y"))
        }
        (probe @ Probe::Fails(_), _) => refused(probe),
        (_, Probe::Fails(_)) => {
            missing("the kernel's userfaultfd cannot move pages", Remedy::advice("Linux 6.8 or later"))
        }
        _ if !rights.passes_on(Capability::SysPtrace) => missing(
            "programs that Isotherm starts need CAP_SYS_PTRACE",
            facts.give(Capability::SysPtrace, "SYS_PTRACE", Remedy::as_root()),
        ),
        _ if probes.hint_faults.fails() => refused(probes.hint_faults),
        _ => topic.ok("by libisotherm.so inside programs, with userfaultfd"),
    }
}

fn accessed_bits(facts: &Facts<'_>) -> Finding {
    let topic = Area::Sources.topic("source-accessed-bits");
    if facts.rights_error.is_some() {
        return topic.unknown("cannot read /proc/self");
    }
    let exists = |file: &&str| facts.tree.path(&format!("/proc/self/{file}")).exists();
    match ["clear_refs", "smaps", "pagemap"].into_iter().find(|file| !exists(file)) {
        None => topic.ok("of every process of this user, one mapping at a time"),
        Some(file) => topic.missing(
            format!("the kernel has no /proc/PID/{file}"),
            "accessed bits of programs that run without libisotherm.so",
            Remedy::option("CONFIG_PROC_PAGE_MONITOR=y"),
        ),
    }
}

fn idle_pages(facts: &Facts<'_>) -> Finding {
    let topic = Area::Sources.topic("source-idle-pages");
    let lost = "accessed bits of single pages, from outside the program";
    if !facts.tree.path(BITMAP).exists() {
        if !facts.sys_is_visible() {
            return topic.unknown(HIDDEN);
        }
        let remedy = Remedy::option("CONFIG_IDLE_PAGE_TRACKING=y");
        return topic.missing("the kernel has no idle page tracking", lost, remedy);
    }
    match facts.writable(BITMAP) {
        Err(error) => facts.unwritable(topic, BITMAP, lost, &error),
        Ok(()) if !facts.rights.holds(Capability::SysAdmin) => {
            topic.missing("frame numbers are hidden without CAP_SYS_ADMIN", lost, Remedy::as_root())
        }
        Ok(()) => topic.ok("of every page of the machine"),
    }
}

/// Checks `move_pages`, which every source needs: it finds pages and moves them.
fn placement(facts: &Facts<'_>) -> Finding {
    let topic = Area::Sources.topic("move-pages");
    let lost = "moving pages, and knowing which node holds them";
    match facts.probes.move_pages {
        Probe::Untried => topic.unknown("move_pages was not tried"),
        Probe::Works => topic.ok("the kernel tells where pages are"),
        probe if probe.is_unsupported() && !facts.rights.seccomp => {
            let remedy = Remedy::option("CONFIG_NUMA=y CONFIG_MIGRATION=y");
            topic.missing("the kernel has no move_pages", lost, remedy)
        }
        probe => {
            let fix = "give the container --cap-add=SYS_NICE, so that its seccomp profile permits move_pages";
            topic.missing(format!("move_pages is refused: {}", probe.reason()), lost, Remedy::advice(fix))
        }
    }
}
