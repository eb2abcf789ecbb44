//! Processes: how a program is started, its tree, and one engine per process.

mod exit;
pub mod launch;
pub mod lock;
mod proc;
pub mod signals;
mod stat;
pub mod tree;

pub use exit::Exit;
pub use proc::ProcRoot;
pub(crate) use proc::excerpt;
pub use stat::ProcessStat;

pub use crate::sys::process::Pid;
