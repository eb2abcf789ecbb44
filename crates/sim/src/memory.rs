//! Memory of this machine that an input takes, known before it is loaded or replayed.

use isotherm_core::Bytes;

/// Bytes of an access: itself, its look-ups, its next use, its places in the bounds, and room in its vector.
pub const ACCESS_MEMORY: u64 = 36;
/// Bytes of a page while it is numbered and named.
const PAGE_MEMORY: u64 = 96;
/// Bytes of a page in each run at the same time: page table, policy, lists.
const PAGE_MEMORY_PER_RUN: u64 = 256;

/// Returns about how much memory a stream takes with so many runs over it at the same time.
pub fn replay_memory(accesses: u64, pages: u64, runs: u64) -> Bytes {
    let page = PAGE_MEMORY.saturating_add(PAGE_MEMORY_PER_RUN.saturating_mul(runs));
    Bytes(accesses.saturating_mul(ACCESS_MEMORY).saturating_add(pages.saturating_mul(page)))
}
