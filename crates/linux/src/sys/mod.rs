//! System calls, behind safe functions with contracts.

pub mod bound_memory;
pub mod probe;
