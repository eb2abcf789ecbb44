//! How much memory the kernel's zswap holds (Documentation/admin-guide/cgroup-v2.rst, `memory.stat`).

use std::fs;
use std::path::{Path, PathBuf};

use isotherm_core::Bytes;

use super::reclaim::cgroup_of;
use crate::process::Pid;

/// Returns the directory of the process's cgroup, and the bytes of the memory of programs there that zswap
/// holds, before compression: the kernel counts them for whole cgroups. `None` without a cgroup of version 2,
/// or before Linux 5.19.
pub fn zswapped(root: &Path, pid: Pid) -> Option<(PathBuf, Bytes)> {
    let cgroup = cgroup_of(root, pid)?;
    let text = fs::read_to_string(cgroup.join("memory.stat")).ok()?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("zswapped ")?.trim().parse().ok())?;
    Some((cgroup, Bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_tells_what_zswap_holds_of_its_programs() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("proc/7/cgroup", "0::/a\n");
        assert_eq!(zswapped(root.path(), Pid(7)), None);
        write("sys/fs/cgroup/a/memory.stat", "anon 5\nzswap 4096\nzswapped 16384\n");
        let expected = (root.path().join("sys/fs/cgroup/a"), Bytes(16384));
        assert_eq!(zswapped(root.path(), Pid(7)), Some(expected));
        assert_eq!(zswapped(root.path(), Pid(8)), None);
    }
}
