//! The folder with the kernel, QEMU and busybox that `make lab-setup` has unpacked.

use std::path::{Path, PathBuf};

use crate::LabError;
use crate::run_directory::paths;

/// Folder that `scripts/lab-setup.sh` fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds this user's cache: `$ISOTHERM_CACHE/lab`, or `isotherm/lab` in `$XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// If it is not filled; the error says how to fill it.
    pub fn find() -> Result<Self, LabError> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = variable("ISOTHERM_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("isotherm")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/isotherm")));
        Self::at(base.unwrap_or_else(|| "/var/cache/isotherm".into()).join("lab"))
    }

    /// # Errors
    /// If it is not filled.
    pub fn at(root: PathBuf) -> Result<Self, LabError> {
        let cache = Self { root };
        let needed = [cache.kernel(), cache.qemu(), cache.busybox(), cache.root.join("kernel/modules.dep")];
        let missing = needed.into_iter().find(|path| !path.is_file());
        missing.map_or(Ok(cache), |path| Err(LabError::NotSetUp { path }))
    }

    /// Returns the kernel's release, such as `6.12.1-amd64`.
    pub fn kernel_release(&self) -> String {
        let text = std::fs::read_to_string(self.root.join("kernel/version")).unwrap_or_default();
        text.trim().into()
    }

    pub fn firmware(&self) -> [PathBuf; 2] {
        ["root/usr/share/qemu", "root/usr/share/seabios"].map(|path| self.root.join(path))
    }

    /// Returns an `LD_LIBRARY_PATH` with the libraries that this machine may lack.
    pub fn libraries(&self) -> std::ffi::OsString {
        let folders = ["root/usr/lib/x86_64-linux-gnu", "root/lib/x86_64-linux-gnu"];
        let folders: Vec<_> = folders.iter().map(|folder| self.root.join(folder)).collect();
        std::env::join_paths(folders).unwrap_or_default()
    }

    /// Returns the files of the named modules, each once and after those it depends on. Built-in modules have
    /// no file.
    ///
    /// # Errors
    /// If the list of dependencies cannot be read.
    pub fn modules(&self, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
        let list = self.root.join("kernel/modules.dep");
        let text = std::fs::read_to_string(&list).map_err(LabError::io(&list, "read"))?;
        let order = load_order(&text, names);
        Ok(order.into_iter().map(|name| self.root.join(format!("kernel/modules/{name}.ko"))).collect())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
}

paths! { Cache.root;
    kernel = "kernel/vmlinux",
    qemu = "root/usr/bin/qemu-system-x86_64",
    busybox = "root/bin/busybox",
    runs = "runs",
    /// Returns the folder of booted guests.
    snapshots = "snapshots",
    /// Returns the list of the unpacked packages' checksums.
    packages = "packages.sha256",
}

/// Orders the modules to load for `names`, from lines `name: dependency ...`.
fn load_order<'a>(list: &'a str, names: &[&str]) -> Vec<&'a str> {
    let lines: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once(':')).collect();
    let mut order = Vec::new();
    for name in names {
        add(&lines, name, &mut order, lines.len());
    }
    order
}

/// Adds a module after its dependencies; `depth` ends circles.
fn add<'a>(lines: &[(&'a str, &'a str)], name: &str, order: &mut Vec<&'a str>, depth: usize) {
    let found = lines.iter().find(|(known, _)| *known == name);
    let Some((name, dependencies)) = found.filter(|(name, _)| !order.contains(name)) else { return };
    if depth > 0 {
        dependencies.split_whitespace().for_each(|needed| add(lines, needed, order, depth - 1));
    }
    if !order.contains(name) {
        order.push(name);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fills a folder with empty files.
    pub(crate) fn filled(root: &Path) -> Result<Cache, Box<dyn std::error::Error>> {
        for path in
            ["kernel/vmlinux", "kernel/modules.dep", "root/usr/bin/qemu-system-x86_64", "root/bin/busybox"]
        {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(root))?;
            std::fs::write(path, "")?;
        }
        Ok(Cache::at(root.into())?)
    }

    #[test]
    fn modules_come_after_what_they_depend_on_and_once() {
        let list = "9p: 9pnet netfs\n9pnet: netfs\nnetfs: \n9pnet_virtio: 9pnet\n";
        assert_eq!(
            load_order(list, &["9p", "9pnet_virtio", "builtin"]),
            ["netfs", "9pnet", "9p", "9pnet_virtio"]
        );
    }

    #[test]
    fn circles_end() {
        assert_eq!(load_order("a: b\nb: a\n", &["a"]).len(), 2);
    }

    #[test]
    fn an_empty_folder_says_how_to_fill_it() -> Result<(), std::io::Error> {
        let folder = tempfile::tempdir()?;
        let error = Cache::at(folder.path().into()).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("make lab-setup") && text.contains("vmlinux")));
        Ok(())
    }
}
