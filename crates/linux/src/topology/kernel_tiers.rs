//! The kernel's memory tiers (`Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers`).

use serde::Serialize;

use crate::LinuxError;
use crate::files::{Tree, list};

const TIERING: &str = "/sys/devices/virtual/memory_tiering";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelTier {
    /// Number: smaller is faster; DRAM has 4.
    pub number: u32,
    /// Ascending.
    pub nodes: Vec<u32>,
}

/// Reads the tiers that have nodes, fastest first; `None` where the kernel has no memory tiers.
pub(super) fn read(tree: Tree<'_>) -> Result<Option<Vec<KernelTier>>, LinuxError> {
    let mut tiers = Vec::new();
    for number in tree.numbered(TIERING, "memory_tier")? {
        // A tier vanishes with its last node.
        let name = format!("{TIERING}/memory_tier{number}/nodelist");
        let nodes = tree.parsed_if_there(&name, "a list of nodes such as 0-1", list)?;
        tiers.extend(nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| KernelTier { number, nodes }));
    }
    Ok((!tiers.is_empty()).then_some(tiers))
}
