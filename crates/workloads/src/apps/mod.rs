//! The applications and the table of their workloads. A new one is a module here and a row of [`ALL`].
//! `docs/reference/workloads.md` says what each keeps of the original and what it leaves out.

mod btree;
mod bwaves;
mod cachelib;
mod deepsjeng;
mod dlrm;
mod flexkvs;
mod gpt2;
mod graph;
mod gups;
mod liblinear;
mod masim;
mod redis;
mod roms;
mod silo;
mod social_network;
mod xgboost;
mod xsbench;
mod xz;

use isotherm_core::Bytes;

use crate::Workload;

/// The last-level cache of FreqTier's and HybridTier's machine.
pub(crate) const XEON_4314: Bytes = Bytes(24 << 20);

/// Every workload, in the order of help texts.
pub static ALL: &[&Workload] = &[
    &masim::WORKLOAD,
    &gups::WORKLOAD,
    &cachelib::CDN_WORKLOAD,
    &cachelib::SOCIAL_WORKLOAD,
    &btree::WORKLOAD,
    &silo::WORKLOAD,
    &flexkvs::WORKLOAD,
    &redis::WORKLOAD,
    &social_network::WORKLOAD,
    &graph::BFS_KRON,
    &graph::BFS_URAND,
    &graph::CC_KRON,
    &graph::CC_URAND,
    &graph::PR_KRON,
    &graph::PR_URAND,
    &graph::BC_KRON,
    &graph::BC_URAND,
    &graph::SSSP_KRON,
    &graph::SSSP_URAND,
    &graph::TC_KRON,
    &graph::TC_URAND,
    &graph::GRAPH500,
    &xsbench::WORKLOAD,
    &xgboost::WORKLOAD,
    &liblinear::WORKLOAD,
    &bwaves::WORKLOAD,
    &roms::WORKLOAD,
    &gpt2::WORKLOAD,
    &dlrm::WORKLOAD,
    &deepsjeng::WORKLOAD,
    &xz::WORKLOAD,
];
