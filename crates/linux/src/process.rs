//! Defines the processes that are followed.

/// A process, by its number in Isotherm's own PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Pid(pub u32);
