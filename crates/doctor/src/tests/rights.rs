//! Findings about capabilities, containers and filters.

use super::case::{EPERM, UNPRIVILEGED, check, check_all};
use super::machine::{WORKING, findings};
use crate::{Probe, Probes, State};

const SETCAP: &str =
    "setcap cap_perfmon,cap_sys_nice,cap_sys_ptrace,cap_sys_resource+ep $(command -v isotherm)";
const FILTERED: &str =
    "file proc/self/status CapEff: 0\\nCapBnd: 00000000a80425fb\\nNoNewPrivs: 0\\nSeccomp: 2";

#[test]
fn capabilities() {
    use State::{Missing, Ok};
    let bounded = "file proc/self/status CapEff: 0000000000000000\\nCapBnd: 00000000a80425fb";
    let namespace = "file proc/self/uid_map 0 1000 1";
    let outside = "run Isotherm outside this user namespace, or add the capability to the container";
    let no_new = "file proc/self/status CapEff: 0\\nCapBnd: 000001ffffffffff\\nNoNewPrivs: 1";
    check_all(
        &WORKING,
        &[
            (UNPRIVILEGED, "cap-perfmon", Missing, "not held", SETCAP),
            (UNPRIVILEGED, "cap-sys-nice", Missing, "pages that several processes share", SETCAP),
            (UNPRIVILEGED, "cap-sys-admin", Missing, "frame numbers", "sudo isotherm run -- PROGRAM"),
            (UNPRIVILEGED, "cap-bpf", Ok, "not held; Isotherm does not need it", ""),
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
            (namespace, "cap-perfmon", Missing, "only inside this user namespace", outside),
            (
                namespace,
                "user-namespace",
                State::Warning,
                "its own user namespace",
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
                "/sys is hidden; all memory is treated as one node: tier 0 is node 0 (4.0 GiB, 1.0 GiB free)",
                "",
            ),
            ("without sys", "source-pmu", Unknown, "/sys is hidden", ""),
            ("without sys", "multi-gen-lru", Unknown, "/sys is hidden", ""),
            (
                "link proc/self/ns/pid pid:[4026532179]",
                "pid-namespace",
                Warning,
                "its own PID namespace",
                "run Isotherm on the host, or in a container with --pid=host",
            ),
            ("without proc/self/ns", "pid-namespace", Unknown, "cannot read the PID namespace", ""),
            (
                "file proc/self/cgroup 0::/kubepods.slice/pod1",
                "container",
                Warning,
                "in a Kubernetes container",
                "run Isotherm on the host, where it can attach to programs in containers",
            ),
            (
                "file .dockerenv\nlink proc/self/ns/pid pid:[4026532179]",
                "container",
                Warning,
                "Docker container ('/.dockerenv')",
                "run Isotherm on the host, where it can attach to programs in containers",
            ),
            ("file .dockerenv", "container", State::Ok, "no sign", ""),
        ],
    );
}

#[test]
fn a_seccomp_filter_is_blamed_for_what_it_refuses() {
    use State::{Missing, Ok, Warning};
    let refused = Probe::Fails(EPERM);
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
            "give the container --cap-add=SYS_NICE, so that its seccomp profile permits move_pages",
        ),
    );
    check(&findings(FILTERED, &WORKING), (FILTERED, "seccomp", Ok, "passes the system calls", ""));
}
