//! Devices that provide memory (`sysfs-bus-cxl` and `sysfs-bus-dax` of `Documentation/ABI/testing`).

use isotherm_core::Bytes;
use serde::Serialize;

use super::note;
use crate::LinuxError;
use crate::files::{Tree, decimal, hexadecimal};

const CXL: &str = "/sys/bus/cxl/devices";
const DAX: &str = "/sys/bus/dax/devices";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CxlKind {
    /// `memN`: memory expander.
    Memory,
    /// `regionN`: range of physical addresses that expanders serve.
    Region,
    /// `decoderN.M`: range of addresses that a port routes.
    Decoder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CxlDevice {
    pub name: String,
    pub kind: CxlKind,
    /// Node of *processors* that it is attached to; DAX tells which node its memory becomes.
    pub node: Option<u32>,
    /// Its memory, volatile and persistent, or the length of its range.
    pub size: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DaxState {
    /// `kmem`: ordinary memory of its target node.
    SystemRam,
    /// `device_dax`: character device for programs that map it; no node has the memory.
    DevDax,
    Unbound,
    Other(String),
}

/// Device of the DAX bus: memory that can become a node's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaxDevice {
    pub name: String,
    /// Node that its memory belongs to when it is system RAM.
    pub target_node: Option<u32>,
    /// Size; 0 for a seed device, from which others are made.
    pub size: Bytes,
    pub state: DaxState,
}

pub(super) fn cxl(tree: Tree<'_>, problems: &mut Vec<String>) -> Vec<CxlDevice> {
    let names = note(tree.names(CXL), problems).unwrap_or_default();
    let known = names.into_iter().filter_map(|name| Some((cxl_kind(&name)?, name)));
    known.filter_map(|(kind, name)| note(cxl_device(tree, kind, name), problems)).collect()
}

fn cxl_kind(name: &str) -> Option<CxlKind> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "mem" => Some(CxlKind::Memory),
        "region" => Some(CxlKind::Region),
        "decoder" => Some(CxlKind::Decoder),
        _ => None,
    }
}

fn cxl_device(tree: Tree<'_>, kind: CxlKind, name: String) -> Result<CxlDevice, LinuxError> {
    let node = target(tree, &format!("{CXL}/{name}/numa_node"))?;
    let bytes =
        |file: &str| tree.parsed_if_there(&format!("{CXL}/{name}/{file}"), "a size in bytes", size_in_bytes);
    let size = match kind {
        CxlKind::Memory => match (bytes("ram/size")?, bytes("pmem/size")?) {
            (None, None) => None,
            (ram, pmem) => Some(ram.unwrap_or(0).saturating_add(pmem.unwrap_or(0))),
        },
        CxlKind::Region | CxlKind::Decoder => bytes("size")?,
    };
    Ok(CxlDevice { name, kind, node, size: size.map(Bytes) })
}

pub(super) fn dax(tree: Tree<'_>, problems: &mut Vec<String>) -> Vec<DaxDevice> {
    let names = note(tree.names(DAX), problems).unwrap_or_default();
    names.into_iter().filter_map(|name| note(dax_device(tree, name), problems)).collect()
}

fn dax_device(tree: Tree<'_>, name: String) -> Result<DaxDevice, LinuxError> {
    let size = tree.parsed(&format!("{DAX}/{name}/size"), "a size in bytes", size_in_bytes)?;
    let target_node = target(tree, &format!("{DAX}/{name}/target_node"))?;
    let state = dax_state(tree, &format!("{DAX}/{name}/driver"))?;
    Ok(DaxDevice { name, target_node, size: Bytes(size), state })
}

fn dax_state(tree: Tree<'_>, driver: &str) -> Result<DaxState, LinuxError> {
    let path = tree.path(driver);
    let target = match std::fs::read_link(&path) {
        Ok(target) => target,
        Err(error) if crate::files::is_absent(&error) => return Ok(DaxState::Unbound),
        Err(error) => return Err(LinuxError::file(path, error)),
    };
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    Ok(match &*name {
        "kmem" => DaxState::SystemRam,
        "device_dax" => DaxState::DevDax,
        _ => DaxState::Other(name.into_owned()),
    })
}

/// Reads a node's number; -1 means none.
fn target(tree: Tree<'_>, name: &str) -> Result<Option<u32>, LinuxError> {
    let parse = |text: &str| if text == "-1" { Some(None) } else { decimal(text).map(Some) };
    Ok(tree.parsed_if_there(name, "a node's number or -1", parse)?.flatten())
}

/// Parses a size, which CXL prints in hexadecimal with `0x` and DAX in decimal.
fn size_in_bytes(text: &str) -> Option<u64> {
    if text.starts_with("0x") { hexadecimal(text) } else { decimal(text) }
}
