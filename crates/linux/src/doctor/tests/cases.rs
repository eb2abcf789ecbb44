//! Each way in which a machine can lack something, and what the doctor says of it.

use isotherm_core::{Signal, Signals};

use super::machine::{WORKING, findings};
use crate::doctor::{Findings, PolicySupport, Probe, Probes, Remedy, State};

const UNPRIVILEGED: &str =
    "file proc/self/status CapEff: 0000000000000000\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 0\\nSeccomp: 0";
const SETCAP: &str =
    "setcap cap_perfmon,cap_sys_nice,cap_sys_ptrace,cap_sys_resource+ep $(command -v isotherm)";
const FILTERED: &str =
    "file proc/self/status CapEff: 0\\nCapBnd: 00000000a80425fb\\nNoNewPrivs: 0\\nSeccomp: 2";
const AMD: &str = "
file proc/cpuinfo vendor_id : AuthenticAMD\\ncpu family : 25\\nmodel : 17\\nmodel name : EPYC\\nstepping : 1\\nflags : fpu
file sys/bus/event_source/devices/ibs_op/type 9
";
const NEOVERSE: &str =
    "file proc/cpuinfo processor : 0\\nCPU implementer : 0x41\\nCPU part : 0xd4f\\nCPU revision : 0";

/// The machine's changes, the finding, its state, part of its meaning or of what is lost, the remedy's text.
type Case = (&'static str, &'static str, State, &'static str, &'static str);

fn text(remedy: Option<&Remedy>) -> &str {
    match remedy {
        None => "",
        Some(
            Remedy::Command(text)
            | Remedy::KernelOption(text)
            | Remedy::BootParameter(text)
            | Remedy::Advice(text),
        ) => text,
    }
}

fn check(found: &Findings, (changes, title, state, part, remedy): Case) {
    let finding = found.find(title).unwrap_or_else(|| panic!("{changes}: no finding {title}"));
    assert_eq!(finding.state, state, "{changes}: {finding:#?}");
    let said = format!("{} / {}", finding.meaning, finding.lost.as_deref().unwrap_or(""));
    assert!(said.contains(part), "{changes}: {said}");
    assert_eq!(text(finding.remedy.as_ref()), remedy, "{changes}");
}

fn check_all(probes: &Probes, cases: &[Case]) {
    cases.iter().for_each(|&case| check(&findings(case.0, probes), case));
}

#[test]
fn memory() {
    use State::{Missing, Ok, Unknown, Warning};
    check_all(
        &WORKING,
        &[
            (
                "file proc/sys/kernel/osrelease 6.5.0",
                "kernel",
                Warning,
                "reclaim of one node, scans",
                "Linux 6.17 or later",
            ),
            ("file proc/sys/kernel/osrelease x", "kernel", Unknown, "'x' is no version", ""),
            (
                "file sys/devices/virtual/memory_tiering/memory_tier22/nodelist 7-",
                "memory-tiers",
                Unknown,
                "found '7-'",
                "",
            ),
            (
                "without sys/devices/virtual/memory_tiering",
                "memory-tiers",
                Warning,
                "2 tiers, guessed from distances",
                "Linux 6.1 or later, or check the guess and give --tiers",
            ),
            (
                "file sys/kernel/mm/numa/demotion_enabled false",
                "demotion",
                Missing,
                "does not demote",
                "echo 1 > /sys/kernel/mm/numa/demotion_enabled",
            ),
            ("file sys/kernel/mm/numa/demotion_enabled maybe", "demotion", Unknown, "'maybe'", ""),
            (
                "without sys/kernel/mm/numa/demotion_enabled",
                "demotion",
                Missing,
                "no demotion",
                "CONFIG_NUMA=y CONFIG_MIGRATION=y (Linux 5.15 or later)",
            ),
            (
                "without sys/devices/system/node/node0/reclaim",
                "node-reclaim",
                Missing,
                "cannot be asked",
                "Linux 6.17 or later",
            ),
            ("without sys/kernel/mm/lru_gen", "multi-gen-lru", Missing, "has no multi", "CONFIG_LRU_GEN=y"),
            (
                "file sys/kernel/mm/lru_gen/enabled 0x0000",
                "multi-gen-lru",
                Missing,
                "off",
                "echo y > /sys/kernel/mm/lru_gen/enabled",
            ),
            (
                "file sys/kernel/mm/transparent_hugepage/enabled [always] madvise never",
                "transparent-huge-pages",
                Ok,
                "always",
                "",
            ),
            (
                "file sys/kernel/mm/transparent_hugepage/enabled",
                "transparent-huge-pages",
                Unknown,
                "not known here",
                "",
            ),
            (
                "without sys/fs/cgroup/user.slice/a.scope/memory.reclaim",
                "cgroup-reclaim",
                Missing,
                "/user.slice/a.scope has no",
                "systemd-run --scope -p MemoryAccounting=yes isotherm run -- PROGRAM",
            ),
            (
                "file sys/fs/cgroup/cgroup.controllers cpu io",
                "cgroup-reclaim",
                Missing,
                "no cgroup of version 2 controls memory",
                "systemd.unified_cgroup_hierarchy=1",
            ),
            (
                "file sys/devices/system/node/node1/access1/initiators/read_latency x",
                "unreadable-file 1",
                Unknown,
                "found 'x'",
                "",
            ),
        ],
    );
}

#[test]
fn devices_that_are_no_tier_yet() {
    use State::{Missing, Ok};
    let driver = |name: &str| format!("dax dax9.0 7 274877906944 {name}");
    let cases = [
        ("device_dax", "no node's memory", "daxctl reconfigure-device --mode=system-ram dax9.0"),
        ("-", "have no driver", "modprobe kmem && daxctl reconfigure-device --mode=system-ram dax9.0"),
        ("kmem", "none of it is online", "daxctl online-memory dax9.0"),
        ("fsdev", "have the driver fsdev", "daxctl reconfigure-device --mode=system-ram dax9.0"),
    ];
    for (name, part, remedy) in cases {
        let found = findings(&driver(name), &WORKING);
        check(&found, (name.to_owned().leak(), "dax-device dax9.0", Missing, part, remedy));
        assert_eq!(found.find("dax-device dax0.0").unwrap().state, Ok);
    }
    assert_eq!(findings("dax dax9.0 -1 0 -", &WORKING).find("dax-device dax9.0"), None);

    let unused = "
        without sys/bus/cxl/devices/region0
        without sys/bus/dax/devices/dax0.0
        without sys/devices/virtual/memory_tiering/memory_tier22
        file sys/devices/system/node/node1/cpulist 32-63";
    let remedy = "cxl create-region -m -t ram -d decoder0.0 mem0";
    check(
        &findings(unused, &WORKING),
        ("unused", "cxl-device mem0", Missing, "256.0 GiB of CXL memory belong to no", remedy),
    );
}

#[test]
fn one_tier_and_nodes_in_the_wrong_one() {
    use State::{Missing, Warning};
    let same = "without sys/devices/virtual/memory_tiering/memory_tier22\nfile sys/devices/virtual/memory_tiering/memory_tier4/nodelist 0-1";
    let reserve = format!("{same}\nfile proc/cmdline quiet efi=nosoftreserve").leak();
    let run = "isotherm run --tiers 0,1 -- PROGRAM";
    let two_sockets = "
        without sys/devices/virtual/memory_tiering/memory_tier22
        file sys/devices/virtual/memory_tiering/memory_tier4/nodelist 0-1
        file sys/devices/system/node/node1/cpulist 32-63";
    check_all(
        &WORKING,
        &[
            (same, "same-tier-node node1", Warning, "put it into tier 4 with DRAM", run),
            (same, "memory-tiers", Missing, "all memory is one tier: tier 0 is nodes 0+1", run),
            (
                reserve,
                "same-tier-node node1",
                Warning,
                "node 1 has no processor",
                "remove 'efi=nosoftreserve' from the kernel's command line and boot",
            ),
            (two_sockets, "memory-tiers", Missing, "shadow mode", run),
        ],
    );
    assert_eq!(findings(two_sockets, &WORKING).find("same-tier-node node1"), None);
}

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
                "sysctl -w vm.max_map_count=262144",
            ),
            ("without proc/sys/vm/max_map_count", "max-map-count", Unknown, "not known to this kernel", ""),
            (
                "file proc/sys/vm/max_map_count lots",
                "max-map-count",
                Unknown,
                "expected a whole number, found 'lots'",
                "",
            ),
            ("without dev/userfaultfd", "dev-userfaultfd", Ok, "and need not", ""),
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
        &[("file proc/sys/kernel/perf_event_paranoid 4", name, Ok, "this process is above it", "")],
    );
}

#[test]
fn capabilities() {
    use State::{Missing, Ok};
    let bounded = "file proc/self/status CapEff: 0000000000000000\\nCapBnd: 00000000a80425fb";
    let namespace = "file proc/self/uid_map 0 1000 1";
    let outside = "run Isotherm outside of this user namespace, or add the capability to the container";
    let no_new = "file proc/self/status CapEff: 0\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 1";
    check_all(
        &WORKING,
        &[
            (UNPRIVILEGED, "cap-perfmon", Missing, "not held", SETCAP),
            (UNPRIVILEGED, "cap-sys-nice", Missing, "pages that several processes share", SETCAP),
            (UNPRIVILEGED, "cap-sys-admin", Missing, "frame numbers", "sudo isotherm run -- PROGRAM"),
            (UNPRIVILEGED, "cap-bpf", Ok, "not held, and nothing here needs it", ""),
            (
                UNPRIVILEGED,
                "source-idle-pages",
                Missing,
                "frame numbers are hidden",
                "sudo isotherm run -- PROGRAM",
            ),
            (
                bounded,
                "cap-perfmon",
                Missing,
                "not held",
                "the bounding set excludes it: start the container with --cap-add=PERFMON",
            ),
            (
                "file proc/self/status CapEff: 0\\nCapBnd: 0000004000800000",
                "cap-perfmon",
                Missing,
                "not held",
                "setcap cap_perfmon,cap_sys_nice+ep $(command -v isotherm)",
            ),
            (namespace, "cap-perfmon", Missing, "inside of this user namespace alone", outside),
            (
                namespace,
                "user-namespace",
                State::Warning,
                "of its own",
                "run Isotherm on the host, or in a container with the host's users",
            ),
            (
                no_new,
                "cap-perfmon",
                Missing,
                "not held",
                "start Isotherm without no_new_privs (systemd: NoNewPrivileges=no), or as root",
            ),
            (
                no_new,
                "no-new-privileges",
                State::Warning,
                "set",
                "start Isotherm without no_new_privs (systemd: NoNewPrivileges=no)",
            ),
            (
                "file proc/self/status CapEff: zero",
                "cap-perfmon",
                State::Unknown,
                "expected CapEff and CapBnd in hexadecimal",
                "",
            ),
        ],
    );
}

#[test]
fn confinement() {
    use State::{Missing, Unknown, Warning};
    let mounts = |proc: &str, sys: &str| {
        format!("file proc/self/mountinfo 1 1 0:1 / /proc rw - proc proc {proc}\\n2 1 0:2 / /sys {sys} - sysfs sysfs rw").leak()
    };
    check_all(
        &WORKING,
        &[
            (
                mounts("rw,hidepid=2", "rw"),
                "hidden-processes",
                Warning,
                "hidepid=2",
                "mount -o remount,hidepid=0 /proc",
            ),
            (
                mounts("rw,hidepid=invisible", "rw"),
                "hidden-processes",
                Warning,
                "hidepid=invisible",
                "mount -o remount,hidepid=0 /proc",
            ),
            (mounts("rw", "ro,nosuid"), "sys-mount", Warning, "read-only", "mount -o remount,rw /sys"),
            ("without sys", "sys-mount", Missing, "shows nothing", "mount -t sysfs sysfs /sys"),
            (
                "without sys\nfile proc/meminfo MemTotal: 4194304 kB\\nMemFree: 1048576 kB",
                "memory-tiers",
                Unknown,
                "/sys is hidden; memory is taken for one node: tier 0 is node 0 (4.0 GiB, 1.0 GiB free)",
                "",
            ),
            ("without sys", "source-pmu", Unknown, "/sys is hidden", ""),
            ("without sys", "multi-gen-lru", Unknown, "/sys is hidden", ""),
            (
                "link proc/self/ns/pid pid:[4026532179]",
                "pid-namespace",
                Warning,
                "of its own",
                "run Isotherm on the host, or in a container with --pid=host",
            ),
            ("without proc/self/ns", "pid-namespace", Unknown, "cannot be read", ""),
            (
                "file proc/self/cgroup 0::/kubepods.slice/pod1",
                "container",
                Warning,
                "container of Kubernetes",
                "run Isotherm on the host, where it can attach to programs in containers",
            ),
            (
                "file .dockerenv\nlink proc/self/ns/pid pid:[4026532179]",
                "container",
                Warning,
                "Docker, by '/.dockerenv'",
                "run Isotherm on the host, where it can attach to programs in containers",
            ),
            ("file .dockerenv", "container", State::Ok, "no sign", ""),
        ],
    );
}

#[test]
fn a_seccomp_filter_is_blamed_for_what_it_refuses() {
    use State::{Missing, Ok, Warning};
    let refused = Probe::Fails(libc::EPERM);
    let probes = Probes { software_events: refused, move_pages: refused, ..WORKING };
    let found = findings(FILTERED, &probes);
    check(
        &found,
        (
            FILTERED,
            "seccomp",
            Warning,
            "perf_event_open, move_pages",
            "start the container with --security-opt seccomp=unconfined, or a profile that permits these",
        ),
    );
    check(
        &found,
        (
            FILTERED,
            "source-pmu",
            Missing,
            "refused, by a seccomp filter or a setting",
            "give the container --cap-add=PERFMON and a seccomp profile that permits perf_event_open",
        ),
    );
    check(
        &found,
        (
            FILTERED,
            "move-pages",
            Missing,
            "Operation not permitted",
            "give the container --cap-add=SYS_NICE, which its seccomp profile asks for",
        ),
    );
    check(&findings(FILTERED, &WORKING), (FILTERED, "seccomp", Ok, "lets through what is used here", ""));
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
                "not known for this processor",
                "a processor with Intel PEBS, AMD IBS or Arm SPE",
            ),
            (AMD, name, Ok, "samples by IBS on zen4", ""),
            (amd_user, name, Missing, "IBS samples kernel mode too", paranoid),
            (amd_filter, name, Ok, "samples by IBS", ""),
            (spe, name, Ok, "samples by Arm SPE on neoverse-v2", ""),
            (NEOVERSE, name, Missing, "no Arm SPE", "modprobe arm_spe_pmu"),
            ("without sys/bus", name, Unknown, "shows no device", ""),
            ("without proc/cpuinfo", name, Unknown, "cpuinfo: No such file", ""),
        ],
    );
    let denied = Probes { hardware_events: Probe::Fails(libc::EACCES), ..WORKING };
    check(&findings("", &denied), ("EACCES", name, Missing, "may not be used", paranoid));
    let closed = Probes { software_events: Probe::Fails(libc::EACCES), ..WORKING };
    check(&findings("", &closed), ("EACCES", name, Missing, "perf_event_open is refused", paranoid));
    let absent = Probes { software_events: Probe::Fails(libc::ENOSYS), ..WORKING };
    let unbuilt = "without proc/sys/kernel/perf_event_paranoid";
    check(&findings(unbuilt, &absent), (unbuilt, name, Missing, "no perf events", "CONFIG_PERF_EVENTS=y"));
}

#[test]
fn sources_in_software() {
    use State::{Missing, Warning};
    let pages = "hint faults on pages that programs hand to system calls";
    let denied = Probes { userfaultfd: Probe::Fails(libc::EPERM), ..WORKING };
    let name = "source-hint-faults";
    check(
        &findings("", &denied),
        ("EPERM", name, Warning, "for user mode alone", "sysctl -w vm.unprivileged_userfaultfd=1"),
    );
    let none = Probes {
        userfaultfd: Probe::Fails(libc::ENOSYS),
        userfaultfd_user_mode: Probe::Fails(libc::ENOSYS),
        ..WORKING
    };
    check(&findings("", &none), ("ENOSYS", name, Warning, pages, "CONFIG_USERFAULTFD=y"));
    let device = format!("{UNPRIVILEGED}\nwithout dev/userfaultfd").leak();
    check(
        &findings(device, &denied),
        (
            device,
            "dev-userfaultfd",
            Missing,
            "no /dev/userfaultfd",
            "CONFIG_USERFAULTFD=y (Linux 6.1 or later)",
        ),
    );
    check(
        &findings(device, &denied),
        (device, "unprivileged-userfaultfd", Warning, "is 0", "sysctl -w vm.unprivileged_userfaultfd=1"),
    );
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
    let unmovable = Probes { move_pages: Probe::Fails(libc::ENOSYS), ..WORKING };
    check(
        &findings("", &unmovable),
        ("ENOSYS", "move-pages", Missing, "no move_pages", "CONFIG_NUMA=y CONFIG_MIGRATION=y"),
    );
}

#[test]
fn rivals() {
    use State::{Ok, Warning};
    let damon = |state: &str, action: &str| {
        let thread = "sys/kernel/mm/damon/admin/kdamonds/0";
        format!("file {thread}/state {state}\nfile {thread}/contexts/0/schemes/0/action stat\nfile {thread}/contexts/0/schemes/1/action {action}").leak()
    };
    let owner = "ask its owner to stop it; Isotherm never touches a DAMON that runs";
    check_all(
        &WORKING,
        &[
            (
                "file proc/sys/kernel/numa_balancing 2",
                "numa-balancing",
                Warning,
                "is 2",
                "sysctl -w kernel.numa_balancing=0",
            ),
            ("without proc/sys/kernel/numa_balancing", "numa-balancing", Ok, "none", ""),
            (damon("on", "migrate_hot"), "damon kdamond0", Warning, "the scheme migrate_hot", owner),
            (damon("on", "stat"), "damon kdamond0", Ok, "moves nothing", ""),
            (damon("off", "migrate_hot"), "damon", Ok, "none runs", ""),
            ("without sys/kernel/mm/damon", "damon", Ok, "the kernel has none", ""),
            (
                "file sys/module/damon_reclaim/parameters/enabled Y",
                "damon-module damon_reclaim",
                Warning,
                "switched on",
                "echo N > /sys/module/damon_reclaim/parameters/enabled",
            ),
            (
                "file proc/77/comm memtierd",
                "rival-process 77",
                Warning,
                "process 77, memtierd, tiers memory too",
                "kill 77",
            ),
            (
                "file proc/78/comm python3\nfile proc/78/cmdline /usr/bin/python3\0-u\0/opt/damo/damo.py\0start",
                "rival-process 78",
                Warning,
                "damo.py",
                "kill 78",
            ),
            (
                "file proc/79/comm vi\nfile proc/79/cmdline vi\0/etc/memtierd",
                "rival-process",
                Ok,
                "none among",
                "",
            ),
        ],
    );
}

#[test]
fn policies_say_what_they_lack_and_which_finding_mends_it() {
    let changes = "file proc/sys/kernel/perf_event_paranoid 4\nwithout sys/bus/event_source/devices/cpu\nfile sys/bus/event_source/devices/software/type 1";
    let mut found = findings(changes, &WORKING);
    let needs = Signals::NONE.with(Signal::LoadSamples).with(Signal::TierStalls);
    let offered = Signals::NONE.with(Signal::LoadSamples).with(Signal::HintFaults);
    let nomad = Signals::NONE.with(Signal::TransactionalMoves);
    found.judge(
        [("pact", needs), ("hybridtier", Signals::NONE.with(Signal::LoadSamples)), ("nomad", nomad)],
        offered,
    );
    let usable: Vec<(&str, bool)> =
        found.policies.iter().map(|policy| (policy.policy.as_str(), policy.usable)).collect();
    assert_eq!(usable, [("pact", false), ("hybridtier", true), ("nomad", false)]);
    let lack = &found.policies[0].lacks[0];
    assert_eq!(found.policies[0].lacks.len(), 1);
    assert_eq!(
        (lack.signal.as_str(), lack.mended_by.as_slice()),
        ("stall and occupancy counters of each tier", &["source-pmu".to_owned()][..])
    );
    assert!(found.policies[2].lacks[0].mended_by.is_empty());
    let every = Signal::ALL.into_iter().fold(Signals::NONE, Signals::with);
    assert!(PolicySupport::judge("any", every, every, &[]).usable);
    let text = found.to_string();
    assert!(
        text.contains("policies\n  missing  pact: lacks stall and occupancy counters of each tier (see\n"),
        "{text}"
    );
    assert!(text.contains("  ok       hybridtier: usable\n") && text.contains("(nothing here\n"), "{text}");
}
