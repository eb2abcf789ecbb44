//! Defines the tiers of a live run: the machine's, or shadows.

use std::path::{Path, PathBuf};

use isotherm_core::{Bytes, Nanos};

use super::{FastLimit, Tier};
use isotherm_linux::LinuxError;
use isotherm_linux::memory::reclaim::Reclaimer;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::process::Pid;
use isotherm_linux::topology::{SameTier, Tiers, TiersError, Topology};

/// The fast tier of shadow mode, where nothing is asked for: a quarter of what is mapped.
const SHADOW_FAST: FastLimit = FastLimit::Share(0.25);

/// What is asked of the tiers.
#[derive(Debug, Clone, Copy)]
pub struct TierRequest<'a> {
    /// Which nodes are which tier, as in [`Tiers::parse`]; the kernel's tiers where nothing is said.
    pub tiers: Option<&'a str>,
    /// How much of the fast tier may be used; all of it where nothing is said, a quarter of what is mapped if it is a shadow.
    pub fast: Option<FastLimit>,
    /// Nothing is to move.
    pub shadow: bool,
    /// Latencies of tiers, fastest first, where the firmware tells none.
    pub latencies: &'a [Nanos],
}

/// The tiers of a run.
#[derive(Debug, Clone)]
pub struct TierPlan {
    /// Fastest first.
    pub tiers: Vec<Tier>,
    /// The nodes of each, or nothing where they are shadows.
    pub nodes: Vec<Vec<u32>>,
    /// Which memory is which tier; nothing where they are shadows.
    pub map: TierMap,
    /// The limit of the first.
    pub fast: FastLimit,
    /// Whether nothing moves.
    pub shadow: bool,
    /// The cgroup that the program is going to run in, where that is known before it runs.
    pub cgroup: Option<PathBuf>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Why there are no tiers.
#[derive(Debug, thiserror::Error)]
pub enum TierPlanError {
    /// The machine does not tell its nodes.
    #[error(transparent)]
    Machine(#[from] LinuxError),
    /// What is asked for cannot be.
    #[error(transparent)]
    Request(#[from] TiersError),
}

impl TierPlan {
    /// Decides about the tiers, by what is below `root` and what is asked for.
    ///
    /// # Errors
    /// If the nodes cannot be read, or the request names tiers that there are not.
    pub fn read(root: &Path, request: &TierRequest<'_>) -> Result<Self, TierPlanError> {
        let topology = Topology::read(root)?;
        let tiers = match request.tiers {
            Some(text) => Tiers::parse(text, &topology)?,
            None => Tiers::derive(&topology),
        };
        let mut notes: Vec<String> = topology.same_tier_nodes().iter().map(same_tier).collect();
        if request.shadow || tiers.count() < 2 {
            if !request.shadow {
                notes.push("this machine has no slow tier: nothing moves (shadow mode)".into());
            }
            return Ok(Self::shadows(request, &tiers, notes));
        }
        let rated = |tier: &isotherm_linux::topology::Tier| {
            let rating = tier.nodes.iter().filter_map(|&node| topology.node(node)?.rating()?.read_latency);
            rating.max().map(|latency| Nanos(u64::from(latency)))
        };
        let latencies = request.latencies;
        let tier = |(index, tier): (usize, &isotherm_linux::topology::Tier)| {
            let otherwise = latencies.get(index).or(latencies.last()).copied().unwrap_or(Nanos(1));
            Tier { size: tier.capacity, latency: rated(tier).unwrap_or(otherwise) }
        };
        let nodes: Vec<Vec<u32>> = tiers.all().iter().map(|tier| tier.nodes.clone()).collect();
        Ok(Self {
            map: TierMap::of(&topology, &nodes),
            nodes,
            fast: request.fast.unwrap_or(FastLimit::Bytes(Bytes(u64::MAX))),
            tiers: tiers.all().iter().enumerate().map(tier).collect(),
            shadow: false,
            cgroup: None,
            notes,
        })
    }

    /// Two tiers that exist in the books only, each as large as the machine's memory.
    fn shadows(request: &TierRequest<'_>, tiers: &Tiers, notes: Vec<String>) -> Self {
        let size = Bytes(tiers.all().iter().map(|tier| tier.capacity.0).sum());
        let fast = request.latencies.first().copied().unwrap_or(Nanos(1));
        let slow = request.latencies.get(1).copied().unwrap_or(fast);
        Self {
            tiers: [fast, slow].map(|latency| Tier { size, latency }).to_vec(),
            nodes: Vec::new(),
            map: TierMap::default(),
            fast: request.fast.unwrap_or(SHADOW_FAST),
            shadow: true,
            cgroup: None,
            notes,
        }
    }

    /// Whether the kernel's LRU can make room on the fast tier.
    pub fn reclaims(&self) -> bool {
        let own = Pid(std::process::id());
        let (root, fast) = (Path::new("/"), self.nodes.first().and_then(|nodes| nodes.first()));
        self.shadow
            || self.cgroup.as_deref().is_some_and(|cgroup| Reclaimer::of_cgroup(root, cgroup).is_ok())
            || fast.is_some_and(|&node| Reclaimer::find(root, own, own, node).is_ok())
    }
}

fn same_tier(same: &SameTier) -> String {
    let SameTier { node, tier } = same;
    format!(
        "node {node} has no processors but is in memory_tier{tier} with the fast nodes: the kernel demotes nothing to it; name the tiers with --tiers"
    )
}
