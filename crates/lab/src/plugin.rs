//! Finds QEMU's plugin, which counts the program's accesses, and builds its option.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::layout::physical_ranges;
use crate::machine::{Device, DeviceKind, Machine};
use crate::run_directory::RunDirectory;

const NAME: &str = "libisotherm_lab_plugin.so";
/// Variable with the plugin's path, instead of a search.
const VARIABLE: &str = "ISOTHERM_LAB_PLUGIN";
/// Bytes of the memory that plugin and guest share.
pub(crate) const SHARED_BYTES: u64 = 16 << 20;
/// File of the profiling device's simulated hardware, and the variable with its path.
const HARDWARE: (&str, &str) = ("libisotherm_neoprof_rtl.so", "ISOTHERM_NEOPROF_RTL");

/// Finds the plugin by `$ISOTHERM_LAB_PLUGIN`, or where cargo and installations put it beside the executable.
///
/// # Errors
/// If it is missing; the error says how to build it.
pub fn find(executable: &Path) -> Result<PathBuf, LabError> {
    let folder = executable.parent().unwrap_or(Path::new(".")).to_owned();
    let found = look(&folder, ["", "../lib/isotherm", "..", "deps"], NAME, VARIABLE);
    found.ok_or(LabError::NoPlugin { name: NAME, folder })
}

/// Finds a NeoProf's simulated hardware, if it has any, by `$ISOTHERM_NEOPROF_RTL` or beside the plugin.
pub(crate) fn hardware(plugin: &Path, machine: &Machine) -> Result<Option<PathBuf>, LabError> {
    let wanted = machine.device.is_some_and(|device| device.kind == DeviceKind::NeoProfRtl);
    let folder = plugin.parent().unwrap_or(Path::new(".")).to_owned();
    let (name, variable) = HARDWARE;
    let found =
        wanted.then(|| look(&folder, ["", "..", "../hw/release", "../../hw/release"], name, variable));
    let missing = || LabError::NoHardware { machine: machine.name.clone(), name, folder };
    found.map(|found| found.ok_or_else(missing)).transpose()
}

fn look(folder: &Path, places: [&str; 4], name: &str, variable: &str) -> Option<PathBuf> {
    let places = match std::env::var_os(variable) {
        Some(path) => vec![PathBuf::from(path)],
        None => places.map(|place| folder.join(place).join(name)).to_vec(),
    };
    places.iter().find_map(|path| path.canonicalize().ok())
}

/// Returns the bytes of the memory that holds the device's registers, a power of two.
pub(crate) fn register_bytes(device: Device) -> u64 {
    match device.kind {
        DeviceKind::NeoProf | DeviceKind::NeoProfRtl => 4 << 10,
        // A page that names it, then the longest instance.
        DeviceKind::Chmu | DeviceKind::ChmuEpochs => 128 << 10,
    }
}

pub(crate) fn make_shared(run: &RunDirectory, machine: &Machine) -> Result<(), LabError> {
    let registers = machine.device.map(|device| (run.registers(), register_bytes(device)));
    for (path, bytes) in [Some((run.shared_memory(), SHARED_BYTES)), registers].into_iter().flatten() {
        let made = File::create(&path).and_then(|file| file.set_len(bytes));
        made.map_err(LabError::io(&path, "make"))?;
    }
    Ok(())
}

pub(crate) fn option(
    (plugin, hardware): (&Path, Option<&Path>),
    machine: &Machine,
    run: &RunDirectory,
) -> OsString {
    let mut words = escaped(plugin);
    let mut files =
        vec![("bar", run.shared_memory()), ("result", run.measured()), ("machine", run.profile())];
    files.extend(machine.device.map(|_| ("device", run.registers())));
    files.extend(hardware.map(|path| ("device-rtl", path.to_owned())));
    for (name, path) in files {
        words.push(format!(",{name}="));
        words.push(escaped(&path));
    }
    if let Some(Device { kind, fault }) = machine.device {
        words.push(format!(",device-kind={}", kind.name()));
        if let Some(fault) = fault {
            words.push(format!(",device-fault={}", fault.name()));
        }
    }
    for (tier, ranges) in physical_ranges(machine).iter().enumerate() {
        words.push(format!(",tier{tier}={}", joined(ranges)));
    }
    words
}

/// Escapes a path for QEMU's options, which end at a comma and take two for one.
pub(crate) fn escaped(path: &Path) -> OsString {
    let parts: Vec<_> = path.as_os_str().as_bytes().split(|&byte| byte == b',').collect();
    OsStr::from_bytes(&parts.join(&b",,"[..])).to_owned()
}

fn joined(ranges: &[Range<u64>]) -> String {
    let range = |range: &Range<u64>| format!("{:#x}-{:#x}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::DeviceFault;

    #[test]
    fn the_plugin_is_told_files_and_ranges() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let run = RunDirectory::at(folder.path().join("a,b"))?;
        let text = option((Path::new("/p,q.so"), None), &Machine::builtin("small")?, &run);
        let text = text.to_string_lossy();
        assert!(text.starts_with("/p,,q.so,bar=/") && text.contains("a,,b/machine.toml"), "{text}");
        assert!(text.ends_with(",tier0=0x0-0x18000000,tier1=0x18000000-0x38000000"), "{text}");
        assert_eq!(joined(&[0..16, 32..64]), "0x0-0x10+0x20-0x40");
        Ok(())
    }

    #[test]
    fn the_plugin_is_told_of_the_profiling_device() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let run = RunDirectory::at(folder.path().join("run"))?;
        let mut machine = Machine::builtin("neoprof-rtl")?;
        let plugin = folder.path().join("plugin.so");
        let error = hardware(&plugin, &machine).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("make hw-library") && !text.contains('\n')));
        std::fs::write(folder.path().join(HARDWARE.0), "")?;
        let found = hardware(&plugin, &machine)?;
        assert!(found.as_ref().is_some_and(|path| path.ends_with(HARDWARE.0)));
        let text = |machine: &Machine| {
            option((&plugin, found.as_deref()), machine, &run).to_string_lossy().into_owned()
        };
        assert!(text(&machine).contains("run/registers,device-rtl=/") && !text(&machine).contains("fault"));
        if let Some(device) = &mut machine.device {
            *device = Device { kind: DeviceKind::NeoProf, fault: Some(DeviceFault::Stuck) };
        }
        let text = text(&machine);
        assert!(text.contains(",device-kind=neoprof,device-fault=stuck,tier0="), "{text}");
        assert!(hardware(&plugin, &machine)?.is_none());
        Ok(())
    }

    #[test]
    fn a_plugin_lies_beside_the_executable_or_is_asked_for() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        // The folder above is looked at, too.
        let folder = folder.path().join("bin");
        let executable = folder.join("isotherm");
        let error = find(&executable).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("make build") && text.contains(NAME)));
        std::fs::create_dir_all(folder.join("deps"))?;
        std::fs::write(folder.join("deps").join(NAME), "")?;
        assert!(find(&executable)?.ends_with(format!("deps/{NAME}")));
        Ok(())
    }
}
