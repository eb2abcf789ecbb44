//! Defines the kernel's own idea of tiers (`Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers`).

use serde::Serialize;

use crate::LinuxError;
use crate::files::{Tree, list};

const TIERING: &str = "/sys/devices/virtual/memory_tiering";

/// One of the kernel's memory tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelTier {
    /// Its number; a smaller one is faster, DRAM being 4.
    pub number: u32,
    /// Its nodes, ascending.
    pub nodes: Vec<u32>,
}

/// The tiers that have nodes, fastest first; `None` where the kernel has no memory tiers.
pub(super) fn read(tree: Tree<'_>) -> Result<Option<Vec<KernelTier>>, LinuxError> {
    let mut tiers = Vec::new();
    for number in tree.numbered(TIERING, "memory_tier")? {
        // A tier may vanish meanwhile, when its last node goes.
        let name = format!("{TIERING}/memory_tier{number}/nodelist");
        let nodes = tree.parsed_if_there(&name, "a list of nodes such as 0-1", list)?;
        tiers.extend(nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| KernelTier { number, nodes }));
    }
    Ok((!tiers.is_empty()).then_some(tiers))
}
