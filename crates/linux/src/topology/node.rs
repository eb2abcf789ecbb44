//! NUMA nodes: their processors, size, distances and rated speed.
//!
//! Files as in `Documentation/ABI/stable/sysfs-devices-node` and `Documentation/admin-guide/mm/numaperf.rst`.

use isotherm_core::Bytes;
use serde::Serialize;

use crate::LinuxError;
use crate::files::{Tree, decimal, format_error, list};

const NODES: &str = "/sys/devices/system/node";
const ONLINE: &str = "/sys/devices/system/node/online";
const MEMINFO: &str = "/proc/meminfo";
const PROCESSORS: &str = "/sys/devices/system/cpu/online";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    pub id: u32,
    /// Processors, ascending; empty for memory on CXL, Optane or high-bandwidth memory.
    pub cpus: Vec<u32>,
    /// Memory; 0 for a node of processors only.
    pub total: Bytes,
    pub free: Bytes,
    /// Nodes and distances to them, 10 being local (ACPI SLIT), in the order of nodes.
    pub distances: Vec<(u32, u32)>,
    /// Rated speed from the nearest initiator and the nearest processor (HMAT), where firmware has it.
    pub access: [Option<AccessAttributes>; 2],
}

/// Rated speed of a node's memory from its nearest initiators: latencies in nanoseconds, bandwidths in MB/s;
/// `None` for what firmware omits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AccessAttributes {
    pub read_latency: Option<u32>,
    pub write_latency: Option<u32>,
    pub read_bandwidth: Option<u32>,
    pub write_bandwidth: Option<u32>,
}

impl Node {
    /// Returns whether it has memory and no processor.
    pub fn is_cpuless(&self) -> bool {
        self.cpus.is_empty() && self.total > Bytes(0)
    }

    pub fn distance(&self, to: u32) -> Option<u32> {
        self.distances.iter().find(|&&(node, _)| node == to).map(|&(_, distance)| distance)
    }

    pub fn rating(&self) -> Option<AccessAttributes> {
        let [initiator, processor] = self.access;
        processor.or(initiator)
    }
}

impl AccessAttributes {
    /// Returns whether its read latency or bandwidth is as good as that of one of the others.
    pub(super) fn is_as_fast_as_any(self, others: &[Self]) -> bool {
        let quick =
            |other: &Self| matches!((self.read_latency, other.read_latency), (Some(a), Some(b)) if a <= b);
        let wide = |other: &Self| matches!((self.read_bandwidth, other.read_bandwidth), (Some(a), Some(b)) if a >= b);
        others.iter().any(|other| quick(other) || wide(other))
    }

    /// Reads `nodeN/accessCLASS/initiators`; `None` where firmware has no HMAT.
    pub(super) fn read(tree: Tree<'_>, node: u32, class: u32) -> Result<Option<Self>, LinuxError> {
        let directory = format!("{NODES}/node{node}/access{class}/initiators");
        let attribute = |name: &str| -> Result<Option<u32>, LinuxError> {
            let value = tree.parsed_if_there(&format!("{directory}/{name}"), "a number", decimal)?;
            Ok(value.filter(|&value| value > 0))
        };
        let access = Self {
            read_latency: attribute("read_latency")?,
            write_latency: attribute("write_latency")?,
            read_bandwidth: attribute("read_bandwidth")?,
            write_bandwidth: attribute("write_bandwidth")?,
        };
        Ok((access != Self::default()).then_some(access))
    }
}

/// Reads the online nodes; one node with all memory where the kernel shows none.
pub(super) fn read(tree: Tree<'_>) -> Result<Vec<Node>, LinuxError> {
    let online = tree.parsed_if_there(ONLINE, "a list of nodes such as 0-1", |text| {
        list(text).filter(|nodes| !nodes.is_empty())
    })?;
    let nodes: Vec<Node> = match online {
        Some(online) => online.iter().map(|&id| read_node(tree, id, &online)).collect::<Result<_, _>>()?,
        None => vec![whole_machine(tree)?],
    };
    if nodes.iter().all(|node| node.total == Bytes(0)) {
        return Err(format_error(&tree.path(NODES), "a node with memory", "none"));
    }
    Ok(nodes)
}

fn read_node(tree: Tree<'_>, id: u32, online: &[u32]) -> Result<Node, LinuxError> {
    let file = |name: &str| format!("{NODES}/node{id}/{name}");
    let Meminfo { total, free, .. } = memory(tree, id)?;
    let cpus = tree.parsed(&file("cpulist"), "a list of processors such as 0-15", list)?;
    let distances = tree.parsed(&file("distance"), "one distance for each node online", |text| {
        let row: Option<Vec<u32>> = text.split_whitespace().map(decimal).collect();
        let row = row.filter(|row| row.len() == online.len())?;
        Some(online.iter().copied().zip(row).collect())
    })?;
    Ok(Node { id, cpus, total, free, distances, access: [None, None] })
}

/// Memory of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meminfo {
    pub(super) total: Bytes,
    pub(super) free: Bytes,
    /// Pages of files that no process maps: the kernel can drop them or write them back.
    pub(super) files: Bytes,
}

pub(super) fn memory(tree: Tree<'_>, id: u32) -> Result<Meminfo, LinuxError> {
    let name = format!("{NODES}/node{id}/meminfo");
    let without_numa = id == 0 && !tree.path(ONLINE).exists();
    let (name, prefix) =
        if without_numa { (MEMINFO.to_owned(), String::new()) } else { (name, format!("Node {id} ")) };
    tree.parsed(&name, "MemTotal and MemFree in kB", |text| meminfo(text, &prefix))
}

fn whole_machine(tree: Tree<'_>) -> Result<Node, LinuxError> {
    let Meminfo { total, free, .. } = memory(tree, 0)?;
    let cpus = tree.parsed_if_there(PROCESSORS, "a list of processors such as 0-15", list)?;
    // Memory without a processor would be treated as a slow tier.
    let cpus = cpus.unwrap_or_else(|| vec![0]);
    Ok(Node { id: 0, cpus, total, free, distances: vec![(0, 10)], access: [None, None] })
}

#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let _ = meminfo(text, "Node 0 ");
}

/// Parses lines such as `Node 0 MemTotal:  1024 kB`.
fn meminfo(text: &str, prefix: &str) -> Option<Meminfo> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(prefix)?.strip_prefix(name))?;
        let kilobytes: u64 = decimal(rest.strip_prefix(':')?.trim().strip_suffix("kB")?.trim())?;
        kilobytes.checked_mul(1024).map(Bytes)
    };
    let (total, free) = (field("MemTotal")?, field("MemFree")?);
    let cached = ["Active(file)", "Inactive(file)"].into_iter().filter_map(field).map(|size| size.0);
    let mapped = field("Mapped").unwrap_or_default();
    let files = Bytes(cached.fold(0, u64::saturating_add)) - mapped;
    (free <= total).then_some(Meminfo { total, free, files })
}
