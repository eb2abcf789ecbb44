//! Defines what memory the machine has: nodes, tiers and processors, read from `/sys` and `/proc`.

pub mod cpu;
pub(crate) mod files;
