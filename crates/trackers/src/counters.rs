//! Counters of 2, 4, 8 or 16 bits packed into 64-bit words, and the 64-byte block of eight words.

/// Width of packed counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Binary logarithm of the width in bits: 1 to 4.
    pub(crate) log: u32,
}

impl Counters {
    /// Returns the width in bits.
    pub fn bits(self) -> u32 {
        1 << self.log
    }

    /// Returns the largest count.
    #[inline(always)]
    pub fn maximum(self) -> u32 {
        (1 << self.bits()) - 1
    }

    /// Returns the number of counters in a 64-byte block.
    #[inline(always)]
    pub fn per_block(self) -> u64 {
        512 >> self.log
    }

    #[inline(always)]
    pub(crate) fn per_word_log(self) -> u32 {
        6 - self.log
    }

    /// Returns [`Slot::turn`] of the counter whose lowest bit is `shift`, modulo a word's width.
    #[inline(always)]
    pub(crate) fn turn(self, shift: u32) -> u32 {
        !shift & (64 - self.bits())
    }

    /// Returns the lowest bit of the slot's counter in its word.
    #[inline(always)]
    pub(crate) fn shift(self, slot: Slot) -> u32 {
        (slot.turn ^ (64 - self.bits())) & 63
    }

    /// Returns a word with every bit set except the highest of each counter.
    fn halving_mask(self) -> u64 {
        let ones = u64::MAX / u64::from(self.maximum());
        ones * u64::from(self.maximum() >> 1)
    }
}

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block(pub(crate) [u64; 8]);

/// Position of a counter.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub(crate) block: usize,
    /// Word of the block, modulo 8.
    pub(crate) word: usize,
    /// Left shift, modulo 64, that brings the counter to the top of its word.
    pub(crate) turn: u32,
}

/// Halves every counter, rounding down: shifts each word and masks the bits that cross into the next counter.
pub(crate) fn halve(blocks: &mut [Block], counters: Counters) {
    let mask = counters.halving_mask();
    for word in blocks.iter_mut().flat_map(|block| &mut block.0) {
        *word = (*word >> 1) & mask;
    }
}
