//! Facts that several parts of an examination share.

use std::io;
use std::path::Path;

use isotherm_linux::LinuxError;
use isotherm_linux::files::Tree;
use isotherm_linux::sys::probe as sys;

use super::finding::{Finding, Remedy, Topic};
use super::probes::Probes;
use super::rights::{Capability, Rights};

/// Reason of unknown findings where [`Facts::sys_is_visible`] is false.
pub(super) const HIDDEN: &str = "/sys is hidden";
pub(super) const OWN_CGROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Mounted file system (`proc_pid_mountinfo(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: String,
    pub(super) kind: String,
    /// Options of the mount and of the file system, separated by commas.
    pub(super) options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let (point, own) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let kind = system.next()?;
        let shared = system.nth(1).unwrap_or("");
        Some(Self { point: point.to_owned(), kind: kind.to_owned(), options: format!("{own},{shared}") })
    }

    /// Returns the value of an option, empty for an option without a value.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut options =
            self.options.split(',').map(|option| option.split_once('=').unwrap_or((option, "")));
        options.find(|&(key, _)| key == name).map(|(_, value)| value)
    }
}

pub(super) struct Facts<'a> {
    pub(super) tree: Tree<'a>,
    pub(super) probes: &'a Probes,
    /// Rights of this process; empty where they cannot be read.
    pub(super) rights: Rights,
    /// Error that kept [`Self::rights`] from being read.
    pub(super) rights_error: Option<LinuxError>,
    pub(super) mounts: Vec<Mount>,
}

impl<'a> Facts<'a> {
    pub(super) fn gather(root: &'a Path, probes: &'a Probes) -> Self {
        let tree = Tree::new(root);
        let (rights, rights_error) = match Rights::read(tree) {
            Ok(rights) => (rights, None),
            Err(error) => (Rights::default(), Some(error)),
        };
        let mounts = tree.text(MOUNTS).map(|text| text.lines().filter_map(Mount::parse).collect());
        Self { tree, probes, rights, rights_error, mounts: mounts.unwrap_or_default() }
    }

    /// Returns whether `/sys` shows the kernel; containers may hide it.
    pub(super) fn sys_is_visible(&self) -> bool {
        self.tree.path("/sys/kernel").exists()
    }

    pub(super) fn sys_file(&self, topic: Topic, name: &str) -> Result<Option<String>, Box<Finding>> {
        match topic.known(self.tree.text_if_there(name))? {
            None if !self.sys_is_visible() => Err(Box::new(topic.unknown(HIDDEN))),
            text => Ok(text),
        }
    }

    pub(super) fn mount_at(&self, point: &str) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.point == point)
    }

    pub(super) fn writable(&self, name: &str) -> io::Result<()> {
        sys::writable(&self.tree.path(name))
    }

    /// Returns the command that gives the capability, `name` without `CAP_`, or advice where it would have no
    /// effect.
    pub(super) fn give(&self, capability: Capability, name: &str, command: Remedy) -> Remedy {
        if self.rights.can_have(capability) {
            self.grant(command)
        } else {
            Remedy::Advice(format!("the bounding set excludes it: start the container with --cap-add={name}"))
        }
    }

    /// Returns the command that grants rights to the program, or advice where it would have no effect.
    pub(super) fn grant(&self, command: Remedy) -> Remedy {
        if self.rights.user_namespace {
            Remedy::advice("run Isotherm outside this user namespace, or add the capability to the container")
        } else if self.rights.no_new_privileges {
            Remedy::advice("start Isotherm without no_new_privs (systemd: NoNewPrivileges=no), or as root")
        } else {
            command
        }
    }

    pub(super) fn unwritable(&self, topic: Topic, file: &str, lost: &str, error: &io::Error) -> Finding {
        let remedy = if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
            Remedy::advice("mount /sys writable in the container, or run Isotherm on the host")
        } else if self.rights.user_namespace {
            Remedy::advice("run Isotherm as root outside this user namespace")
        } else {
            Remedy::as_root()
        };
        topic.missing(format!("cannot write {file}: {error}"), lost, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mounts_are_read_with_point_kind_and_options() {
        let mount = Mount::parse("23 27 0:22 / /sys ro,nosuid shared:7 - sysfs sysfs rw,x=1").unwrap();
        assert_eq!((mount.point.as_str(), mount.kind.as_str()), ("/sys", "sysfs"));
        assert_eq!((mount.option("ro"), mount.option("x"), mount.option("y")), (Some(""), Some("1"), None));
        let bare = Mount::parse("23 27 0:22 / /proc rw - proc proc").unwrap();
        assert_eq!(bare.option("hidepid"), None);
    }

    proptest! {
        #[test]
        fn no_line_makes_the_parser_panic(line in "([a-z0-9/,=:-]{0,6} ){0,12}") {
            let _ = Mount::parse(&line);
        }
    }
}
