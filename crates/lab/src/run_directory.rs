//! The folder of one run: the guest's input, its messages and its results.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::LabError;

const KEPT: usize = 20;
/// Number of this process's runs, which makes their names differ.
static NUMBER: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes a new folder in `runs` and removes the oldest.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn create(runs: &Path) -> Result<Self, LabError> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        remove_old(runs);
        Self::at(runs.join(format!("{seconds}-{}-{number}", std::process::id())))
    }

    /// Makes the folder at `path`, which must be missing or empty.
    ///
    /// # Errors
    /// If it is not empty, or the operating system refuses.
    pub fn at(path: PathBuf) -> Result<Self, LabError> {
        let path = std::path::absolute(&path).map_err(LabError::io(&path, "find"))?;
        if std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some()) {
            let what = format!("{} is not empty", path.display());
            return Err(LabError::Unfit { what, expected: "a new folder for the run".into() });
        }
        let run = Self { path };
        std::fs::create_dir_all(run.share()).map_err(LabError::io(&run.path, "make the run's folder"))?;
        Ok(run)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Declares the paths in a folder.
macro_rules! paths {
    ($folder:ident.$root:ident; $($(#[$doc:meta])* $name:ident = $file:literal,)*) => {
        impl $folder {
            $($(#[$doc])* pub fn $name(&self) -> PathBuf {
                self.$root.join($file)
            })*
        }
    };
}
pub(crate) use paths;

paths! { RunDirectory.path;
    /// Returns the folder that the guest can write to.
    share = "share",
    console = "console.log",
    qemu_log = "qemu.log",
    initramfs = "initramfs",
    /// Returns the machine profile that the plugin reads.
    profile = "machine.toml",
    measured = "measured.json",
    /// Returns the memory that plugin and guest share while the guest runs.
    shared_memory = "shared-memory",
    registers = "registers",
    /// Returns the file of the program's standard output, if it is not passed on.
    stdout = "stdout",
    /// Returns the file of the program's standard error, if it is not passed on.
    stderr = "stderr",
}

pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), LabError> {
    std::fs::write(path, content).map_err(LabError::io(path, "write"))
}

/// Removes all but the newest runs, as far as the operating system allows.
fn remove_old(runs: &Path) {
    let Ok(entries) = std::fs::read_dir(runs) else { return };
    let named = |entry: std::fs::DirEntry| {
        Some((entry.file_name().to_str()?.split('-').next()?.parse().ok()?, entry.path()))
    };
    let mut names: Vec<(u64, PathBuf)> = entries.flatten().filter_map(named).collect();
    names.sort();
    let excess = names.len().saturating_sub(KEPT - 1);
    for (_, path) in &names[..excess] {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_runs_go_and_other_folders_stay() -> Result<(), Box<dyn std::error::Error>> {
        let runs = tempfile::tempdir()?;
        for second in 0..25 {
            std::fs::create_dir(runs.path().join(format!("{second}-1-0")))?;
        }
        std::fs::create_dir(runs.path().join("mine"))?;
        let run = RunDirectory::create(runs.path())?;
        assert!(run.share().is_dir() && runs.path().join("mine").is_dir());
        assert!(!runs.path().join("5-1-0").exists() && runs.path().join("6-1-0").is_dir());
        assert_eq!(std::fs::read_dir(runs.path())?.count(), KEPT + 1);
        Ok(())
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("precious"), "x")?;
        let error = RunDirectory::at(folder.path().into()).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("is not empty")));
        Ok(())
    }
}
