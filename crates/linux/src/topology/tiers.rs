//! Defines which nodes are which tier: as the kernel or the distances say, or as the user wants it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use isotherm_core::{Bytes, MAX_TIERS, TierId};
use serde::Serialize;

use super::files::{Tree, decimal};
use super::node::memory;
use super::{Node, Topology};
use crate::LinuxError;

/// Who says which nodes are which tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The kernel's memory tiers.
    Kernel,
    /// Distances and missing processors, on kernels without memory tiers.
    Distance,
    /// The user, by `--tiers`.
    User,
}

/// Nodes that are equally fast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// Their numbers, ascending; at least one.
    pub nodes: Vec<u32>,
    /// Their memory together.
    pub capacity: Bytes,
    /// What of it is free.
    pub free: Bytes,
}

/// The tiers, fastest first; at least one. Every node with memory is in at most one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tiers {
    tiers: Vec<Tier>,
    origin: Origin,
}

/// A `--tiers` that does not fit the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TiersError {
    /// Not a number where one was expected.
    #[error(
        "--tiers: '{part}' is not a node's number; write nodes of one tier with '+', tiers with ',': 0+1,2"
    )]
    Syntax {
        /// What stood there.
        part: String,
    },
    /// No such node.
    #[error("--tiers: there is no node {node}; nodes with memory are {known}")]
    Unknown {
        /// The node.
        node: u32,
        /// Those that there are.
        known: String,
    },
    /// The node has processors only.
    #[error("--tiers: node {node} has no memory; nodes with memory are {known}")]
    NoMemory {
        /// The node.
        node: u32,
        /// Those that have memory.
        known: String,
    },
    /// A node in two places.
    #[error("--tiers: node {node} stands there twice")]
    Twice {
        /// The node.
        node: u32,
    },
    /// Nothing to tier.
    #[error("--tiers: '{text}' is one tier; give at least two, fastest first, such as 0,1")]
    OneTier {
        /// What was given.
        text: String,
    },
    /// More than can be handled.
    #[error("--tiers: {given} tiers are more than {MAX_TIERS}")]
    TooMany {
        /// How many were given.
        given: usize,
    },
}

impl Tiers {
    /// The tiers as the kernel has them; where it has none, nodes with processors are the fast tier, and those without
    /// follow by their distance from the nearest processor.
    ///
    /// A node that is not in the kernel's tiers (it came online meanwhile) joins the fastest if it has processors, else the
    /// slowest.
    pub fn derive(topology: &Topology) -> Self {
        let (groups, origin) = match &topology.kernel_tiers {
            Some(kernel) => {
                (kernel_groups(topology, kernel.iter().map(|tier| &tier.nodes[..])), Origin::Kernel)
            }
            None => (distance_groups(topology), Origin::Distance),
        };
        Self::build(topology, groups, origin)
    }

    /// The tiers that the user wrote, fastest first: `0,1`, or `0+2,1+3` with two nodes in each. Nodes that are left out
    /// are not used.
    ///
    /// # Errors
    /// A text that is no such list, a node that is unknown, without memory or named twice, fewer than two tiers.
    pub fn parse(text: &str, topology: &Topology) -> Result<Self, TiersError> {
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for group in text.split(',') {
            let mut nodes = Vec::new();
            for part in group.split('+') {
                let node = user_node(part.trim(), topology)?;
                if nodes.contains(&node) || groups.iter().flatten().any(|&other| other == node) {
                    return Err(TiersError::Twice { node });
                }
                nodes.push(node);
            }
            groups.push(nodes);
        }
        match groups.len() {
            1 => Err(TiersError::OneTier { text: text.trim().to_owned() }),
            2..=MAX_TIERS => Ok(Self::build(topology, groups, Origin::User)),
            given => Err(TiersError::TooMany { given }),
        }
    }

    fn build(topology: &Topology, groups: Vec<Vec<u32>>, origin: Origin) -> Self {
        let tier = |mut nodes: Vec<u32>| {
            nodes.sort_unstable();
            let sum = |size: fn(&Node) -> Bytes| {
                nodes.iter().filter_map(|&id| topology.node(id)).map(size).fold(Bytes(0), saturating)
            };
            let (capacity, free) = (sum(|node| node.total), sum(|node| node.free));
            Tier { nodes, capacity, free }
        };
        Self { tiers: groups.into_iter().map(tier).collect(), origin }
    }

    /// The tiers, fastest first.
    pub fn all(&self) -> &[Tier] {
        &self.tiers
    }

    /// Who says so.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// How many there are; with one, nothing can move and a run is in shadow mode.
    pub fn count(&self) -> usize {
        self.tiers.len()
    }

    /// The tier of that number.
    pub fn get(&self, tier: TierId) -> Option<&Tier> {
        self.tiers.get(tier.index())
    }

    /// The tier that a node belongs to; `None` for one that is not used.
    pub fn tier_of(&self, node: u32) -> Option<TierId> {
        let index = self.tiers.iter().position(|tier| tier.nodes.contains(&node))?;
        u8::try_from(index).ok().map(TierId)
    }

    /// Reads anew what is free, and how large the nodes are (memory may be plugged).
    ///
    /// # Errors
    /// A node's `meminfo` cannot be read, as when it went offline; the tiers are then as they were.
    pub fn refresh(&mut self, root: &Path) -> Result<(), LinuxError> {
        let tree = Tree::new(root);
        let mut sizes = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let nodes: Result<Vec<_>, _> = tier.nodes.iter().map(|&id| memory(tree, id)).collect();
            sizes.push(nodes?.into_iter().fold((Bytes(0), Bytes(0)), |(total, free), node| {
                (saturating(total, node.0), saturating(free, node.1))
            }));
        }
        for (tier, (capacity, free)) in self.tiers.iter_mut().zip(sizes) {
            (tier.capacity, tier.free) = (capacity, free);
        }
        Ok(())
    }
}

/// Writes them as `--tiers` takes them: `0+1,2`.
impl fmt::Display for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = |tier: &Tier| tier.nodes.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        f.pad(&self.tiers.iter().map(nodes).collect::<Vec<_>>().join(","))
    }
}

fn saturating(a: Bytes, b: Bytes) -> Bytes {
    Bytes(a.0.saturating_add(b.0))
}

fn with_memory(topology: &Topology) -> impl Iterator<Item = &Node> {
    topology.nodes.iter().filter(|node| node.total > Bytes(0))
}

fn user_node(part: &str, topology: &Topology) -> Result<u32, TiersError> {
    let id: u32 = decimal(part).ok_or_else(|| TiersError::Syntax { part: part.to_owned() })?;
    let known = || with_memory(topology).map(|node| node.id.to_string()).collect::<Vec<_>>().join(", ");
    match topology.node(id) {
        None => Err(TiersError::Unknown { node: id, known: known() }),
        Some(node) if node.total == Bytes(0) => Err(TiersError::NoMemory { node: id, known: known() }),
        Some(_) => Ok(id),
    }
}

fn kernel_groups<'a>(topology: &Topology, kernel: impl Iterator<Item = &'a [u32]>) -> Vec<Vec<u32>> {
    let mut left: Vec<&Node> = with_memory(topology).collect();
    let mut groups = Vec::new();
    for tier in kernel {
        // Taken out of what is left, so that a node which two tiers name while it moves counts once.
        let (members, others) = left.into_iter().partition(|node| tier.contains(&node.id));
        left = others;
        groups.push(ids(members));
    }
    groups.retain(|group: &Vec<u32>| !group.is_empty());
    let (slow, fast): (Vec<_>, Vec<_>) = left.into_iter().partition(|node| topology.is_slow(node));
    add(&mut groups, true, ids(fast));
    add(&mut groups, false, ids(slow));
    limited(groups)
}

/// Puts nodes into the first or the last group, which is made where there is none.
fn add(groups: &mut Vec<Vec<u32>>, first: bool, nodes: Vec<u32>) {
    if nodes.is_empty() {
        return;
    }
    match if first { groups.first_mut() } else { groups.last_mut() } {
        Some(group) => group.extend(nodes),
        None => groups.push(nodes),
    }
}

fn distance_groups(topology: &Topology) -> Vec<Vec<u32>> {
    let (slow, fast): (Vec<_>, Vec<_>) = with_memory(topology).partition(|node| topology.is_slow(node));
    let mut by_distance: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for node in slow {
        by_distance.entry(nearest_processor(topology, node)).or_default().push(node.id);
    }
    let mut groups = vec![ids(fast)];
    groups.extend(by_distance.into_values());
    groups.retain(|group| !group.is_empty());
    limited(groups)
}

fn nearest_processor(topology: &Topology, node: &Node) -> u32 {
    let processors = topology.nodes.iter().filter(|other| !other.cpus.is_empty());
    processors.filter_map(|other| other.distance(node.id)).min().unwrap_or(u32::MAX)
}

/// Slower groups than can be told apart become one.
fn limited(mut groups: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    if groups.len() > MAX_TIERS {
        let slowest = groups.split_off(MAX_TIERS).concat();
        groups[MAX_TIERS - 1].extend(slowest);
    }
    groups
}

fn ids(nodes: Vec<&Node>) -> Vec<u32> {
    nodes.into_iter().map(|node| node.id).collect()
}
