//! Defines the tiers of a live run: the machine's, or shadows.

use std::path::Path;

use isotherm_core::{Bytes, Nanos};
use isotherm_linux::host::{FastLimit, Tier};
use isotherm_linux::memory::reclaim::Reclaimer;
use isotherm_linux::process::Pid;
use isotherm_linux::topology::{SameTier, Tiers, Topology};

use crate::args::LiveArgs;
use crate::commands::machines::load_profile;
use crate::failure::Failure;

/// The fast tier of shadow mode, where nothing is asked for: a quarter of what is mapped.
const SHADOW_FAST: FastLimit = FastLimit::Share(0.25);

/// The tiers of a run.
pub(in crate::commands) struct Memory {
    /// Fastest first.
    pub(super) tiers: Vec<Tier>,
    /// The nodes of each, or nothing where they are shadows.
    pub(super) nodes: Vec<Vec<u32>>,
    /// The limit of the first.
    pub(super) fast: FastLimit,
    /// Whether nothing moves.
    pub(in crate::commands) shadow: bool,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

impl Memory {
    /// Whether the kernel's LRU can make room on the fast tier.
    pub(in crate::commands) fn reclaims(&self) -> bool {
        let own = Pid(std::process::id());
        let fast = self.nodes.first().and_then(|nodes| nodes.first());
        self.shadow || fast.is_some_and(|&node| Reclaimer::find(Path::new("/"), own, own, node).is_ok())
    }
}

/// Decides about the tiers, by what is below `root` and what the user asks for.
pub(in crate::commands) fn memory(args: &LiveArgs, root: &Path) -> Result<Memory, Failure> {
    let topology = Topology::read(root).map_err(Failure::failed)?;
    let tiers = match &args.tiers {
        Some(text) => Tiers::parse(text, &topology).map_err(Failure::usage)?,
        None => Tiers::derive(&topology),
    };
    let latencies = latencies(args)?;
    let mut notes: Vec<String> = topology.same_tier_nodes().iter().map(same_tier).collect();
    if args.shadow || tiers.count() < 2 {
        if !args.shadow {
            notes.push("this machine has no slow tier: nothing moves (shadow mode)".into());
        }
        return Ok(shadow(args, &tiers, &latencies, notes));
    }
    let rated = |tier: &isotherm_linux::topology::Tier| {
        let rating = tier.nodes.iter().filter_map(|&node| topology.node(node)?.rating()?.read_latency);
        rating.max().map(|latency| Nanos(u64::from(latency)))
    };
    let tier = |(index, tier): (usize, &isotherm_linux::topology::Tier)| {
        let otherwise = latencies.get(index).or(latencies.last()).copied().unwrap_or(Nanos(1));
        Tier { size: tier.capacity, latency: rated(tier).unwrap_or(otherwise) }
    };
    Ok(Memory {
        nodes: tiers.all().iter().map(|tier| tier.nodes.clone()).collect(),
        fast: args.fast.unwrap_or(FastLimit::Bytes(Bytes(u64::MAX))),
        tiers: tiers.all().iter().enumerate().map(tier).collect(),
        shadow: false,
        notes,
    })
}

/// Two tiers that exist in the books only, each as large as the machine's memory.
fn shadow(args: &LiveArgs, tiers: &Tiers, latencies: &[Nanos], notes: Vec<String>) -> Memory {
    let size = Bytes(tiers.all().iter().map(|tier| tier.capacity.0).sum());
    let fast = latencies.first().copied().unwrap_or(Nanos(1));
    let slow = latencies.get(1).copied().unwrap_or(fast);
    Memory {
        tiers: [fast, slow].map(|latency| Tier { size, latency }).to_vec(),
        nodes: Vec::new(),
        fast: args.fast.unwrap_or(SHADOW_FAST),
        shadow: true,
        notes,
    }
}

fn latencies(args: &LiveArgs) -> Result<Vec<Nanos>, Failure> {
    Ok(load_profile(&args.machine)?.tiers.iter().map(|tier| tier.latency).collect())
}

fn same_tier(same: &SameTier) -> String {
    let SameTier { node, tier } = same;
    format!(
        "node {node} has no processors but is in memory_tier{tier} with the fast nodes: the kernel demotes nothing to it; name the tiers with --tiers"
    )
}
