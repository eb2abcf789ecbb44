//! Weighted interleaving by the kernel: weights of nodes for the whole machine, set for a run and restored
//! after it, and the memory policy of the programs that use them.
//!
//! Files as in `Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave`, since Linux 6.9;
//! `auto` since 6.16.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::LinuxError;
use crate::files::{Tree, decimal};
use crate::sys::pages;

const FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
const AUTO: &str = "auto";

/// The kernel's weights of nodes. Drop restores what this changed, unless others have changed it since.
#[derive(Debug)]
pub struct NodeWeights {
    root: PathBuf,
    /// Nodes whose weights were changed: the former ones, and those set.
    changed: Vec<(u32, u8, u8)>,
    /// Whether the kernel set the weights itself before.
    automatic: bool,
}

impl NodeWeights {
    /// Sets the weights of nodes below `root`; those that are right already need no right to write.
    ///
    /// # Errors
    /// If the kernel has no such weights, or this user may not set them: then no weight has changed.
    pub fn set(root: &Path, weights: &[(u32, u8)]) -> Result<Self, LinuxError> {
        let tree = Tree::new(root);
        let automatic = tree.parsed_if_there(&file(AUTO), "'true' or 'false'", switch)?.unwrap_or(false);
        let former = |&(node, weight): &(u32, u8)| {
            let former = tree.parsed_if_there(&of(node), "a weight from 1 to 255", decimal)?;
            Ok((node, former.ok_or_else(|| absent(node))?, weight))
        };
        let all: Vec<(u32, u8, u8)> = weights.iter().map(former).collect::<Result<_, LinuxError>>()?;
        let mut set = Self { root: root.into(), changed: Vec::new(), automatic };
        for (node, former, weight) in all.into_iter().filter(|&(_, former, weight)| former != weight) {
            // What was set before is restored when the error drops it.
            write(&tree.path(&of(node)), weight).map_err(|error| denied(&tree.path(&of(node)), error))?;
            set.changed.push((node, former, weight));
        }
        Ok(set)
    }
}

impl Drop for NodeWeights {
    fn drop(&mut self) {
        let tree = Tree::new(&self.root);
        let is_own = |&&(node, _, weight): &&(u32, u8, u8)| {
            tree.text(&of(node)).is_ok_and(|text| text == weight.to_string())
        };
        let own: Vec<_> = self.changed.iter().filter(is_own).collect();
        // A node that went offline has no file any more, and nothing to restore.
        for (node, former, _) in &own {
            let _ = write(&tree.path(&of(*node)), *former);
        }
        if self.automatic && !own.is_empty() && own.len() == self.changed.len() {
            let _ = fs::write(tree.path(&file(AUTO)), "1");
        }
    }
}

/// Has the calling thread, and all threads and programs that it starts from now on, take new pages from
/// these nodes in turn, by their weights.
///
/// # Errors
/// If the kernel has no weighted interleaving, or one of the nodes no memory.
pub fn interleave_thread(nodes: &[u32]) -> Result<(), LinuxError> {
    pages::interleave(nodes).map_err(LinuxError::of_call("set_mempolicy(MPOL_WEIGHTED_INTERLEAVE)"))
}

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn of(node: u32) -> String {
    file(&format!("node{node}"))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn write(path: &Path, weight: u8) -> io::Result<()> {
    fs::write(path, weight.to_string())
}

fn absent(node: u32) -> LinuxError {
    LinuxError::Unsupported {
        what: "weighted interleaving",
        remedy: format!(
            "the kernel has no {}; use Linux 6.9 or newer with CONFIG_NUMA, or spread pages evenly by \
             `numactl --interleave`",
            of(node)
        ),
    }
}

fn denied(path: &Path, error: io::Error) -> LinuxError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => LinuxError::Permission {
            what: "setting the nodes' weights",
            needs: "root",
            remedy: format!(
                "run as root where {} can be written, or set the weights there beforehand to those that \
                 isotherm shall use",
                path.display()
            ),
        },
        _ => LinuxError::file(path, error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let folder = Tree::new(root.path()).path(FOLDER);
        fs::create_dir_all(&folder).expect("made");
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("written"));
        root
    }

    fn texts(root: &Path) -> Vec<String> {
        let tree = Tree::new(root);
        let names = tree.names(FOLDER).expect("the folder");
        names.iter().map(|name| format!("{name} {}", tree.text(&file(name)).expect("a file"))).collect()
    }

    #[test]
    fn weights_are_set_and_the_former_ones_restored() {
        let root = machine(&[("node0", "1\n"), ("node1", "1\n"), ("node2", "7\n")]);
        let set = NodeWeights::set(root.path(), &[(0, 9), (1, 2)]).expect("it can be written");
        assert_eq!(texts(root.path()), ["node0 9", "node1 2", "node2 7"]);
        drop(set);
        assert_eq!(texts(root.path()), ["node0 1", "node1 1", "node2 7"]);
    }

    #[test]
    fn the_kernels_own_weights_return_where_it_set_them() {
        let root = machine(&[("auto", "true\n"), ("node0", "4\n"), ("node1", "1\n")]);
        drop(NodeWeights::set(root.path(), &[(0, 9), (1, 1)]).expect("it can be written"));
        assert_eq!(texts(root.path()), ["auto 1", "node0 4", "node1 1"]);
        let manual = machine(&[("auto", "false\n"), ("node0", "4\n"), ("node1", "1\n")]);
        drop(NodeWeights::set(manual.path(), &[(0, 9), (1, 1)]).expect("it can be written"));
        assert_eq!(texts(manual.path()), ["auto false", "node0 4", "node1 1"]);
    }

    #[test]
    fn what_others_set_meanwhile_stays() {
        let root = machine(&[("auto", "true"), ("node0", "1"), ("node1", "1")]);
        let set = NodeWeights::set(root.path(), &[(0, 9), (1, 2)]).expect("it can be written");
        fs::write(Tree::new(root.path()).path(&of(0)), "5\n").expect("another's");
        drop(set);
        assert_eq!(texts(root.path()), ["auto true", "node0 5", "node1 1"]);
    }

    #[test]
    fn weights_that_are_right_are_not_written() {
        let root = machine(&[("auto", "true"), ("node0", "9"), ("node1", "2")]);
        let path = Tree::new(root.path()).path(&of(0));
        let written = || fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        fs::File::open(&path).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)).expect("an old file");
        drop(NodeWeights::set(root.path(), &[(0, 9), (1, 2)]).expect("as they are"));
        assert_eq!((written(), &texts(root.path())[0][..]), (std::time::UNIX_EPOCH, "auto true"));
    }

    #[test]
    fn a_kernel_without_them_and_a_file_that_holds_something_else_are_told_in_one_line() {
        let error = |files: &[(&str, &str)]| {
            let root = machine(files);
            NodeWeights::set(root.path(), &[(0, 9), (1, 2)]).expect_err("refused").to_string()
        };
        let absent = error(&[("node0", "1")]);
        assert!(absent.contains("weighted_interleave/node1; use Linux 6.9"), "{absent}");
        let strange = error(&[("node0", "1"), ("node1", "256")]);
        assert!(strange.ends_with("expected a weight from 1 to 255, found '256'"), "{strange}");
        let auto = error(&[("auto", "maybe"), ("node0", "1"), ("node1", "2")]);
        assert!(auto.ends_with("expected 'true' or 'false', found 'maybe'"), "{auto}");
        assert!(![absent, strange, auto].concat().contains('\n'));
    }

    #[test]
    fn what_was_set_before_a_refusal_is_restored() {
        let root = machine(&[("node0", "1")]);
        // A small number that not even root may write.
        symlink("/proc/sys/kernel/cap_last_cap", Tree::new(root.path()).path(&of(1))).expect("a link");
        let error = NodeWeights::set(root.path(), &[(0, 9), (1, 2)]).expect_err("read-only").to_string();
        assert!(error.contains("needs root"), "{error}");
        assert_eq!(texts(root.path())[0], "node0 1");
    }
}
