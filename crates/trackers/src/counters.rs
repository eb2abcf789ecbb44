//! Defines counters of 2, 4, 8 or 16 bits packed into 64-bit words, and the 64-byte block of eight words.

use crate::ShapeError;

/// The width of packed counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The width in bits, as a power of two: 1 to 4.
    pub(crate) log: u32,
}

impl Counters {
    /// Counters of 2, 4, 8 or 16 bits.
    pub fn new(bits: u32) -> Result<Self, ShapeError> {
        if matches!(bits, 2 | 4 | 8 | 16) {
            Ok(Self { log: bits.ilog2() })
        } else {
            Err(ShapeError::Bits(bits))
        }
    }

    /// The width in bits.
    pub fn bits(self) -> u32 {
        1 << self.log
    }

    /// The largest count.
    #[inline(always)]
    pub fn maximum(self) -> u32 {
        (1 << self.bits()) - 1
    }

    /// The number of counters in a 64-byte block.
    #[inline(always)]
    pub fn per_block(self) -> u64 {
        512 >> self.log
    }

    /// The number of counters in a word, as a power of two.
    #[inline(always)]
    pub(crate) fn per_word_log(self) -> u32 {
        6 - self.log
    }

    /// [`Slot::turn`] of the counter whose lowest bit is `shift`; what lies above a word's width is ignored.
    #[inline(always)]
    pub(crate) fn turn(self, shift: u32) -> u32 {
        !shift & (64 - self.bits())
    }

    /// The lowest bit of the slot's counter in its word.
    #[inline(always)]
    pub(crate) fn shift(self, slot: Slot) -> u32 {
        (slot.turn ^ (64 - self.bits())) & 63
    }

    /// Every bit of a word but the highest one of each counter.
    fn halving_mask(self) -> u64 {
        let ones = u64::MAX / u64::from(self.maximum());
        ones * u64::from(self.maximum() >> 1)
    }
}

/// One cache line of counters.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block(pub(crate) [u64; 8]);

/// Where a counter stands.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Which block.
    pub(crate) block: usize,
    /// Which word of it; taken modulo 8.
    pub(crate) word: usize,
    /// By how many bits the word has to be shifted left for the counter to stand highest; taken modulo 64.
    pub(crate) turn: u32,
}

/// `blocks` blocks of zeros, or an error where there is no memory for them.
pub(crate) fn allocate(blocks: usize) -> Result<Vec<Block>, ShapeError> {
    let mut memory = Vec::new();
    let refused = |_| ShapeError::Memory(blocks.saturating_mul(size_of::<Block>()));
    memory.try_reserve_exact(blocks).map_err(refused)?;
    memory.resize(blocks, Block([0; 8]));
    Ok(memory)
}

/// Halves every counter, rounding down: a shift of the word, less the bits that cross from one counter to the next.
pub(crate) fn halve(blocks: &mut [Block], counters: Counters) {
    let mask = counters.halving_mask();
    for word in blocks.iter_mut().flat_map(|block| &mut block.0) {
        *word = (*word >> 1) & mask;
    }
}
