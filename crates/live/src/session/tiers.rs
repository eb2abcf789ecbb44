//! The tiers of a session: the machine's, or shadows.

use std::path::Path;

use isotherm_core::{Bytes, FastLimit, FastLimitError, Nanos};
use isotherm_linux::LinuxError;
use isotherm_linux::memory::reclaim::Reclaimer;
use isotherm_linux::perf::data_source::TierMap;
use isotherm_linux::process::Pid;
use isotherm_linux::topology::{SameTier, Tier as NumaTier, Tiers, TiersError, Topology};

use crate::host::Tier;

/// Bytes of the megabyte in which firmware rates bandwidths.
const MEGA: u64 = 1_000_000;
/// Fast tier of shadow mode if the user sets no limit: a quarter of the mapped memory.
const SHADOW_FAST: FastLimit = FastLimit::Share(0.25);

#[derive(Debug, Clone, Default)]
pub struct TierRequest {
    /// NUMA nodes of each tier, fastest first (`0,1` or `0+2,1+3`); the kernel's tiers if `None`.
    pub nodes: Option<String>,
    /// Limit of the fast tier; all of it if `None`, or a quarter of the mapped memory in shadow mode.
    pub fast: Option<FastLimit>,
    /// Whether nothing moves. A machine without a slow tier implies it.
    pub shadow: bool,
    /// Latencies of the tiers, fastest first, for tiers whose latency the firmware does not report.
    pub latencies: Vec<Nanos>,
    /// Bandwidths of shadow tiers in bytes a second, fastest first. Those of real tiers are the firmware's: a
    /// machine that was measured elsewhere says nothing of this one.
    pub bandwidths: Vec<u64>,
}

#[derive(Debug, Clone)]
pub struct TierPlan {
    pub tiers: Vec<Tier>,
    /// NUMA nodes of each tier; empty in shadow mode.
    pub nodes: Vec<Vec<u32>>,
    /// Tier of each memory source; empty in shadow mode.
    pub map: TierMap,
    pub fast: FastLimit,
    /// Memory that is free on the machine's fastest nodes.
    pub free: Bytes,
    /// Whether nothing moves.
    pub shadow: bool,
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TierPlanError {
    #[error(transparent)]
    Machine(#[from] LinuxError),
    #[error(transparent)]
    Request(#[from] TiersError),
    #[error("--fast: {0}")]
    Limit(#[from] FastLimitError),
}

impl TierPlan {
    /// Plans the tiers from the machine described below `root` and the request.
    ///
    /// # Errors
    /// If the nodes cannot be read, or the request names or limits tiers that do not exist.
    pub fn read(root: &Path, request: &TierRequest) -> Result<Self, TierPlanError> {
        let topology = Topology::read(root)?;
        let tiers = match &request.nodes {
            Some(text) => Tiers::parse(text, &topology)?,
            None => Tiers::derive(&topology),
        };
        let mut notes: Vec<String> = topology.same_tier_nodes().iter().map(same_tier).collect();
        if request.shadow || tiers.count() < 2 {
            if !request.shadow {
                notes.push("this machine has no slow tier: nothing moves (shadow mode)".into());
            }
            return Self::shadows(request, &tiers, notes);
        }
        let fast = request.fast.clone().unwrap_or(FastLimit::Bytes(Bytes(u64::MAX)));
        fast.check("this machine", tiers.count())?;
        let rated = |tier: &NumaTier| {
            let rating = tier.nodes.iter().filter_map(|&node| topology.node(node)?.rating()?.read_latency);
            rating.max().map(|latency| Nanos(u64::from(latency)))
        };
        let latencies = &request.latencies;
        let widths: Option<Vec<u64>> = tiers.all().iter().map(|tier| width(tier, &topology)).collect();
        let tier = |(index, tier): (usize, &NumaTier)| {
            let otherwise = latencies.get(index).or(latencies.last()).copied().unwrap_or(Nanos(1));
            let bandwidth = widths.as_ref().map_or(0, |widths| widths[index]);
            Tier { size: tier.capacity, latency: rated(tier).unwrap_or(otherwise), bandwidth }
        };
        let nodes: Vec<Vec<u32>> = tiers.all().iter().map(|tier| tier.nodes.clone()).collect();
        Ok(Self {
            map: TierMap::of(&topology, &nodes),
            nodes,
            fast,
            free: free(&tiers),
            tiers: tiers.all().iter().enumerate().map(tier).collect(),
            shadow: false,
            notes,
        })
    }

    /// Plans two virtual tiers, or one for each part of the limit, each as large as the machine's memory.
    fn shadows(request: &TierRequest, tiers: &Tiers, notes: Vec<String>) -> Result<Self, TierPlanError> {
        let limit = request.fast.clone().unwrap_or(SHADOW_FAST);
        limit.check("the profile of --machine, without compressed memory,", request.latencies.len())?;
        let size = Bytes(tiers.all().iter().map(|tier| tier.capacity.0).sum());
        let latency = |tier: usize| {
            let latencies = &request.latencies;
            latencies.get(tier).or(latencies.last()).copied().unwrap_or(Nanos(1))
        };
        let bandwidth = |tier: usize| request.bandwidths.get(tier).copied().unwrap_or(0);
        Ok(Self {
            tiers: (0..limit.tiers())
                .map(|tier| Tier { size, latency: latency(tier), bandwidth: bandwidth(tier) })
                .collect(),
            nodes: Vec::new(),
            map: TierMap::default(),
            fast: limit,
            free: free(tiers),
            shadow: true,
            notes,
        })
    }

    /// Whether the kernel's LRU can make room on the fast tier for a program in `cgroup`, if it gets one.
    pub fn reclaims(&self, cgroup: Option<&Path>) -> bool {
        let own = Pid(std::process::id());
        let (root, fast) = (Path::new("/"), self.nodes.first().and_then(|nodes| nodes.first()));
        self.shadow
            || cgroup.is_some_and(|cgroup| Reclaimer::of_cgroup(root, cgroup).is_ok())
            || fast.is_some_and(|&node| Reclaimer::find(root, own, own, node).is_ok())
    }
}

/// Returns the bandwidth of a tier's nodes together in bytes a second, of each the lower of reading and
/// writing, as the kernel takes it; `None` if firmware omits any.
fn width(tier: &NumaTier, topology: &Topology) -> Option<u64> {
    let of = |&node: &u32| {
        let rating = topology.node(node)?.rating()?;
        Some(u64::from(rating.read_bandwidth?.min(rating.write_bandwidth?)) * MEGA)
    };
    tier.nodes.iter().map(of).sum()
}

fn free(tiers: &Tiers) -> Bytes {
    tiers.all().first().map_or(Bytes(0), |tier| tier.free)
}

fn same_tier(same: &SameTier) -> String {
    let SameTier { node, tier } = same;
    format!(
        "node {node} has no processors but is in memory_tier{tier} with the fast nodes: the kernel demotes \
         nothing to it; name the tiers with --tiers"
    )
}
