//! Defines where QEMU's plugin is found and what it is told: it counts what the program does with its memory.

use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::layout::physical_ranges;
use crate::machine::Machine;
use crate::qemu::escaped;
use crate::run_directory::RunDirectory;

/// The plugin's file.
const NAME: &str = "libisotherm_lab_plugin.so";
/// Where it is told to be, in place of a search.
const VARIABLE: &str = "ISOTHERM_LAB_PLUGIN";
/// Bytes of the memory that plugin and guest share.
pub(crate) const SHARED_BYTES: u64 = 16 << 20;

/// Finds the plugin: where `$ISOTHERM_LAB_PLUGIN` says, or beside the executable, where cargo and installations put it.
///
/// # Errors
/// If it is not there; the error says how to build it.
pub fn find(executable: &Path) -> Result<PathBuf, LabError> {
    let folder = executable.parent().unwrap_or(Path::new(".")).to_owned();
    let places = match std::env::var_os(VARIABLE) {
        Some(path) => vec![PathBuf::from(path)],
        None => ["", "../lib/isotherm", "..", "deps"].map(|place| folder.join(place).join(NAME)).to_vec(),
    };
    let found = places.iter().find_map(|path| path.canonicalize().ok());
    found.ok_or(LabError::NoPlugin { name: NAME, folder })
}

/// Makes the memory that QEMU, the plugin and the guest share.
pub(crate) fn make_shared(run: &RunDirectory) -> Result<(), LabError> {
    let path = run.shared_memory();
    let made = File::create(&path).and_then(|file| file.set_len(SHARED_BYTES));
    made.map_err(LabError::io(&path, "make"))
}

/// The value of QEMU's `-plugin`.
pub(crate) fn option(plugin: &Path, machine: &Machine, run: &RunDirectory) -> OsString {
    let mut words = escaped(plugin);
    let files = [("bar", run.shared_memory()), ("result", run.measured()), ("machine", run.profile())];
    for (name, path) in files {
        words.push(format!(",{name}="));
        words.push(escaped(&path));
    }
    for (tier, ranges) in physical_ranges(machine).iter().enumerate() {
        words.push(format!(",tier{tier}={}", joined(ranges)));
    }
    words
}

fn joined(ranges: &[Range<u64>]) -> String {
    let range = |range: &Range<u64>| format!("{:#x}-{:#x}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_told_files_and_ranges() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let run = RunDirectory::at(folder.path().join("a,b"))?;
        let text = option(Path::new("/p,q.so"), &Machine::builtin("small")?, &run);
        let text = text.to_string_lossy();
        assert!(text.starts_with("/p,,q.so,bar=/") && text.contains("a,,b/machine.toml"), "{text}");
        assert!(text.ends_with(",tier0=0x0-0x18000000,tier1=0x18000000-0x38000000"), "{text}");
        assert_eq!(joined(&[0..16, 32..64]), "0x0-0x10+0x20-0x40");
        Ok(())
    }

    #[test]
    fn a_plugin_lies_beside_the_executable_or_is_asked_for() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let executable = folder.path().join("isotherm");
        let error = find(&executable).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("make build") && text.contains(NAME)));
        std::fs::create_dir(folder.path().join("deps"))?;
        std::fs::write(folder.path().join("deps").join(NAME), "")?;
        assert!(find(&executable)?.ends_with(format!("deps/{NAME}")));
        Ok(())
    }
}
