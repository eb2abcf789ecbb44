//! Rights of this process: its capabilities, its namespaces and its confinement.

use std::path::Path;

use isotherm_linux::LinuxError;
use isotherm_linux::files::{Tree, decimal, format_error, hexadecimal};

const STATUS: &str = "/proc/self/status";
const USER_MAP: &str = "/proc/self/uid_map";
const PID_NAMESPACE: &str = "/proc/self/ns/pid";
/// Initial PID namespace, `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Capability (`capabilities(7)`), numbered by its bit.
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

#[derive(Debug, Clone, Default)]
pub(super) struct Rights {
    effective: u64,
    bounding: u64,
    ambient: u64,
    root: bool,
    /// Whether programs that it starts gain no capabilities from `setcap`.
    pub(super) no_new_privileges: bool,
    pub(super) seccomp: bool,
    /// Whether it runs in its own user namespace, inside which alone its capabilities hold.
    pub(super) user_namespace: bool,
    /// Whether it runs in its own PID namespace; `None` where this cannot be read.
    pub(super) pid_namespace: Option<bool>,
}

impl Rights {
    pub(super) fn read(tree: Tree<'_>) -> Result<Self, LinuxError> {
        let status = tree.text(STATUS)?;
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let capabilities = |name: &str| {
            let set = field(name).and_then(hexadecimal);
            set.ok_or_else(|| format_error(&tree.path(STATUS), "CapEff and CapBnd in hexadecimal", &status))
        };
        // Kernels without seccomp, and those before 4.10, omit these.
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

    /// Returns whether it has the capability, if only inside its user namespace.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.effective & 1 << capability as u8 != 0
    }

    /// Returns whether it can gain the capability; `execve` of a program with `setcap` of any other fails.
    pub(super) fn can_have(&self, capability: Capability) -> bool {
        self.bounding & 1 << capability as u8 != 0
    }

    /// Returns whether it has the capability on the whole machine.
    pub(super) fn holds(&self, capability: Capability) -> bool {
        self.has(capability) && !self.user_namespace
    }

    /// Returns whether programs that it starts have the capability too; `setcap` does not reach them.
    pub(super) fn passes_on(&self, capability: Capability) -> bool {
        let ambient = self.ambient & 1 << capability as u8 != 0;
        self.holds(capability) && (ambient || self.root)
    }

    /// Whether it may use the PMU regardless of `perf_event_paranoid`.
    pub(super) fn perfmon(&self) -> bool {
        self.holds(Capability::Perfmon) || self.holds(Capability::SysAdmin)
    }
}

/// Returns whether every user is mapped to itself, as outside user namespaces.
fn is_identity(map: &str) -> bool {
    map.lines().count() <= 1 && map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn pid_namespace(link: &Path) -> Option<bool> {
    Some(std::fs::read_link(link).ok()?.to_str()? != FIRST_PID_NAMESPACE)
}
