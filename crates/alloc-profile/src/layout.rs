//! The file's layout, in words of 8 bytes.

/// First word of a profile: "ISOALLOC".
pub const MAGIC: u64 = u64::from_be_bytes(*b"ISOALLOC");
/// Version of this layout.
pub const VERSION: u64 = 1;

/// Words of the header.
pub const HEADER: usize = 16;
/// Place of [`MAGIC`].
pub const MAGIC_AT: usize = 0;
/// Place of [`VERSION`].
pub const VERSION_AT: usize = 1;
/// Place of the process's number.
pub const PROCESS_AT: usize = 2;
/// Place of the number of regions.
pub const REGIONS_AT: usize = 3;
/// Place of the number of return addresses of a context.
pub const DEPTH_AT: usize = 4;
/// Place of the mean number of bytes per sampled block.
pub const SAMPLE_AT: usize = 5;
/// Place of the number of contexts seen; those above [`CONTEXTS`] are in no table.
pub const CONTEXTS_AT: usize = 6;
/// Place of the number of modules seen; those above [`MODULES`] are in no table.
pub const MODULES_AT: usize = 7;
/// Place of the number of samples for which there was no room.
pub const LOST_AT: usize = 8;

/// Most regions.
pub const REGIONS: usize = 256;
/// Words of a region.
pub const REGION: usize = 8;
/// Word of a region that holds its first address.
pub const REGION_START: usize = 0;
/// Word of a region that holds its end.
pub const REGION_END: usize = 1;
/// Word of a region that holds the first address that was never used.
pub const REGION_FRONTIER: usize = 2;
/// Word of a region that holds the bytes of live blocks, including those that threads keep for reuse.
pub const REGION_ALLOCATED: usize = 3;
/// Word of a region that holds the bytes of pages with live blocks.
pub const REGION_ACTIVE: usize = 4;
/// Word of a region that holds the bytes of pages with memory behind them.
pub const REGION_RESIDENT: usize = 5;

/// Most contexts.
pub const CONTEXTS: usize = 8192;
/// Words of a context.
pub const CONTEXT: usize = 16;
/// Word of a context that holds its hash, 0 while it is being entered.
pub const CONTEXT_HASH: usize = 0;
/// Word of a context that holds its region's index.
pub const CONTEXT_REGION: usize = 1;
/// Word of a context that holds its number of frames.
pub const CONTEXT_LENGTH: usize = 2;
/// Word of a context that holds the blocks that it has allocated.
pub const CONTEXT_BLOCKS: usize = 3;
/// Word of a context that holds the bytes of these blocks.
pub const CONTEXT_BYTES: usize = 4;
/// First word of a context's frames, innermost first: module in the bits above [`OFFSET_BITS`], then offset.
pub const CONTEXT_FRAMES: usize = 5;
/// Most frames of a context.
pub const FRAMES: usize = 10;

/// Most modules.
pub const MODULES: usize = 256;
/// Words of a module: its first address, then its path, ended by a byte of 0.
pub const MODULE: usize = 32;
/// Bits of a frame that hold the offset.
pub const OFFSET_BITS: u32 = 48;

/// Places for sampled blocks, a power of two. A block lies at the first free place from its hash on.
pub const BLOCKS: usize = 1 << 16;
/// Words of a block: address (0 for a place never used, 1 for a free one), size, context, bytes stood for.
pub const BLOCK: usize = 4;

/// First word of the regions.
pub const REGIONS_FROM: usize = HEADER;
/// First word of the contexts.
pub const CONTEXTS_FROM: usize = REGIONS_FROM + REGIONS * REGION;
/// First word of the modules.
pub const MODULES_FROM: usize = CONTEXTS_FROM + CONTEXTS * CONTEXT;
/// First word of the blocks.
pub const BLOCKS_FROM: usize = MODULES_FROM + MODULES * MODULE;
/// Words of the file.
pub const WORDS: usize = BLOCKS_FROM + BLOCKS * BLOCK;

const _: () = assert!(CONTEXT_FRAMES + FRAMES <= CONTEXT);
