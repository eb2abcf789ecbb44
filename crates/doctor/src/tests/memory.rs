//! Findings about tiers, devices and reclaim.

use super::case::{check, check_all};
use super::machine::{WORKING, findings};
use crate::State;

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
                "reclaim of one node, hint faults (UFFDIO_MOVE), scans",
                "Linux 6.17 or later",
            ),
            ("file proc/sys/kernel/osrelease x", "kernel", Unknown, "'x' is not a version", ""),
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
                "cannot reclaim from one node",
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
            ("file proc/cmdline x", "zswap", Ok, "on, by zstd: 3M of pages in 1M", ""),
            ("without sys/module/zswap", "zswap", Ok, "not in this kernel", ""),
            ("file sys/module/zswap/parameters/enabled N", "zswap", Ok, "off", ""),
            ("file sys/module/zswap/parameters/enabled 2", "zswap", Unknown, "the unknown value '2'", ""),
            (
                "file proc/swaps Filename Type",
                "zswap",
                Missing,
                "there is no swap",
                "a swap file or device (mkswap, swapon): zswap stands before it",
            ),
            ("without proc/swaps", "zswap", Unknown, "/proc/swaps", ""),
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
                "the unknown value",
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
        ("device_dax", "not any node's memory", "daxctl reconfigure-device --mode=system-ram dax9.0"),
        ("-", "without a driver", "modprobe kmem && daxctl reconfigure-device --mode=system-ram dax9.0"),
        ("kmem", "none of it online", "daxctl online-memory dax9.0"),
        ("fsdev", "with the driver fsdev", "daxctl reconfigure-device --mode=system-ram dax9.0"),
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
        ("unused", "cxl-device mem0", Missing, "256.0 GiB of CXL memory in no region", remedy),
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
            (same, "same-tier-node node1", Warning, "so it is in tier 4 with DRAM", run),
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
