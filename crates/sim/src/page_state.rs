//! The byte in which the page table keeps the state of a page: its tier and flags.

/// Marks a page that has not been touched yet.
pub(crate) const UNMAPPED: u8 = 0x07;
pub(crate) const TIER_MASK: u8 = 0x07;
/// The accessed bit that reclaim reads: every access sets it, reclaim clears it.
pub(crate) const REFERENCED: u8 = 0x08;
/// The accessed bit that scans read and clear. Linux keeps both as well: a scan that clears the entry's bit
/// leaves `PG_young` for reclaim (`mm/page_idle.c`).
pub(crate) const ACCESSED: u8 = 0x10;
pub(crate) const ARMED: u8 = 0x20;
/// The next slower tier holds a valid copy: the next store faults and drops it.
pub(crate) const SHADOWED: u8 = 0x40;
/// Reclaim found the page referenced on its last look: the kernel's `PG_referenced`.
pub(crate) const MARKED: u8 = 0x80;
/// Bits that an access sets.
pub(crate) const USED: u8 = REFERENCED | ACCESSED;
/// Bits that a page keeps when it moves.
pub(crate) const KEPT: u8 = USED | MARKED;
