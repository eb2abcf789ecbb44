//! Assignment of nodes to tiers: by the kernel, by distances, or by the user.

use std::collections::BTreeMap;
use std::fmt;

use isotherm_core::{Bytes, MAX_TIERS, TierId};
use serde::Serialize;

use super::{KernelTier, Node, Topology};
use crate::files::decimal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Kernel,
    /// Distances and missing processors, on kernels without memory tiers.
    Distance,
    /// The user, by `--tiers`.
    User,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// Numbers of the nodes, ascending; at least one.
    pub nodes: Vec<u32>,
    pub capacity: Bytes,
    pub free: Bytes,
}

/// Tiers, fastest first; at least one. Every node with memory is in at most one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tiers {
    tiers: Vec<Tier>,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--tiers: {0}")]
pub struct TiersError(String);

impl Tiers {
    /// Derives the kernel's tiers. Without these, nodes with processors are the fast tier, and the others
    /// follow by their distance from the nearest processor. Nodes outside the kernel's tiers join the fastest
    /// if they have processors, else the slowest.
    pub fn derive(topology: &Topology) -> Self {
        let (groups, origin) = match &topology.kernel_tiers {
            Some(kernel) => (kernel_groups(topology, kernel), Origin::Kernel),
            None => (distance_groups(topology), Origin::Distance),
        };
        Self::build(topology, groups, origin)
    }

    /// Parses the user's tiers, fastest first: `0,1`, or `0+2,1+3` with two nodes each. Others are not used.
    /// Fails if it names a node twice or one without memory, or has fewer than two tiers.
    pub fn parse(text: &str, topology: &Topology) -> Result<Self, TiersError> {
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for group in text.split(',') {
            let mut nodes = Vec::new();
            for part in group.split('+') {
                let node = user_node(part.trim(), topology)?;
                if nodes.contains(&node) || groups.iter().flatten().any(|&other| other == node) {
                    return Err(TiersError(format!("node {node} is named twice")));
                }
                nodes.push(node);
            }
            groups.push(nodes);
        }
        let wrong = match groups.len() {
            2..=MAX_TIERS => return Ok(Self::build(topology, groups, Origin::User)),
            1 => format!("'{}' is one tier; give at least two, fastest first, such as 0,1", text.trim()),
            given => format!("{given} tiers exceed the maximum of {MAX_TIERS}"),
        };
        Err(TiersError(wrong))
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

    pub fn all(&self) -> &[Tier] {
        &self.tiers
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the number of tiers. With one, nothing can move and a run is in shadow mode.
    pub fn count(&self) -> usize {
        self.tiers.len()
    }

    pub fn get(&self, tier: TierId) -> Option<&Tier> {
        self.tiers.get(tier.index())
    }

    /// Returns the tier of a node; `None` for a node that is not used.
    pub fn tier_of(&self, node: u32) -> Option<TierId> {
        let index = self.tiers.iter().position(|tier| tier.nodes.contains(&node))?;
        u8::try_from(index).ok().map(TierId)
    }
}

/// Writes the tiers in the form of `--tiers`: `0+1,2`.
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
    let syntax = "is not a node's number; write nodes of one tier with '+', tiers with ',': 0+1,2";
    let id: u32 = decimal(part).ok_or_else(|| TiersError(format!("'{part}' {syntax}")))?;
    let known: Vec<String> = with_memory(topology).map(|node| node.id.to_string()).collect();
    let wrong = |what: String| Err(TiersError(format!("{what}; nodes with memory are {}", known.join(", "))));
    match topology.node(id) {
        None => wrong(format!("there is no node {id}")),
        Some(node) if node.total == Bytes(0) => wrong(format!("node {id} has no memory")),
        Some(_) => Ok(id),
    }
}

fn kernel_groups(topology: &Topology, kernel: &[KernelTier]) -> Vec<Vec<u32>> {
    let mut left: Vec<&Node> = with_memory(topology).collect();
    let mut groups = Vec::new();
    for tier in kernel {
        // A node that moves between tiers may be in both lists, and counts once.
        let (members, others) = left.into_iter().partition(|node| tier.nodes.contains(&node.id));
        left = others;
        groups.push(ids(members));
    }
    groups.retain(|group: &Vec<u32>| !group.is_empty());
    let (slow, fast): (Vec<_>, Vec<_>) = left.into_iter().partition(|node| topology.is_slow(node));
    add(&mut groups, true, ids(fast));
    add(&mut groups, false, ids(slow));
    limited(groups)
}

/// Adds nodes to the first or the last group, or as a new group if there is none.
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
