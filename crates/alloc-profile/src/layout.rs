//! Defines where everything is in the file, in words of 8 bytes.

/// What a profile begins with: "ISOALLOC".
pub const MAGIC: u64 = u64::from_be_bytes(*b"ISOALLOC");
/// This layout.
pub const VERSION: u64 = 1;

/// Words of the header.
pub const HEADER: usize = 16;
/// [`MAGIC`].
pub const MAGIC_AT: usize = 0;
/// [`VERSION`].
pub const VERSION_AT: usize = 1;
/// The process.
pub const PROCESS_AT: usize = 2;
/// How many regions there are.
pub const REGIONS_AT: usize = 3;
/// Return addresses of a context.
pub const DEPTH_AT: usize = 4;
/// Bytes for which one block is sampled, on average.
pub const SAMPLE_AT: usize = 5;
/// Contexts seen; those beyond [`CONTEXTS`] are in none of the tables.
pub const CONTEXTS_AT: usize = 6;
/// Modules seen; those beyond [`MODULES`] are not told.
pub const MODULES_AT: usize = 7;
/// Samples for which there was no room.
pub const LOST_AT: usize = 8;

/// The most regions.
pub const REGIONS: usize = 256;
/// Words of a region.
pub const REGION: usize = 8;
/// Words of a region: its address range, the address from which on nothing was used yet.
pub const REGION_START: usize = 0;
/// See [`REGION_START`].
pub const REGION_END: usize = 1;
/// See [`REGION_START`].
pub const REGION_FRONTIER: usize = 2;
/// Bytes of live blocks, with those that threads keep for reuse.
pub const REGION_ALLOCATED: usize = 3;
/// Bytes of pages that hold live blocks.
pub const REGION_ACTIVE: usize = 4;
/// Bytes of pages that memory stands behind.
pub const REGION_RESIDENT: usize = 5;

/// The most contexts.
pub const CONTEXTS: usize = 8192;
/// Words of a context.
pub const CONTEXT: usize = 16;
/// Words of a context: its hash (0 while it is entered), its region, how many frames it has, blocks and bytes allocated,
/// then its frames, innermost first: module in the upper 16 bits, else offset into it.
pub const CONTEXT_HASH: usize = 0;
/// See [`CONTEXT_HASH`].
pub const CONTEXT_REGION: usize = 1;
/// See [`CONTEXT_HASH`].
pub const CONTEXT_LENGTH: usize = 2;
/// See [`CONTEXT_HASH`].
pub const CONTEXT_BLOCKS: usize = 3;
/// See [`CONTEXT_HASH`].
pub const CONTEXT_BYTES: usize = 4;
/// See [`CONTEXT_HASH`].
pub const CONTEXT_FRAMES: usize = 5;
/// The most frames of a context.
pub const FRAMES: usize = 10;

/// The most modules.
pub const MODULES: usize = 256;
/// Words of a module: its first address, then its path, which ends with a byte of 0.
pub const MODULE: usize = 32;
/// Bits of a frame that hold the offset.
pub const OFFSET_BITS: u32 = 48;

/// Places for sampled blocks, a power of two. A block lies at the first free place from its address's hash on.
pub const BLOCKS: usize = 1 << 16;
/// Words of a block: its address (0 for a free place, 1 for one that was used), its size, its context, the bytes that it stands for.
pub const BLOCK: usize = 4;

/// The first word of the regions.
pub const REGIONS_FROM: usize = HEADER;
/// The first word of the contexts.
pub const CONTEXTS_FROM: usize = REGIONS_FROM + REGIONS * REGION;
/// The first word of the modules.
pub const MODULES_FROM: usize = CONTEXTS_FROM + CONTEXTS * CONTEXT;
/// The first word of the blocks.
pub const BLOCKS_FROM: usize = MODULES_FROM + MODULES * MODULE;
/// Words of the file.
pub const WORDS: usize = BLOCKS_FROM + BLOCKS * BLOCK;

const _: () = assert!(CONTEXT_FRAMES + FRAMES <= CONTEXT);
