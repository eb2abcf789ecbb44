//! Defines where a program's pages are and how they are moved: maps, present pages, nodes, the mover, reclaim, and the
//! guard that restores what was changed on the host.

pub mod bucket;
pub mod maps;
pub mod mover;
pub mod nodes;
pub mod pagemap;
pub mod reclaim;
pub mod restore;

/// The size of a base page in bytes.
pub const BASE: u64 = 4 << 10;
/// The size of a huge page in bytes.
pub const HUGE: u64 = 2 << 20;
