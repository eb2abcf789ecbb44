//! Memory of the machine: nodes, tiers, devices and the processor, read from `/sys` and `/proc`.

use std::path::Path;

use serde::Serialize;

use crate::LinuxError;
use crate::files::Tree;

pub mod cpu;
mod devices;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod kernel_tiers;
mod node;
mod room;
#[cfg(test)]
mod tests;
mod tiers;

pub use devices::{CxlDevice, CxlKind, DaxDevice, DaxState};
pub use kernel_tiers::KernelTier;
#[cfg(fuzzing)]
pub use node::fuzz as fuzz_meminfo;
pub use node::{AccessAttributes, Node};
pub use room::Room;
#[cfg(fuzzing)]
pub use room::fuzz as fuzz_zoneinfo;
pub use tiers::{Origin, Tier, Tiers, TiersError};

/// Switch of demotion by the kernel's reclaim (`Documentation/ABI/testing/sysfs-kernel-mm-numa`).
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Online nodes by number; at least one.
    pub nodes: Vec<Node>,
    /// The kernel's memory tiers, fastest first; `None` on kernels without them (before 6.1).
    pub kernel_tiers: Option<Vec<KernelTier>>,
    /// Whether the kernel's reclaim demotes; `None` where it cannot.
    pub demotion: Option<bool>,
    pub cxl: Vec<CxlDevice>,
    /// DAX devices: memory that can become a node's, or has become one's.
    pub dax: Vec<DaxDevice>,
    /// Errors of reading devices and attributes, one line each; runs can do without these.
    pub problems: Vec<String>,
}

/// CPU-less node that the kernel rates as fast as a node with processors, so that it never demotes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SameTier {
    pub node: u32,
    /// The kernel's number of the tier, as in `memory_tier4`.
    pub tier: u32,
}

impl Topology {
    /// Reads `/sys` and `/proc` below `root`. Without NUMA, or `/sys`, the machine is one node with all
    /// memory of `/proc/meminfo`.
    ///
    /// # Errors
    /// If nodes or tiers cannot be read or are malformed; others go to [`Self::problems`].
    pub fn read(root: &Path) -> Result<Self, LinuxError> {
        let tree = Tree::new(root);
        let mut topology =
            Self { nodes: node::read(tree)?, kernel_tiers: kernel_tiers::read(tree)?, ..Self::default() };
        for node in &mut topology.nodes {
            let access = [0, 1].map(|class| AccessAttributes::read(tree, node.id, class));
            node.access = access.map(|result| note(result, &mut topology.problems).flatten());
        }
        topology.demotion = note(demotion(tree), &mut topology.problems).flatten();
        topology.cxl = devices::cxl(tree, &mut topology.problems);
        topology.dax = devices::dax(tree, &mut topology.problems);
        Ok(topology)
    }

    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Returns whether a node is slower than memory beside processors: it has no processor, and firmware does
    /// not rate it as fast, as it does high-bandwidth memory.
    pub fn is_slow(&self, node: &Node) -> bool {
        let beside_processors = self.nodes.iter().filter(|node| !node.cpus.is_empty());
        let ratings: Vec<AccessAttributes> = beside_processors.filter_map(Node::rating).collect();
        let as_fast = node.rating().is_some_and(|own| own.is_as_fast_as_any(&ratings));
        node.is_cpuless() && !as_fast
    }

    /// Returns slow nodes that share a kernel tier with a node that has processors: usually CXL memory that
    /// firmware declared ordinary memory.
    pub fn same_tier_nodes(&self) -> Vec<SameTier> {
        let has_cpus = |id: u32| self.node(id).is_some_and(|node| !node.cpus.is_empty());
        let is_slow = |id: u32| self.node(id).is_some_and(|node| self.is_slow(node));
        let mixed =
            self.kernel_tiers.iter().flatten().filter(|tier| tier.nodes.iter().any(|&id| has_cpus(id)));
        let slow =
            mixed.flat_map(|tier| tier.nodes.iter().map(move |&node| SameTier { node, tier: tier.number }));
        slow.filter(|same| is_slow(same.node)).collect()
    }
}

fn demotion(tree: Tree<'_>) -> Result<Option<bool>, LinuxError> {
    tree.parsed_if_there(DEMOTION, "'true' or 'false'", |text| match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    })
}

/// Returns the value, or `None` after adding a line to the problems.
fn note<T>(result: Result<T, LinuxError>, problems: &mut Vec<String>) -> Option<T> {
    result.map_err(|error| problems.push(error.to_string())).ok()
}
