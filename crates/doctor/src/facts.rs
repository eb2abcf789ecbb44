//! Defines what several parts of the doctor need to know.

use std::fs::File;
use std::io;
use std::path::Path;

use super::finding::Remedy;
use super::probes::Probes;
use super::rights::Rights;
use isotherm_linux::LinuxError;
use isotherm_linux::sys::probe as sys;
use isotherm_linux::topology::files::Tree;

/// Why something is unknown where [`Facts::sys_is_visible`] is false.
pub(super) const HIDDEN: &str = "/sys is hidden";
/// Since Linux 6.1, userfaultfd for whom its permissions name.
pub(super) const USERFAULTFD_DEVICE: &str = "/dev/userfaultfd";
const MOUNTS: &str = "/proc/self/mountinfo";

/// A mounted file system (`proc_pid_mountinfo(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: String,
    pub(super) kind: String,
    /// Options of the mount and of the file system, with commas.
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

    /// The value of the option `name`, empty for one without a value.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut options =
            self.options.split(',').map(|option| option.split_once('=').unwrap_or((option, "")));
        options.find(|&(key, _)| key == name).map(|(_, value)| value)
    }
}

/// What the parts of an examination share.
pub(super) struct Facts<'a> {
    pub(super) tree: Tree<'a>,
    pub(super) probes: &'a Probes,
    /// What this process may do; nothing where that cannot be read.
    pub(super) rights: Rights,
    /// Why [`Self::rights`] could not be read.
    pub(super) rights_error: Option<LinuxError>,
    pub(super) mounts: Vec<Mount>,
}

impl<'a> Facts<'a> {
    /// Reads them below `root`.
    pub(super) fn gather(root: &'a Path, probes: &'a Probes) -> Self {
        let tree = Tree::new(root);
        let (rights, rights_error) = match Rights::read(tree) {
            Ok(rights) => (rights, None),
            Err(error) => (Rights::default(), Some(error)),
        };
        let mounts = tree.text(MOUNTS).map(|text| text.lines().filter_map(Mount::parse).collect());
        Self { tree, probes, rights, rights_error, mounts: mounts.unwrap_or_default() }
    }

    /// Whether `/sys` shows the kernel, which containers may withhold.
    pub(super) fn sys_is_visible(&self) -> bool {
        self.tree.path("/sys/kernel").exists()
    }

    /// What is mounted last on a path, which hides what was mounted there before.
    pub(super) fn mount_at(&self, point: &str) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.point == point)
    }

    /// Whether this process may write the file.
    pub(super) fn writable(&self, name: &str) -> io::Result<()> {
        sys::writable(&self.tree.path(name))
    }

    /// Whether this process may have a userfaultfd by the permissions of its device.
    pub(super) fn userfaultfd_device(&self) -> io::Result<()> {
        File::options().read(true).write(true).open(self.tree.path(USERFAULTFD_DEVICE)).map(drop)
    }

    /// A command that grants rights to the program, where that can help.
    pub(super) fn grant(&self, command: String) -> Remedy {
        if self.rights.user_namespace {
            Remedy::advice(
                "run Isotherm outside of this user namespace, or add the capability to the container",
            )
        } else if self.rights.no_new_privileges {
            Remedy::advice("start Isotherm without no_new_privs (systemd: NoNewPrivileges=no), or as root")
        } else {
            Remedy::Command(command)
        }
    }

    /// What mends a file that may not be written.
    pub(super) fn write_remedy(&self, error: &io::Error) -> Remedy {
        match error.raw_os_error() {
            Some(libc::EROFS) => {
                Remedy::advice("mount /sys writable in the container, or run Isotherm on the host")
            }
            _ if self.rights.user_namespace => {
                Remedy::advice("run Isotherm as root outside of this user namespace")
            }
            _ => Remedy::command("sudo isotherm run -- PROGRAM"),
        }
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
