//! A program's pages: maps, presence, nodes, the mover and reclaim.

pub mod bucket;
pub mod huge;
pub mod interleave;
pub mod maps;
pub mod mover;
pub mod nodes;
pub mod pagemap;
pub mod reclaim;
pub mod zswap;

/// Bytes of a base page.
pub const BASE: u64 = 4 << 10;
/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;
