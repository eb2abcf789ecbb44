//! Arguments that several verbs share.

use clap::{Args, ValueEnum};
use isotherm_core::cache::Geometry;
use isotherm_core::{Bytes, PageSize};

use crate::failure::Failure;

/// The policy of live and lab runs that name none.
pub(crate) const DEFAULT_POLICY: &str = isotherm_policies::registry::DEFAULT;

/// The machine of verbs that model one and name none.
pub(crate) const DEFAULT_MACHINE: &str = "sapphire-rapids";

/// The cache that filters accesses.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Size of the modelled last-level cache whose misses a trace holds (bytes; K, M, G)
    #[arg(long = "cache", value_name = "SIZE", default_value = "2M")]
    size: Bytes,
    /// Ways of that cache
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    ways: u32,
}

impl CacheArgs {
    /// Returns the cache's shape, if it holds at least one set.
    pub(crate) fn geometry(&self) -> Result<Geometry, Failure> {
        geometry(self.size, self.ways)
    }
}

/// Returns the shape of the cache that `--cache` names, if it holds at least one set.
pub(crate) fn geometry(size: Bytes, ways: u32) -> Result<Geometry, Failure> {
    Geometry::new(size, ways).ok_or_else(|| {
        Failure::Usage(format!("--cache {size}: expected at least one set of {ways} lines of 64 bytes"))
    })
}

/// Limit of memory.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Memory that the run may take; one that needs more is refused (bytes; K, M, G) [default: what the
    /// machine has available]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<Bytes>,
}

/// Size of the pages that a run tracks and moves.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PageSizeArg {
    /// 4 KiB
    Base,
    /// 2 MiB
    Huge,
}

impl From<PageSizeArg> for PageSize {
    fn from(size: PageSizeArg) -> Self {
        match size {
            PageSizeArg::Base => Self::Base,
            PageSizeArg::Huge => Self::Huge,
        }
    }
}

/// Arguments of the verbs that list entries.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The entry to explain; without it, all are listed
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
