//! The modelled machine: the simulator and the lab's QEMU plugin charge accesses by it.
//!
//! A [`Profile`] describes a machine as data. [`CostModel`] turns misses into time on its cores ([`thread_model`]) and
//! tiers ([`tiers`]).

#![forbid(unsafe_code)]

pub mod cores;
mod cost_model;
mod profile;
mod slots;
pub mod streamer;
mod summary;
pub mod thread_model;
pub mod tiers;

pub use cost_model::{BLOCK, CostModel, Miss, MissCost};
pub use profile::{CoreClock, CoreProfile, Costs, DeviceProfile, Profile, ProfileError, TierProfile};
pub use summary::{MachineNumber, MachineSummary};
