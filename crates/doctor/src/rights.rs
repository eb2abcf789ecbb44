//! Defines what this process may do: its capabilities, its namespaces and what confines it.

use std::path::Path;

use isotherm_linux::LinuxError;
use isotherm_linux::topology::files::{Tree, decimal, format_error, hexadecimal};

const STATUS: &str = "/proc/self/status";
const USER_MAP: &str = "/proc/self/uid_map";
const PID_NAMESPACE: &str = "/proc/self/ns/pid";
/// The first PID namespace, `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// A capability (`capabilities(7)`), by its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Capability {
    DacOverride = 1,
    SysPtrace = 19,
    SysAdmin = 21,
    SysNice = 23,
    SysResource = 24,
    Perfmon = 38,
    Bpf = 39,
    CheckpointRestore = 40,
}

/// What `/proc/self` says of this process.
#[derive(Debug, Clone, Default)]
pub(super) struct Rights {
    effective: u64,
    bounding: u64,
    ambient: u64,
    root: bool,
    /// Whether programs that it starts gain nothing by `setcap`.
    pub(super) no_new_privileges: bool,
    /// Whether a seccomp filter judges its system calls.
    pub(super) seccomp: bool,
    /// Whether it lives in a user namespace of its own: capabilities then hold inside of it alone.
    pub(super) user_namespace: bool,
    /// Whether it lives in a PID namespace of its own; `None` where that cannot be told.
    pub(super) pid_namespace: Option<bool>,
}

impl Rights {
    /// Reads `/proc/self` below the tree's root.
    pub(super) fn read(tree: Tree<'_>) -> Result<Self, LinuxError> {
        let status = tree.text(STATUS)?;
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let capabilities = |name: &str| {
            let set = field(name).and_then(hexadecimal);
            set.ok_or_else(|| format_error(&tree.path(STATUS), "CapEff and CapBnd in hexadecimal", &status))
        };
        // Kernels without seccomp, or before 4.10, leave these out.
        let number = |name: &str| field(name).and_then(decimal::<u32>).unwrap_or(0);
        Ok(Self {
            effective: capabilities("CapEff")?,
            bounding: capabilities("CapBnd")?,
            // Before Linux 4.3 there was no ambient set.
            ambient: field("CapAmb").and_then(hexadecimal).unwrap_or(0),
            root: field("Uid").and_then(|users| users.split_whitespace().nth(1)) == Some("0"),
            no_new_privileges: number("NoNewPrivs") > 0,
            seccomp: number("Seccomp") > 0,
            user_namespace: tree.text_if_there(USER_MAP)?.is_some_and(|map| !is_identity(&map)),
            pid_namespace: pid_namespace(&tree.path(PID_NAMESPACE)),
        })
    }

    /// Whether it has the capability, be it inside of its user namespace alone.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.effective & 1 << capability as u8 != 0
    }

    /// Whether the capability can be had at all: `execve` of a program to which `setcap` gave another one fails.
    pub(super) fn can_have(&self, capability: Capability) -> bool {
        self.bounding & 1 << capability as u8 != 0
    }

    /// Whether it has the capability on the whole machine.
    pub(super) fn holds(&self, capability: Capability) -> bool {
        self.has(capability) && !self.user_namespace
    }

    /// Whether programs that it starts have the capability too: what `setcap` gave to Isotherm is not theirs.
    pub(super) fn passes_on(&self, capability: Capability) -> bool {
        let ambient = self.ambient & 1 << capability as u8 != 0;
        self.holds(capability) && (ambient || self.root)
    }

    /// Whether it may use the PMU, whatever `perf_event_paranoid` says.
    pub(super) fn perfmon(&self) -> bool {
        self.holds(Capability::Perfmon) || self.holds(Capability::SysAdmin)
    }
}

/// Whether every user of the machine is mapped to itself, as outside of user namespaces.
fn is_identity(map: &str) -> bool {
    map.lines().count() <= 1 && map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn pid_namespace(link: &Path) -> Option<bool> {
    let target = std::fs::read_link(link).ok()?;
    Some(target.to_str()? != FIRST_PID_NAMESPACE)
}
