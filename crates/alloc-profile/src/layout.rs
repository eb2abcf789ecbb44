//! The file's layout, in words of 8 bytes: where the header's words stand (`_AT`), how many entries a table
//! has and words an entry, which word of an entry holds what, and where the tables begin (`_FROM`).

pub const MAGIC: u64 = u64::from_be_bytes(*b"ISOALLOC");
pub const VERSION: u64 = 1;

pub const HEADER: usize = 16;
pub const MAGIC_AT: usize = 0;
pub const VERSION_AT: usize = 1;
pub const PROCESS_AT: usize = 2;
pub const REGIONS_AT: usize = 3;
pub const DEPTH_AT: usize = 4;
/// Mean number of bytes per sampled block.
pub const SAMPLE_AT: usize = 5;
/// Contexts seen; those above [`CONTEXTS`] are in no table.
pub const CONTEXTS_AT: usize = 6;
/// Modules seen; those above [`MODULES`] are in no table.
pub const MODULES_AT: usize = 7;
/// Samples for which there was no room.
pub const LOST_AT: usize = 8;

pub const REGIONS: usize = 256;
pub const REGION: usize = 8;
pub const REGION_START: usize = 0;
pub const REGION_END: usize = 1;
/// First address that was never used.
pub const REGION_FRONTIER: usize = 2;
/// Bytes of live blocks, including those that threads keep for reuse.
pub const REGION_ALLOCATED: usize = 3;
/// Bytes of pages with live blocks.
pub const REGION_ACTIVE: usize = 4;
/// Bytes of pages with memory behind them.
pub const REGION_RESIDENT: usize = 5;

pub const CONTEXTS: usize = 8192;
pub const CONTEXT: usize = 16;
/// 0 while the context is being entered.
pub const CONTEXT_HASH: usize = 0;
pub const CONTEXT_REGION: usize = 1;
pub const CONTEXT_LENGTH: usize = 2;
pub const CONTEXT_BLOCKS: usize = 3;
pub const CONTEXT_BYTES: usize = 4;
/// First word of a context's frames, innermost first: module in the bits above [`OFFSET_BITS`], then offset.
pub const CONTEXT_FRAMES: usize = 5;
pub const FRAMES: usize = 10;

pub const MODULES: usize = 256;
/// Words of a module: its first address, then its path, ended by a byte of 0.
pub const MODULE: usize = 32;
pub const OFFSET_BITS: u32 = 48;

/// Places for sampled blocks, a power of two. A block lies at the first free place from its hash on.
pub const BLOCKS: usize = 1 << 16;
/// Words of a block: address (0 for a place never used, 1 for a free one), size, context, bytes stood for.
pub const BLOCK: usize = 4;

pub const REGIONS_FROM: usize = HEADER;
pub const CONTEXTS_FROM: usize = REGIONS_FROM + REGIONS * REGION;
pub const MODULES_FROM: usize = CONTEXTS_FROM + CONTEXTS * CONTEXT;
pub const BLOCKS_FROM: usize = MODULES_FROM + MODULES * MODULE;
pub const WORDS: usize = BLOCKS_FROM + BLOCKS * BLOCK;

const _: () = assert!(CONTEXT_FRAMES + FRAMES <= CONTEXT);
