//! The modelled machine, by which the simulator and the lab's QEMU plugin charge accesses.
//!
//! A [`Profile`] describes a machine as data. [`CostModel`] turns misses into time on its cores and tiers:
//!
//! ```
//! use isotherm_core::PageSize;
//! use isotherm_machine::{CostModel, Footprint, Miss, Profile};
//!
//! let profile = Profile::builtin("pact")?;
//! let memory = Footprint { pages: 16, page_size: PageSize::Base, scale: 1.0 };
//! let mut model = CostModel::new(&profile, 1, memory).expect("one thread and two tiers");
//! // A chain of 1000 loads, each of which needs the one before, in the slow tier of 190 ns.
//! for _ in 0..1000 {
//!     model.miss(Miss { thread: 0, instructions: 10, dependence: 1, store: false, tier: 1, page: 3 });
//! }
//! model.settle();
//! assert!((190_000..210_000).contains(&model.now().0));
//! # Ok::<(), isotherm_machine::ProfileError>(())
//! ```

#![forbid(unsafe_code)]

mod cores;
mod cost_model;
mod curve;
mod limits;
mod lookup;
mod profile;
mod registers;
mod reorder;
mod slots;
mod streamer;
mod thread_model;
mod tiers;
mod translation;
mod walkers;

pub use cores::{BlockEnd, ByCause, Cause, Cores};
pub use cost_model::{BLOCK, CostModel, Miss, MissCost};
pub use curve::{Curve, Point};
pub use limits::MAX_TIERS;
pub use lookup::{Lookup, Translation, Walks};
pub use profile::{
    CoreClock, CoreProfile, Costs, DeviceProfile, MachineNumber, MachineSummary, Profile, ProfileError,
    TierProfile, TlbProfile, is_path,
};
pub use reorder::ReorderWindows;
pub use streamer::{Position, Streamer, Triggers, Wasted};
pub use thread_model::{CoreTiming, Request, ThreadModel, Timing};
pub use tiers::{LINE_BYTES, Tier, transfer_time};
pub use translation::{Footprint, Translator};
