//! Processes: how a program is started, its tree, and one engine per process.

pub mod census;
mod exit;
pub mod folder;
pub mod launch;
mod load;
pub mod lock;
pub mod preload;
mod proc;
pub mod signals;
pub mod socket;
mod stat;
pub mod tree;

pub use exit::Exit;
pub use load::Load;
pub use proc::ProcRoot;
pub(crate) use proc::excerpt;
pub use stat::ProcessStat;

pub use crate::sys::process::{Pid, raise_open_files};
