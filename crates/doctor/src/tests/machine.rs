//! A machine that lacks nothing, from which each test takes something away.

use tempfile::TempDir;

use crate::{Findings, Probe, Probes, State, examine};
use isotherm_linux::topology::fixtures::{CXL, extend, tree};

/// DRAM and CXL memory in separate tiers, a Sapphire Rapids with PEBS, root's rights, and no conflict.
const SOUND: &str = "
file proc/sys/kernel/osrelease 6.18.1-amd64
file proc/cmdline root=/dev/sda1 quiet
file proc/cpuinfo vendor_id : GenuineIntel\\ncpu family : 6\\nmodel : 143\\nmodel name : Intel(R) Xeon(R)\\nstepping : 8\\nflags : fpu
file proc/self/status Name: isotherm\\nUid: 0 0 0 0\\nCapEff: 000001ffffffffff\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 0\\nSeccomp: 0
file proc/self/uid_map 0 0 4294967295
link proc/self/ns/pid pid:[4026531836]
file proc/self/cgroup 0::/user.slice/a.scope
file proc/self/mountinfo 22 1 0:21 / /proc rw,relatime - proc proc rw\\n23 1 0:22 / /sys rw,nosuid - sysfs sysfs rw\\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
file proc/self/clear_refs
file proc/self/smaps
file proc/self/pagemap
file proc/locks
file proc/1/comm systemd
file proc/1/cmdline /sbin/init
file proc/sys/kernel/perf_event_paranoid 2
file proc/sys/kernel/perf_event_max_sample_rate 100000
file proc/sys/kernel/perf_event_mlock_kb 516
file proc/sys/kernel/perf_cpu_time_max_percent 25
file proc/sys/kernel/numa_balancing 0
file proc/sys/kernel/yama/ptrace_scope 1
file proc/sys/vm/max_map_count 65530
file sys/fs/cgroup/cgroup.controllers cpu memory io
file sys/fs/cgroup/user.slice/a.scope/memory.reclaim
file sys/devices/system/node/node0/reclaim
file sys/kernel/mm/lru_gen/enabled 0x0007
file sys/kernel/mm/transparent_hugepage/enabled always [madvise] never
file sys/module/zswap/parameters/enabled Y
file sys/module/zswap/parameters/compressor zstd
file proc/swaps Filename Type Size Used Priority\\n/dev/sda2 partition 8388604 3145728 -2
file proc/meminfo MemTotal: 16384 kB\\nZswap: 1024 kB\\nZswapped: 3072 kB
file sys/kernel/mm/page_idle/bitmap
file sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds 0
file sys/bus/event_source/devices/cpu/caps/max_precise 3
";

/// Answers of that machine's kernel.
pub(super) const WORKING: Probes = Probes {
    hardware_events: Probe::Works,
    software_events: Probe::Works,
    userfaultfd: Probe::Works,
    userfaultfd_move: Probe::Works,
    hint_faults: Probe::Works,
    move_pages: Probe::Works,
};

/// Writes the sound machine's files, then these lines.
pub(super) fn machine(changes: &str) -> TempDir {
    let root = tree(&format!("{CXL}{SOUND}"));
    extend(root.path(), changes);
    root
}

/// Examines that machine.
pub(super) fn findings(changes: &str, probes: &Probes) -> Findings {
    examine(machine(changes).path(), probes)
}

#[test]
fn nothing_is_wrong_with_a_sound_machine() {
    let found = findings("", &WORKING);
    let wrong: Vec<_> = found.findings.iter().filter(|finding| finding.state != State::Ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(found.findings.len() > 35, "only {} findings", found.findings.len());
    let tiers = &found.find("memory-tiers").unwrap().meaning;
    assert_eq!(
        tiers,
        "2 tiers: tier 0 is node 0 (124.0 GiB, 38.1 GiB free); tier 1 is node 1 (248.0 GiB, 247.0 GiB free)"
    );
    assert_eq!(found.find("source-pmu").unwrap().meaning, "samples by PEBS on sapphire-rapids");
    assert_eq!(found.find("dax-device dax0.0").unwrap().meaning, "256.0 GiB online as memory of node 1");
}

#[test]
fn an_empty_tree_is_unknown_and_no_failure() {
    let root = tempfile::tempdir().unwrap();
    let found = examine(root.path(), &Probes::default());
    for title in [
        "kernel",
        "memory-tiers",
        "source-pmu",
        "processor",
        "cap-perfmon",
        "demotion",
        "damon",
        "namespaces",
    ] {
        let finding = found.find(title).unwrap_or_else(|| panic!("no finding {title}"));
        assert_eq!(finding.state, State::Unknown, "{finding:?}");
    }
    assert!(found.find("kernel").unwrap().meaning.contains("proc/sys/kernel/osrelease: No such file"));
}
