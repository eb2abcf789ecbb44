//! Defines the findings about containers and namespaces: what hides the machine from this process.

use super::facts::Facts;
use super::finding::{Area, Finding, Remedy};

const OWN_CGROUP: &str = "/proc/self/cgroup";
/// Files that engines of containers put into them.
const CONTAINER_FILES: [(&str, &str); 3] = [
    ("/.dockerenv", "Docker"),
    ("/run/.containerenv", "Podman"),
    ("/run/systemd/container", "systemd-nspawn"),
];
/// Parts of a cgroup's path that name the engine.
const CONTAINER_CGROUPS: [(&str, &str); 6] = [
    ("kubepods", "Kubernetes"),
    ("docker", "Docker"),
    ("libpod", "Podman"),
    ("containerd", "containerd"),
    ("lxc", "LXC"),
    ("machine.slice", "a systemd machine"),
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![container(facts), sys_mount(facts), hidden_processes(facts)];
    match &facts.rights_error {
        Some(error) => findings.push(Finding::unknown(Area::Capabilities, "namespaces", error)),
        None => {
            findings.extend([user_namespace(facts), pid_namespace(facts), seccomp(facts), privileges(facts)]);
        }
    }
    findings
}

fn container(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "container");
    // A virtual machine made from a container's image has the file too, and its first process is the machine's.
    let alone = facts.rights.pid_namespace != Some(false);
    let by_file = CONTAINER_FILES.iter().find(|(file, _)| alone && facts.tree.path(file).exists());
    let cgroup = facts.tree.text(OWN_CGROUP);
    let path = cgroup.as_deref().unwrap_or("");
    let engine = by_file.or_else(|| CONTAINER_CGROUPS.iter().find(|(part, _)| path.contains(part)));
    match (engine, cgroup) {
        (Some((sign, engine)), _) => Finding::warning(
            area,
            name,
            format!("this process seems to be in a container of {engine}, by '{sign}'"),
            "what the container withholds: see the other findings here",
            Remedy::advice("run Isotherm on the host, where it can attach to programs in containers"),
        ),
        (None, Ok(_)) => Finding::ok(area, name, "no sign of a container"),
        (None, Err(error)) => Finding::unknown(area, name, error),
    }
}

fn sys_mount(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "sys-mount");
    let there = facts.sys_is_visible();
    match facts.mount_at("/sys") {
        _ if !there => Finding::missing(
            area,
            name,
            "/sys shows nothing of the kernel",
            "nodes, tiers and devices: memory is taken for one node",
            Remedy::command("mount -t sysfs sysfs /sys"),
        ),
        Some(mount) if mount.option("ro").is_some() => Finding::warning(
            area,
            name,
            "/sys is mounted read-only",
            "reclaim of nodes, and every setting below /sys",
            Remedy::command("mount -o remount,rw /sys"),
        ),
        Some(_) => Finding::ok(area, name, "/sys is mounted writable"),
        None => Finding::unknown(area, name, "/sys is there, and no mount of it is listed"),
    }
}

fn hidden_processes(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "hidden-processes");
    let hidden = facts
        .mount_at("/proc")
        .and_then(|mount| mount.option("hidepid"))
        .filter(|&value| value != "0" && value != "off");
    match (facts.mount_at("/proc"), hidden) {
        (_, Some(value)) => Finding::warning(
            area,
            name,
            format!("/proc is mounted with hidepid={value}"),
            "processes of other users: they cannot be followed, nor conflicts seen",
            Remedy::command("mount -o remount,hidepid=0 /proc"),
        ),
        (Some(_), None) => Finding::ok(area, name, "/proc shows every process of this PID namespace"),
        (None, None) => Finding::unknown(area, name, "no mount of /proc is listed"),
    }
}

fn user_namespace(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "user-namespace");
    if !facts.rights.user_namespace {
        return Finding::ok(area, name, "that of the machine");
    }
    Finding::warning(
        area,
        name,
        "this process is in a user namespace of its own, as in a rootless container",
        "capabilities: those held count inside of the namespace alone",
        Remedy::advice("run Isotherm on the host, or in a container with the host's users"),
    )
}

fn pid_namespace(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "pid-namespace");
    match facts.rights.pid_namespace {
        None => Finding::unknown(area, name, "/proc/self/ns/pid cannot be read"),
        Some(false) => Finding::ok(area, name, "that of the machine"),
        Some(true) => Finding::warning(
            area,
            name,
            "this process is in a PID namespace of its own",
            "programs outside of it: they cannot be followed, nor conflicts seen",
            Remedy::advice("run Isotherm on the host, or in a container with --pid=host"),
        ),
    }
}

fn seccomp(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "seccomp");
    if !facts.rights.seccomp {
        return Finding::ok(area, name, "no filter judges this process' system calls");
    }
    let calls = [
        ("perf_event_open", facts.probes.software_events),
        ("userfaultfd", facts.probes.userfaultfd_user_mode),
        ("move_pages", facts.probes.move_pages),
    ];
    let refused: Vec<&str> = calls.iter().filter(|(_, probe)| probe.fails()).map(|&(call, _)| call).collect();
    if refused.is_empty() {
        return Finding::ok(
            area,
            name,
            "a filter judges this process' system calls, and lets through what is used here",
        );
    }
    Finding::warning(
        area,
        name,
        "a filter judges this process' system calls, and may be what refuses some",
        refused.join(", "),
        Remedy::advice(
            "start the container with --security-opt seccomp=unconfined, or a profile that permits these",
        ),
    )
}

fn privileges(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Capabilities, "no-new-privileges");
    if facts.rights.no_new_privileges {
        let remedy = Remedy::advice("start Isotherm without no_new_privs (systemd: NoNewPrivileges=no)");
        return Finding::warning(area, name, "set", "capabilities that setcap gave to the program", remedy);
    }
    Finding::ok(area, name, "not set")
}
