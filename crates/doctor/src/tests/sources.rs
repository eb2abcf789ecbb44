//! Findings about sources and the settings that limit them.

use super::case::{EACCES, ENOSYS, EPERM, UNPRIVILEGED, check, check_all};
use super::machine::{WORKING, findings};
use crate::{Probe, Probes, State};

const AMD: &str = "
file proc/cpuinfo vendor_id : AuthenticAMD\\ncpu family : 25\\nmodel : 17\\nmodel name : EPYC\\nstepping : 1\\nflags : fpu
file sys/bus/event_source/devices/ibs_op/type 9
";
const NEOVERSE: &str =
    "file proc/cpuinfo processor : 0\\nCPU implementer : 0x41\\nCPU part : 0xd4f\\nCPU revision : 0";

#[test]
fn settings() {
    use State::{Ok, Unknown, Warning};
    check_all(
        &WORKING,
        &[
            (
                "file proc/sys/kernel/perf_event_max_sample_rate 1000",
                "perf-event-max-sample-rate",
                Warning,
                "is 1000 / samples",
                "sysctl -w kernel.perf_event_max_sample_rate=100000",
            ),
            (
                "file proc/sys/kernel/perf_event_mlock_kb 64",
                "perf-event-mlock-kb",
                Warning,
                "is 64",
                "sysctl -w kernel.perf_event_mlock_kb=516",
            ),
            (
                "file proc/sys/kernel/perf_cpu_time_max_percent 1",
                "perf-cpu-time-max-percent",
                Warning,
                "is 1",
                "sysctl -w kernel.perf_cpu_time_max_percent=25",
            ),
            ("file proc/sys/kernel/perf_cpu_time_max_percent 0", "perf-cpu-time-max-percent", Ok, "is 0", ""),
            (
                "file proc/sys/vm/max_map_count 1024",
                "max-map-count",
                Warning,
                "is 1024",
                "sysctl -w vm.max_map_count=65530",
            ),
            ("without proc/sys/vm/max_map_count", "max-map-count", Unknown, "unknown to this kernel", ""),
            (
                "file proc/sys/vm/max_map_count lots",
                "max-map-count",
                Unknown,
                "expected a whole number, found 'lots'",
                "",
            ),
            ("without proc/sys/kernel/yama", "yama-ptrace-scope", Ok, "no Yama", ""),
        ],
    );
}

#[test]
fn paranoia_depends_on_rights() {
    use State::{Missing, Ok, Warning};
    let name = "perf-event-paranoid";
    let set = |value: i32, wanted: i32| {
        let changes = format!("{UNPRIVILEGED}\nfile proc/sys/kernel/perf_event_paranoid {value}");
        (
            changes,
            if wanted < 0 { String::new() } else { format!("sysctl -w kernel.perf_event_paranoid={wanted}") },
        )
    };
    for (value, state, part, wanted) in [
        (-1, Ok, "is -1", -1),
        (0, Ok, "is 0", -1),
        (1, Warning, "counters of the memory controllers", 0),
        (2, Warning, "samples of kernel mode", 1),
        (4, Missing, "all PMU samples", 1),
    ] {
        let (changes, remedy) = set(value, wanted);
        check(&findings(&changes, &WORKING), (changes.leak(), name, state, part, remedy.leak()));
    }
    check_all(
        &WORKING,
        &[("file proc/sys/kernel/perf_event_paranoid 4", name, Ok, "does not restrict this process", "")],
    );
}

#[test]
fn sampling_depends_on_processor_and_kernel() {
    use State::{Missing, Ok, Unknown, Warning};
    let paranoid = "sysctl -w kernel.perf_event_paranoid=1";
    let no_pmu =
        "without sys/bus/event_source/devices/cpu\nfile sys/bus/event_source/devices/software/type 1";
    let guest = format!("{no_pmu}\nfile proc/cpuinfo vendor_id : GenuineIntel\\ncpu family : 6\\nmodel : 143\\nstepping : 8\\nflags : hypervisor").leak();
    let amd_user = format!("{AMD}{UNPRIVILEGED}").leak();
    let amd_filter =
        format!("{amd_user}\nfile sys/bus/event_source/devices/ibs_op/format/swfilt config2:0").leak();
    let spe = format!("{NEOVERSE}\nfile sys/bus/event_source/devices/arm_spe_0/type 9").leak();
    let name = "source-pmu";
    check_all(
        &WORKING,
        &[
            (no_pmu, name, Missing, "the kernel shows no PMU", "switch the PMU on in the firmware"),
            (
                guest,
                name,
                Missing,
                "the hypervisor shows this guest no PMU",
                "give the guest a PMU (QEMU: -cpu host,pmu=on), or run Isotherm on the host",
            ),
            (
                "file sys/bus/event_source/devices/cpu/caps/max_precise 0",
                name,
                Missing,
                "no precise samples",
                "run Isotherm on the host: this guest's PMU has no PEBS",
            ),
            (
                "file proc/cpuinfo vendor_id : GenuineIntel\\ncpu family : 6\\nmodel : 26\\nstepping : 1",
                name,
                Warning,
                "no table of events",
                "report the first lines of /proc/cpuinfo, or choose --source hint-faults",
            ),
            (
                "file proc/cpuinfo vendor_id : CentaurHauls\\ncpu family : 6\\nmodel : 15\\nstepping : 1",
                name,
                Missing,
                "not supported on this processor",
                "a processor with Intel PEBS, AMD IBS or Arm SPE",
            ),
            (AMD, name, Ok, "samples by IBS on zen4", ""),
            (amd_user, name, Missing, "IBS samples kernel mode too", paranoid),
            (amd_filter, name, Ok, "samples by IBS", ""),
            (
                spe,
                name,
                Missing,
                "Arm SPE on neoverse-v2 is decoded but not sampled yet",
                "choose --source hint-faults or --source accessed-bits",
            ),
            (NEOVERSE, name, Missing, "no Arm SPE", "modprobe arm_spe_pmu"),
            ("without sys/bus", name, Unknown, "shows no device", ""),
            ("without proc/cpuinfo", name, Unknown, "cpuinfo: No such file", ""),
        ],
    );
    let denied = Probes { hardware_events: Probe::Fails(EACCES), ..WORKING };
    check(&findings("", &denied), ("EACCES", name, Missing, "may not be used", paranoid));
    let closed = Probes { software_events: Probe::Fails(EACCES), ..WORKING };
    check(&findings("", &closed), ("EACCES", name, Missing, "perf_event_open is refused", paranoid));
    let absent = Probes { software_events: Probe::Fails(ENOSYS), ..WORKING };
    let unbuilt = "without proc/sys/kernel/perf_event_paranoid";
    check(&findings(unbuilt, &absent), (unbuilt, name, Missing, "no perf events", "CONFIG_PERF_EVENTS=y"));
}

/// A setting or a device that permits userfaultfd does not permit events of forks.
#[test]
fn hint_faults_need_a_capability_that_programs_get_too() {
    use State::{Missing, Ok, Unknown};
    let name = "source-hint-faults";
    let needed = "programs that Isotherm starts need CAP_SYS_PTRACE";
    let root = "sudo isotherm run -- PROGRAM";
    let all = "CapEff: 000001ffffffffff\\nCapBnd: 000001ffffffffff";
    let user = format!("file proc/self/status Uid: 1000 1000 1000 1000\\n{all}\\nCapAmb: ");
    let (by_setcap, ambient) = (format!("{user}0").leak(), format!("{user}80000").leak());
    let bounded = "file proc/self/status Uid: 0 0 0 0\\nCapEff: 0\\nCapBnd: 000001fffff7ffff";
    let container = "file proc/self/uid_map 0 1000 1";
    check_all(
        &WORKING,
        &[
            ("", name, Ok, "with userfaultfd", ""),
            (UNPRIVILEGED, name, Missing, needed, root),
            (by_setcap, name, Missing, needed, root),
            (ambient, name, Ok, "with userfaultfd", ""),
            (
                bounded,
                name,
                Missing,
                needed,
                "the bounding set excludes it: start the container with --cap-add=SYS_PTRACE",
            ),
            (
                container,
                name,
                Missing,
                needed,
                "run Isotherm outside this user namespace, or add the capability to the container",
            ),
            ("without proc/self/status", name, Unknown, "cannot read /proc/self", ""),
        ],
    );
    let denied = Probes { hint_faults: Probe::Fails(EPERM), ..WORKING };
    check(&findings(UNPRIVILEGED, &denied), ("EPERM", name, Missing, needed, root));
    let filtered = "file proc/self/status Uid: 0 0 0 0\\nCapEff: 000001ffffffffff\\nCapBnd: 000001ffffffffff\\nSeccomp: 2";
    let profile =
        "start the container with --security-opt seccomp=unconfined, or a profile that permits userfaultfd";
    for error in [EPERM, ENOSYS] {
        let probe = Probe::Fails(error);
        let refused = Probes { userfaultfd: probe, userfaultfd_move: probe, hint_faults: probe, ..WORKING };
        check(&findings(filtered, &refused), (filtered, name, Missing, "userfaultfd is refused", profile));
    }
    check(&findings("", &denied), ("a module", name, Missing, "userfaultfd is refused", profile));
    let none = Probe::Fails(ENOSYS);
    let unbuilt = Probes { userfaultfd: none, userfaultfd_move: none, hint_faults: none, ..WORKING };
    check(&findings("", &unbuilt), ("ENOSYS", name, Missing, "no userfaultfd", "CONFIG_USERFAULTFD=y"));
    let old = Probes { userfaultfd_move: none, hint_faults: none, ..WORKING };
    check(&findings("", &old), ("old", name, Missing, "cannot move pages", "Linux 6.8 or later"));
}

#[test]
fn sources_in_software() {
    use State::Missing;
    check_all(
        &WORKING,
        &[
            (
                "without proc/self/clear_refs",
                "source-accessed-bits",
                Missing,
                "no /proc/PID/clear_refs",
                "CONFIG_PROC_PAGE_MONITOR=y",
            ),
            (
                "without sys/kernel/mm/page_idle",
                "source-idle-pages",
                Missing,
                "no idle page tracking",
                "CONFIG_IDLE_PAGE_TRACKING=y",
            ),
        ],
    );
    let unmovable = Probes { move_pages: Probe::Fails(ENOSYS), ..WORKING };
    check(
        &findings("", &unmovable),
        ("ENOSYS", "move-pages", Missing, "no move_pages", "CONFIG_NUMA=y CONFIG_MIGRATION=y"),
    );
}

const DEVICE: &str = "
file sys/bus/pci/devices/0000:00:04.0/vendor 0x1af4
file sys/bus/pci/devices/0000:00:04.0/device 0x1110
file sys/bus/pci/devices/0000:00:04.0/resource2 memory
";

#[test]
fn a_virtual_pmu_is_named_where_there_is_one() {
    check(
        &findings(DEVICE, &WORKING),
        (DEVICE, "source-virtual-pmu", State::Ok, "counters of each tier", ""),
    );
    assert!(findings("", &WORKING).find("source-virtual-pmu").is_none());
    let other = "file sys/bus/pci/devices/0000:00:04.0/vendor 0x8086";
    assert!(findings(other, &WORKING).find("source-virtual-pmu").is_none());
}

const UNIT: &str = "
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/type 21
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/cpumask 0
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/epoch_type config:0-1
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/access_type config:2-9
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/epoch_scale config:10-13
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/epoch_multiplier config:14-25
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/hotness_threshold config1:0-31
file sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/hotness_granual config1:32-63
";

#[test]
fn a_hotness_monitoring_unit_is_named_where_the_kernel_drives_one() {
    use State::{Missing, Ok, Unknown};
    let name = "source-device";
    assert!(findings("", &WORKING).find(name).is_none());
    let user = format!("{UNIT}{UNPRIVILEGED}").leak();
    let root = "sudo isotherm run -- PROGRAM";
    let field = "sys/bus/event_source/devices/cxl_hmu_mem0.0.0/format/epoch_type";
    let other = format!("{UNIT}without {field}").leak();
    let garbled = format!("{UNIT}file {field} confug:1").leak();
    let kernel = "a kernel whose driver has the fields of the one proposed in November 2024";
    check_all(
        &WORKING,
        &[
            (UNIT, name, Ok, "by the kernel's driver: cxl_hmu_mem0.0.0", ""),
            (user, name, Missing, "need CAP_SYS_ADMIN", root),
            (other, name, Missing, "no field epoch_type", kernel),
            (garbled, name, Unknown, "expected bits of a configuration word", ""),
        ],
    );
}
