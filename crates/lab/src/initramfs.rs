//! The guest's first file system: busybox, kernel modules, and the scripts of `lab/guest`.

use std::path::Path;

use crate::cache::Cache;
use crate::cpio::Archive;
use crate::job::Job;
use crate::machine::Machine;
use crate::{LabError, packed, script};

/// Name, permissions and text of each of the guest's scripts.
const SCRIPTS: &[(&str, u32, &str)] = &[
    ("init", 0o755, include_str!("../../../lab/guest/init")),
    ("lab/functions", 0o644, include_str!("../../../lab/guest/functions")),
    ("lab/kernel-tiering", 0o644, include_str!("../../../lab/guest/kernel-tiering")),
    ("lab/cxl", 0o644, include_str!("../../../lab/guest/cxl")),
    ("lab/zswap", 0o644, include_str!("../../../lab/guest/zswap")),
    ("lab/enter", 0o644, include_str!("../../../lab/guest/enter")),
];
const MODULES: [&str; 3] = ["9p", "9pnet_virtio", "overlay"];
const CXL_MODULES: [&str; 6] = ["cxl_acpi", "cxl_pci", "cxl_port", "cxl_mem", "dax_cxl", "kmem"];

/// Builds it; with the files of a job if the guest is to get none of the host's.
pub(crate) fn build(cache: &Cache, machine: &Machine, packed: Option<&Job>) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "lab", "modules"] {
        archive.directory(folder);
    }
    // The kernel opens it for the first process before that can create it.
    archive.device("dev/console", 5, 1);
    archive.file(b"bin/busybox", 0o755, &read(&cache.busybox())?)?;
    let mut names = MODULES.to_vec();
    if machine.has_cxl() {
        names.extend(CXL_MODULES);
    }
    names.extend(machine.zswap.map(|zswap| zswap.compressor.name()));
    let mut loaded = Vec::new();
    for path in cache.modules(&names)? {
        loaded.push(add_module(&mut archive, &path)?);
    }
    if machine.zswap.is_some() {
        // The guest loads it with its parameters.
        for path in cache.modules(&["brd"])? {
            add_module(&mut archive, &path)?;
        }
    }
    for (name, permissions, text) in SCRIPTS {
        archive.file(name.as_bytes(), *permissions, text.as_bytes())?;
    }
    let settings = script::machine_settings(machine, packed.is_some(), &loaded);
    archive.file(b"lab/machine", 0o644, settings.as_bytes())?;
    if let Some(job) = packed {
        archive.directory("share");
        archive.file(b"share/job", 0o644, script::job_settings(machine, job).as_bytes())?;
        archive.file(b"share/program", 0o644, &script::program(job))?;
        packed::add(&mut archive, job)?;
    }
    Ok(archive.finish())
}

/// Adds a kernel module; returns its name.
fn add_module(archive: &mut Archive, path: &Path) -> Result<String, LabError> {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    archive.file(format!("modules/{name}.ko").as_bytes(), 0o644, &read(path)?)?;
    Ok(name)
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    std::fs::read(path).map_err(LabError::io(path, "read"))
}
