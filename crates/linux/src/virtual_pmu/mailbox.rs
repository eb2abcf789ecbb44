//! Tells the plugin where this kernel keeps the current task.

use std::fs::File;
use std::io::{self, BufReader};

use isotherm_virtual_pmu::Mailbox;

use super::btf::Btf;
use super::symbols;
use crate::LinuxError;
use crate::files::Tree;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const SYMBOLS: &str = "/proc/kallsyms";
const WHAT: &str = "naming processes for the virtual PMU";

fn unsupported(remedy: String) -> LinuxError {
    LinuxError::Unsupported { what: WHAT, remedy }
}

/// Finds where this kernel keeps a processor's current task, and the ids of its process in it.
pub(super) fn find(tree: Tree<'_>) -> Result<Mailbox, LinuxError> {
    let path = tree.path(BTF);
    let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unsupported("a kernel with CONFIG_DEBUG_INFO_BTF=y".into()),
        _ => LinuxError::file(&path, error),
    })?;
    let btf = Btf::parse(&bytes).map_err(|error| unsupported(format!("{} holds {error}", path.display())))?;
    let member = |structure: &str, name: &str| {
        btf.member(structure, name)
            .ok_or_else(|| unsupported(format!("this kernel's {structure} has no member {name}")))
    };
    Ok(Mailbox {
        current_task: current_task(tree, &btf)?,
        tgid: member("task_struct", "tgid")?,
        parent: member("task_struct", "real_parent")?,
        thread: member("task_struct", "pid")?,
    })
}

/// Returns the offset of the current task's address in a processor's data: in `pcpu_hot` from Linux 6.2 to
/// 6.14, in its own variable otherwise. Addresses of per-CPU data are relative to `__per_cpu_start`.
fn current_task(tree: Tree<'_>, btf: &Btf<'_>) -> Result<u64, LinuxError> {
    let path = tree.path(SYMBOLS);
    let found = File::open(&path).and_then(|file| {
        symbols::find(BufReader::new(file), ["pcpu_hot", "current_task", "__per_cpu_start"])
    });
    let [hot, own, start] = found.map_err(|error| LinuxError::file(&path, error))?;
    let in_hot =
        hot.zip(btf.member("pcpu_hot", "current_task")).map(|(hot, member)| hot.wrapping_add(member));
    match in_hot.filter(|_| hot != Some(0)).or(own.filter(|&own| own != 0)) {
        Some(address) => Ok(address.wrapping_sub(start.unwrap_or(0))),
        None if hot.or(own).is_some() => Err(LinuxError::Permission {
            what: WHAT,
            needs: "kernel addresses",
            remedy: "sysctl -w kernel.kptr_restrict=0".into(),
        }),
        None => Err(unsupported("a kernel with CONFIG_KALLSYMS_ALL=y".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_its_files_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let error = find(Tree::new(root.path())).expect_err("nothing there");
        assert!(error.to_string().contains("CONFIG_DEBUG_INFO_BTF"), "{error}");
        let folder = root.path().join("sys/kernel/btf");
        std::fs::create_dir_all(&folder).expect("writable");
        std::fs::write(folder.join("vmlinux"), "no types").expect("writable");
        let error = find(Tree::new(root.path())).expect_err("no BTF");
        assert!(error.to_string().contains("holds no BTF"), "{error}");
    }

    #[test]
    fn this_kernel_is_understood() {
        match find(Tree::new("/".as_ref())) {
            Ok(mailbox) => assert!(mailbox.tgid > 0 && mailbox.parent > 0 && mailbox.current_task > 0),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
