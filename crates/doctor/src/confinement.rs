//! Checks for containers and namespaces, which hide the machine from this process.

use super::facts::{Facts, OWN_CGROUP};
use super::finding::{Area, Checked, Finding, Remedy, Topic, settled};

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
    ("machine.slice", "systemd-machined"),
];
const AREA: Area = Area::Capabilities;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = vec![settled(container(facts)), sys_mount(facts), hidden_processes(facts)];
    match &facts.rights_error {
        Some(error) => findings.push(AREA.topic("namespaces").unknown(error)),
        None => {
            findings.extend([user_namespace(facts), pid_namespace(facts), seccomp(facts), privileges(facts)]);
        }
    }
    findings
}

fn container(facts: &Facts<'_>) -> Checked {
    let topic = AREA.topic("container");
    // A virtual machine made from a container's image has the file too, but runs in the first PID namespace.
    let contained = facts.rights.pid_namespace != Some(false);
    let by_file = CONTAINER_FILES.iter().find(|(file, _)| contained && facts.tree.path(file).exists());
    let cgroup = facts.tree.text(OWN_CGROUP);
    let path = cgroup.as_deref().unwrap_or("");
    let engine = by_file.or_else(|| CONTAINER_CGROUPS.iter().find(|(part, _)| path.contains(part)));
    if let Some((sign, engine)) = engine {
        let meaning = format!("this process seems to run in a {engine} container ('{sign}')");
        let lost = "what the container withholds: see the other findings here";
        return Ok(topic.warning(meaning, lost, on_host("where it can attach to programs in containers")));
    }
    topic.known(cgroup)?;
    Ok(topic.ok("no sign of a container"))
}

fn on_host(rest: &str) -> Remedy {
    Remedy::Advice(format!("run Isotherm on the host, {rest}"))
}

fn sys_mount(facts: &Facts<'_>) -> Finding {
    let topic = AREA.topic("sys-mount");
    match facts.mount_at("/sys") {
        _ if !facts.sys_is_visible() => topic.missing(
            "/sys shows nothing of the kernel",
            "nodes, tiers and devices: all memory is treated as one node",
            Remedy::command("mount -t sysfs sysfs /sys"),
        ),
        Some(mount) if mount.option("ro").is_some() => topic.warning(
            "/sys is mounted read-only",
            "reclaim of nodes, and every setting below /sys",
            Remedy::command("mount -o remount,rw /sys"),
        ),
        Some(_) => topic.ok("/sys is mounted writable"),
        None => topic.unknown("/sys exists, but its mount is not listed"),
    }
}

fn hidden_processes(facts: &Facts<'_>) -> Finding {
    let topic = AREA.topic("hidden-processes");
    let Some(mount) = facts.mount_at("/proc") else {
        return topic.unknown("the mount of /proc is not listed");
    };
    match mount.option("hidepid").filter(|&value| value != "0" && value != "off") {
        Some(value) => topic.warning(
            format!("/proc is mounted with hidepid={value}"),
            "processes of other users: they cannot be followed, and conflicts among them are not seen",
            Remedy::command("mount -o remount,hidepid=0 /proc"),
        ),
        None => topic.ok("/proc shows every process of this PID namespace"),
    }
}

fn user_namespace(facts: &Facts<'_>) -> Finding {
    let lost = "capabilities: those held count only inside the namespace";
    let own = Some(facts.rights.user_namespace);
    namespace(AREA.topic("user-namespace"), own, "user", lost, "or in a container with the host's users")
}

fn pid_namespace(facts: &Facts<'_>) -> Finding {
    let lost = "programs outside it: they cannot be followed, and conflicts among them are not seen";
    let own = facts.rights.pid_namespace;
    namespace(AREA.topic("pid-namespace"), own, "PID", lost, "or in a container with --pid=host")
}

fn namespace(topic: Topic, own: Option<bool>, kind: &str, lost: &str, elsewhere: &str) -> Finding {
    match own {
        None => topic.unknown(format!("cannot read the {kind} namespace in /proc/self/ns")),
        Some(false) => topic.ok("the host's"),
        Some(true) => {
            topic.warning(format!("this process runs in its own {kind} namespace"), lost, on_host(elsewhere))
        }
    }
}

fn seccomp(facts: &Facts<'_>) -> Finding {
    let topic = AREA.topic("seccomp");
    if !facts.rights.seccomp {
        return topic.ok("system calls are not filtered");
    }
    let calls = [
        ("perf_event_open", facts.probes.software_events),
        ("userfaultfd", facts.probes.userfaultfd),
        ("move_pages", facts.probes.move_pages),
    ];
    let refused: Vec<&str> = calls.iter().filter(|(_, probe)| probe.fails()).map(|&(call, _)| call).collect();
    if refused.is_empty() {
        return topic.ok("a filter passes the system calls that Isotherm uses");
    }
    let fix = "start the container with --security-opt seccomp=unconfined, or a profile that permits these";
    topic.warning("a filter may be what refuses some system calls", refused.join(", "), Remedy::advice(fix))
}

fn privileges(facts: &Facts<'_>) -> Finding {
    let topic = AREA.topic("no-new-privileges");
    if !facts.rights.no_new_privileges {
        return topic.ok("not set");
    }
    let remedy = Remedy::advice("start Isotherm without no_new_privs (systemd: NoNewPrivileges=no)");
    topic.warning("set", "capabilities that setcap gave to the program", remedy)
}
