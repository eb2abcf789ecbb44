//! The layout of objects in memory: the allocator that a workload's allocations go through.
//!
//! Workloads name objects by the addresses of one sequential address space. Any other [`Layout`] gives every
//! object a second address, as a model of a real allocator would, and [`LaidOut`] reports the accesses there:
//! before the cache, since objects share lines under one allocator and not under another.

mod allocators;
mod laid_out;
mod popularity;
mod size_classes;
mod translation;

use isotherm_core::cache::Geometry;
use isotherm_core::parameters::Parameters;
use isotherm_core::{choices, parameters};

use self::allocators::{Allocator, ContextRegions, Glibc, Jemalloc, Ordered};
pub(crate) use self::laid_out::LaidOut;
use self::popularity::Popularity;
use crate::{Memory, Program};

choices! {
    pub(crate) enum Named {
        Sequential = "sequential",
        Glibc = "glibc",
        Jemalloc = "jemalloc",
        Context = "context",
        Popularity = "popularity",
    }
}

parameters! {
    /// Parameters of every workload.
    pub(crate) struct LayoutSettings {
        /// How objects are laid out: by time (sequential; glibc with its headers), by size (jemalloc), by
        /// calling context and size (context, Jenga), or by how often they miss, known in advance
        /// (popularity).
        allocator: Named = choice("sequential")
            .source("Jenga, sections 3.3 and 4; sequential is ours: objects back to back in the order of allocation"),
        /// Regions that the context allocator hashes contexts to.
        allocator_regions: u64 = count(1, 1024, "32").source("Jenga, section 4.3"),
    }
}

/// Layout of objects in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Back to back in the order of allocation.
    Sequential,
    /// In the order of allocation, as by glibc's `malloc`.
    Glibc,
    /// By size class, as by jemalloc.
    Jemalloc,
    /// By calling context, hashed to this many regions, and by size class in each (Jenga, section 4.3).
    Context {
        /// Number of regions.
        regions: u64,
    },
    /// From the most to the least popular, which no allocator can know (Jenga, section 3.3).
    Popularity,
}

impl Layout {
    /// Creates the layout that a workload's parameters name.
    pub fn of(parameters: &Parameters) -> Self {
        let LayoutSettings { allocator, allocator_regions: regions } = LayoutSettings::read(parameters);
        match allocator {
            Named::Sequential => Self::Sequential,
            Named::Glibc => Self::Glibc,
            Named::Jemalloc => Self::Jemalloc,
            Named::Context => Self::Context { regions },
            Named::Popularity => Self::Popularity,
        }
    }

    /// Runs the program of `build` on `memory` in this layout; returns its objects' places, or `None` if
    /// `memory` placed them itself.
    ///
    /// [`Self::Popularity`] first makes a run that counts each object's misses in such a `cache`.
    ///
    /// # Errors
    /// Errors of `build`.
    pub fn run<E>(
        self,
        memory: &mut dyn Memory,
        cache: Geometry,
        mut build: impl FnMut() -> Result<Box<dyn Program>, E>,
    ) -> Result<Option<Vec<super::Allocation>>, E> {
        let allocator: Box<dyn Allocator> = match self {
            Self::Sequential => {
                build()?.run(memory);
                return Ok(None);
            }
            Self::Glibc => Box::<Glibc>::default(),
            Self::Jemalloc => Box::<Jemalloc>::default(),
            Self::Context { regions } => Box::new(ContextRegions::new(regions)),
            Self::Popularity => {
                let mut popularity = Popularity::new(cache);
                build()?.run(&mut popularity);
                Box::new(Ordered::new(popularity.ranked()))
            }
        };
        let mut laid_out = LaidOut::new(memory, allocator);
        build()?.run(&mut laid_out);
        Ok(Some(laid_out.into_allocations()))
    }
}
