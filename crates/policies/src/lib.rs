//! Tiering policies, one module a published system, and the [`registry`] that names them.
//!
//! Nothing here performs I/O, reads a clock or starts a thread: see [`isotherm_core::Policy`].
//!
//! ```
//! use isotherm_core::{PageSize, Pages};
//! use isotherm_policies::{Kind, Setup, find};
//!
//! let entry = find("freqtier").unwrap();
//! let mut parameters = entry.parameters();
//! parameters.set("batch", "5000").unwrap();
//! let setup = Setup { pages: 4096, fast: Pages(512), page_size: PageSize::Base, tiers: 2, seed: 1 };
//! let Kind::Policy(build) = entry.kind else { panic!("a bound") };
//! let policy = build(&parameters, &setup).unwrap();
//! assert_eq!(policy.sampling().batch, 5000);
//! ```

#![forbid(unsafe_code)]

mod alto;
mod colloid;
mod first_touch;
mod freqtier;
mod hemem;
mod hybridtier;
mod isotherm;
mod jenga;
mod lru;
mod memtis;
mod multi_clock;
mod nbt;
mod neomem;
mod nomad;
mod pact;
mod pmu_sampling;
mod pte_scan;
pub mod registry;
pub mod replacement;
mod setup;
pub mod soar;
mod support;
mod tpp;

mod prelude {
    pub(crate) use isotherm_core::parameters::Parameters;
    pub(crate) use isotherm_core::*;

    pub(crate) use crate::Setup;
}

pub use pact::Pact;
pub use registry::{ALL, Bound, Entry, Hosts, Kind, UnknownPolicy, find};
pub use setup::{BuildError, Setup};
