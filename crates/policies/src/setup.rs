//! The run that a policy is built for.

use isotherm_core::parameters::Parameters;
use isotherm_core::{Bytes, PageSize, Pages, Policy};
use isotherm_trackers::ShapeError;

/// The run that a policy sizes its structures for.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// One more than the largest page there can be, as [`isotherm_core::View::pages`].
    pub pages: usize,
    /// The fast tier's capacity in pages of `page_size`.
    pub fast: Pages,
    /// The page size of the run.
    pub page_size: PageSize,
    /// The number of tiers; at least 1.
    pub tiers: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Setup {
    /// Returns the pages in a share of the fast tier, rounded up.
    pub(crate) fn share(&self, share: f64) -> u64 {
        (self.fast.0 as f64 * share).ceil() as u64
    }

    pub(crate) fn pages_in(&self, size: Bytes) -> u64 {
        size.0 >> self.page_size.shift()
    }
}

/// An error of building a policy.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its filter does not fit the setup or the memory.
    #[error("{policy}: {source}")]
    Filter {
        /// The policy's name.
        policy: &'static str,
        /// The filter's error.
        source: ShapeError,
    },
}

/// Builds a policy. Its parameters must come from the entry's specs.
pub type Build = fn(&Parameters, &Setup) -> Result<Box<dyn Policy>, BuildError>;
