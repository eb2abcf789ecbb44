//! Finds profiling devices by PCI id or CXL's register locator in sysfs, and the place of their memory.
//!
//! - NeoProf has no PCI id of its own. Candidates have the id of Intel's CXL memory design for FPGAs, which
//!   the paper's prototype is built on, or of the shared-memory device that stands for it in a virtual
//!   machine; the identity register tells which of their memories is a NeoProf's. The latter can stand for a
//!   hotness monitoring unit, too: its memory's first word says so.
//! - A hotness monitoring unit is in the register locator of a CXL memory device (DVSEC 8 of vendor 0x1e98).
//!   A kernel's driver for it owns its registers and makes it a PMU with the memory device's name.
//! - The memory is the CXL regions that the device is a target of; without any, that of the only slow node.

use std::fs::{File, OpenOptions};
use std::path::Path;

use isotherm_chmu::registers::{STAND_IN, STAND_IN_BLOCK};
use isotherm_neoprof::registers as at;

use super::chmu::Chmu;
use super::neoprof::NeoProf;
use super::owners::PageTables;
use super::perf_chmu::{self, PerfChmu};
use super::region::Region;
use super::source::{Attached, DeviceSource};
use super::{DeviceError, PAGE, Profiler};
use crate::LinuxError;
use crate::files::{Tree, decimal, hexadecimal};
use crate::process::ProcRoot;
use crate::sys::registers::DeviceRegisters;

const PCI: &str = "/sys/bus/pci/devices";
const CXL: &str = "/sys/bus/cxl/devices";
const NODES: &str = "/sys/devices/system/node";
const BLOCK_SIZE: &str = "/sys/devices/system/memory/block_size_bytes";
/// Vendor and device ids of NeoProf candidates: Intel's CXL type 3 design for Agilex, and QEMU's ivshmem.
const NEOPROF_IDS: [(u64, u64); 2] = [(0x8086, 0x0ddb), (0x1af4, 0x1110)];
/// Memories of a PCI device.
const BARS: u32 = 6;
/// The extended capability "designated vendor-specific", and where such capabilities begin.
const DVSEC: u32 = 0x23;
const EXTENDED: usize = 0x100;
/// CXL's vendor id, its register locator, and there the block of a hotness monitoring unit.
const CXL_VENDOR: u32 = 0x1e98;
const REGISTER_LOCATOR: u32 = 8;
const CHMU_BLOCK: u32 = 5;
/// Bytes mapped of a unit's registers, with its ring.
const CHMU_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The device's memory, as in `resourceN`.
    pub bar: u32,
    pub offset: u64,
}

/// Returns the source over every device of this machine, with the memory of `slow_nodes` behind those that
/// are in no CXL region. `refused` gets candidates that cannot be used.
///
/// # Errors
/// Returns an error if no device is found.
pub fn open(
    root: &Path,
    slow_nodes: &[u32],
    refused: &mut Vec<LinuxError>,
) -> Result<DeviceSource, LinuxError> {
    let tree = Tree::new(root);
    let mut devices: Vec<Attached> = Vec::new();
    for name in tree.names(PCI)? {
        match profiler(tree, &name) {
            Ok(None) => {}
            Ok(Some(profiler)) => match regions(tree, &name, slow_nodes) {
                Ok(regions) => devices.push(Attached { profiler, regions }),
                Err(error) => refused.push(error),
            },
            Err(error) => refused.push(error),
        }
    }
    if devices.is_empty() {
        let why = refused.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(LinuxError::Unsupported {
            what: "profiling by a device",
            remedy: format!("it needs CXL memory with a NeoProf or a hotness monitoring unit{why}"),
        });
    }
    let frames = devices.iter().flat_map(|device| device.regions.iter().map(Region::all_frames)).collect();
    Ok(DeviceSource::new(devices, Box::new(PageTables::new(ProcRoot::default(), frames))))
}

fn profiler(tree: Tree<'_>, name: &str) -> Result<Option<Box<dyn Profiler>>, LinuxError> {
    let id = |file: &str| tree.parsed(&format!("{PCI}/{name}/{file}"), "a PCI id", hexadecimal);
    let (vendor, device) = (id("vendor")?, id("device")?);
    if NEOPROF_IDS.contains(&(vendor, device)) {
        return neoprof(tree, name);
    }
    if let Some(pmu) = perf_chmu::find(tree, &memories(tree, name)?)? {
        return Ok(Some(Box::new(PerfChmu::attach(pmu, &tree.path("/"))?)));
    }
    let config = tree.path(&format!("{PCI}/{name}/config"));
    let Some(at) = std::fs::read(config).ok().and_then(|config| locate(&config)) else { return Ok(None) };
    let bar = bar(tree, name, at, None)?;
    Ok(Some(Box::new(Chmu::open(name, bar)?)))
}

fn neoprof(tree: Tree<'_>, name: &str) -> Result<Option<Box<dyn Profiler>>, LinuxError> {
    for number in 0..BARS {
        let path = tree.path(&format!("{PCI}/{name}/resource{number}"));
        if std::fs::metadata(path).map_or(0, |file| file.len()) < at::BYTES {
            continue;
        }
        let registers = bar(tree, name, Located { bar: number, offset: 0 }, Some(at::BYTES))?;
        match NeoProf::open(name, registers) {
            Ok(device) => return Ok(Some(Box::new(device))),
            Err(DeviceError::Identity { found: STAND_IN, .. }) => {
                let block = bar(tree, name, Located { bar: number, offset: STAND_IN_BLOCK }, None)?;
                return Ok(Some(Box::new(Chmu::open(name, block)?)));
            }
            // Another memory of the card, or another device of that id.
            Err(DeviceError::Identity { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Maps registers: `bytes` of them, or at most as many as a hotness monitoring unit has.
fn bar(tree: Tree<'_>, name: &str, at: Located, bytes: Option<u64>) -> Result<DeviceRegisters, LinuxError> {
    // Firmware enables devices that it knows; writing to this file enables the others.
    let enable = format!("{PCI}/{name}/enable");
    if tree.text(&enable).is_ok_and(|enabled| enabled == "0") {
        let path = tree.path(&enable);
        std::fs::write(&path, "1").map_err(|error| LinuxError::file(&path, error))?;
    }
    let path = tree.path(&format!("{PCI}/{name}/resource{}", at.bar));
    let map = |file: File| {
        let rest = file.metadata()?.len().saturating_sub(at.offset);
        DeviceRegisters::new(file, at.offset, bytes.unwrap_or(rest.min(CHMU_BYTES)))
    };
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    opened.and_then(map).map_err(|error| LinuxError::file(path, error))
}

/// Returns the place of a hotness monitoring unit's registers, from a CXL device's configuration space.
pub fn locate(config: &[u8]) -> Option<Located> {
    let word = |at: usize| Some(u32::from_le_bytes(config.get(at..at + 4)?.try_into().ok()?));
    let mut capability = EXTENDED;
    // More capabilities than fit cannot exist.
    for _ in 0..(config.len() / 8) {
        let header = word(capability)?;
        let (vendor, id) = (word(capability + 4)?, word(capability + 8)? & 0xffff);
        if header & 0xffff == DVSEC && vendor & 0xffff == CXL_VENDOR && id == REGISTER_LOCATOR {
            let length = (vendor >> 20) as usize;
            return (capability + 0xc..capability + length).step_by(8).find_map(|entry| {
                let (low, high) = (word(entry)?, word(entry + 4)?);
                let offset = u64::from(high) << 32 | u64::from(low & 0xffff_0000);
                (low >> 8 & 0xff == CHMU_BLOCK).then_some(Located { bar: low & 7, offset })
            });
        }
        capability = (header >> 20) as usize;
        if capability < EXTENDED {
            return None;
        }
    }
    None
}

fn regions(tree: Tree<'_>, name: &str, slow_nodes: &[u32]) -> Result<Vec<Region>, LinuxError> {
    let memories = memories(tree, name)?;
    let mut found = Vec::new();
    for region in tree.names(CXL)?.into_iter().filter(|entry| entry.starts_with("region")) {
        found.extend(cxl_region(tree, &region, &memories)?);
    }
    if !found.is_empty() {
        return Ok(found);
    }
    match slow_nodes {
        [node] => node_memory(tree, *node),
        _ => Err(LinuxError::Unsupported {
            what: "translating a profiling device's pages",
            remedy: format!(
                "{name} is in no CXL region, and there is not one slow node but {}",
                slow_nodes.len()
            ),
        }),
    }
}

/// Returns the memory devices that the function is.
fn memories(tree: Tree<'_>, name: &str) -> Result<Vec<String>, LinuxError> {
    let is_memory = |name: &String| name.strip_prefix("mem").and_then(decimal::<u32>).is_some();
    Ok(tree.names(&format!("{PCI}/{name}"))?.into_iter().filter(is_memory).collect())
}

/// Returns the device's part of a CXL region, if it is one of its targets.
fn cxl_region(tree: Tree<'_>, region: &str, memories: &[String]) -> Result<Option<Region>, LinuxError> {
    let number = |file: &str| {
        let parse = |text: &str| if text.starts_with("0x") { hexadecimal(text) } else { decimal(text) };
        tree.parsed(&format!("{CXL}/{region}/{file}"), "a number", parse)
    };
    let ways = number("interleave_ways")?;
    for position in 0..ways.min(16) {
        let Some(decoder) = tree.text_if_there(&format!("{CXL}/{region}/target{position}"))? else {
            continue;
        };
        // A decoder's directory lies in that of its endpoint port, which names the memory device.
        let port = std::fs::canonicalize(tree.path(&format!("{CXL}/{decoder}")));
        let uport = port.ok().and_then(|path| std::fs::canonicalize(path.parent()?.join("uport")).ok());
        let memory = uport.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        if !memory.is_some_and(|memory| memories.contains(&memory)) {
            continue;
        }
        let device_base = tree.parsed_if_there(
            &format!("{CXL}/{decoder}/dpa_resource"),
            "a device's address in hexadecimal",
            hexadecimal,
        )?;
        let found = Region {
            base: number("resource")?,
            size: number("size")?,
            device_base: device_base.unwrap_or(0),
            ways,
            granularity: number("interleave_granularity")?,
            position,
        };
        if !found.is_valid() {
            let remedy = format!("{region}: its numbers do not fit each other: {found:?}");
            return Err(LinuxError::Unsupported { what: "a CXL region", remedy });
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Returns a node's memory as regions of one device, its first page the first of the node.
fn node_memory(tree: Tree<'_>, node: u32) -> Result<Vec<Region>, LinuxError> {
    let size = tree.parsed(BLOCK_SIZE, "a size in hexadecimal", hexadecimal)?;
    let blocks = tree.numbered(&format!("{NODES}/node{node}"), "memory")?;
    let mut found: Vec<Region> = Vec::new();
    for base in blocks.into_iter().map(|block| u64::from(block) * size) {
        match found.last_mut() {
            Some(last) if last.base + last.size == base => last.size += size,
            before => {
                let device_base = before.map_or(0, |last| last.device_base + last.size);
                found.push(Region { device_base, ..Region::linear(base, size) });
            }
        }
    }
    found.retain(|region| region.is_valid() && region.size >= PAGE);
    Ok(found)
}
