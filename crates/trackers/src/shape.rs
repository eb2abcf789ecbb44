//! The size of a counting Bloom filter and its false-positive rate.
//!
//! A false positive is a key never counted whose estimate is not 0. An increase leaves all `k` counters of
//! its key above 0, so the rate is that of a plain Bloom filter with one bit per counter.
//!
//! **Standard**: with `n` keys in `m` counters `p = (1 - e^(-kn/m))^k`, hence `m = n * -k / ln(1 - p^(1/k))`,
//! as in HybridTier (section 4.2, printed with one sign too many) and FreqTier (section V-A).
//!
//! **Blocked**: a block of `c` counters holds `i` keys with the Poisson probability of mean `n / b` (Putze,
//! Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007, section 3). A key takes `k`
//! different counters of its block, so `p = sum over i of Poisson(i; n/b) * (1 - (1 - k/c)^i)^k`. Full blocks
//! lose more than empty ones gain: where a standard filter of the same size has a rate of 0.00100, the
//! blocked one has, at k = 4, 0.0014 with 2-bit counters, 0.0019 with 4, 0.0029 with 8 and 0.0055 with 16
//! bits. `tests/accuracy.rs` measures these and wrong estimates.

use crate::counters::{Block, Counters};

/// Bytes of a block: one cache line.
const BLOCK_BYTES: usize = 64;
/// Largest filter in bytes; 2^32 pages with 16-bit counters at p = 0.001 need less.
const LIMIT: f64 = (1u64 << 38) as f64;

/// The reason that a filter cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// An unsupported counter width.
    #[error("a counter has 2, 4, 8 or 16 bits, not {0}")]
    Bits(u32),
    /// An unsupported number of hash functions.
    #[error("a filter has 1 to 8 hash functions, not {0}")]
    Hashes(u32),
    /// A rate outside the open interval from 0 to 1.
    #[error("a false-positive rate is above 0 and below 1, not {0}")]
    Rate(f64),
    /// A size of 0 or above the limit, in bytes.
    #[error("a filter has 1 byte to 256 GiB, not {0} bytes")]
    Size(f64),
    /// A filter type that does not match the shape.
    #[error("a filter type of {hashes} hash functions and {bits}-bit counters cannot take a shape of {} and {}",
        shape.hashes, shape.counters.bits())]
    Type {
        /// The requested shape.
        shape: FilterShape,
        /// Hash functions of the type.
        hashes: u32,
        /// Counter width of the type in bits.
        bits: u32,
    },
    /// An allocation that failed.
    #[error("no memory for a filter of {0} bytes")]
    Memory(usize),
}

/// Size of a counting Bloom filter: counter width, hash functions and 64-byte blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterShape {
    counters: Counters,
    hashes: u32,
    blocks: usize,
}

impl FilterShape {
    /// Returns the smallest shape of a standard filter with a rate of at most `rate` at `keys` keys.
    ///
    /// Both papers size the blocked form with this formula too; its rate is then somewhat higher.
    /// Fails if an argument is out of range or the filter would exceed 256 GiB.
    pub fn for_keys(keys: u64, rate: f64, bits: u32, hashes: u32) -> Result<Self, ShapeError> {
        let width = checked(bits, hashes)?;
        if !(rate > 0.0 && rate < 1.0) {
            return Err(ShapeError::Rate(rate));
        }
        let k = f64::from(hashes);
        let counters = (keys as f64 * -k / (-rate.powf(1.0 / k)).ln_1p()).ceil();
        Self::sized(counters * f64::from(bits) / 8.0, width, hashes)
    }

    /// Returns the shape of a filter of `bytes` bytes, rounded up to whole blocks.
    /// Fails if an argument is out of range.
    pub fn with_bytes(bytes: u64, bits: u32, hashes: u32) -> Result<Self, ShapeError> {
        Self::sized(bytes as f64, checked(bits, hashes)?, hashes)
    }

    fn sized(bytes: f64, counters: Counters, hashes: u32) -> Result<Self, ShapeError> {
        if !(1.0..=LIMIT).contains(&bytes) {
            return Err(ShapeError::Size(bytes));
        }
        Ok(Self { counters, hashes, blocks: (bytes / BLOCK_BYTES as f64).ceil() as usize })
    }

    /// Returns the counters' width.
    pub fn width(self) -> Counters {
        self.counters
    }

    /// Returns the number of hash functions, k.
    pub fn hashes(self) -> u32 {
        self.hashes
    }

    /// Returns the number of 64-byte blocks.
    pub fn blocks(self) -> usize {
        self.blocks
    }

    /// Returns the number of counters, m.
    pub fn counters(self) -> u64 {
        self.blocks as u64 * self.counters.per_block()
    }

    /// Returns the size in bytes.
    pub fn bytes(self) -> usize {
        self.blocks * BLOCK_BYTES
    }
}

impl Counters {
    /// Accepts a width of 2, 4, 8 or 16 bits.
    ///
    /// # Errors
    /// [`ShapeError::Bits`] for any other width.
    pub fn new(bits: u32) -> Result<Self, ShapeError> {
        if !matches!(bits, 2 | 4 | 8 | 16) {
            return Err(ShapeError::Bits(bits));
        }
        Ok(Self { log: bits.ilog2() })
    }
}

fn checked(bits: u32, hashes: u32) -> Result<Counters, ShapeError> {
    let width = Counters::new(bits)?;
    if (1..=8).contains(&hashes) { Ok(width) } else { Err(ShapeError::Hashes(hashes)) }
}

/// Allocates `blocks` blocks of zeros; fails with [`ShapeError::Memory`] if the allocator refuses.
pub(crate) fn allocate(blocks: usize) -> Result<Vec<Block>, ShapeError> {
    let mut memory = Vec::new();
    let refused = |_| ShapeError::Memory(blocks.saturating_mul(size_of::<Block>()));
    memory.try_reserve_exact(blocks).map_err(refused)?;
    memory.resize(blocks, Block([0; 8]));
    Ok(memory)
}
