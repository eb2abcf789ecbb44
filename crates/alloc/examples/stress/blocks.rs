//! Live blocks with known contents.

use crate::calls::{self, SITES};

/// SplitMix64, which makes runs repeatable.
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Draws a size; most are small, as in programs.
    fn size(&mut self) -> usize {
        let most = match self.below(1000) {
            0 => 300_000,
            1..20 => 20_000,
            20..200 => 2_000,
            _ => 200,
        };
        self.below(most) as usize
    }
}

struct Block {
    start: *mut u8,
    size: usize,
    tag: u64,
}

/// Live blocks, up to a fixed number.
pub(crate) struct Blocks {
    live: Vec<Option<Block>>,
}

// SAFETY: this value is the only owner of its blocks, and any thread may use and release a block.
unsafe impl Send for Blocks {}

impl Blocks {
    pub(crate) fn new(count: usize) -> Self {
        Self { live: (0..count).map(|_| None).collect() }
    }

    /// Makes one call at a random place: allocates if it has no block, otherwise releases or resizes the
    /// block.
    pub(crate) fn step(&mut self, random: &mut Generator) {
        let index = random.below(self.live.len() as u64) as usize;
        let (size, site) = (random.size(), random.below(SITES) as usize);
        let next = match self.live[index].take() {
            None => Some(Block::allocate(size, site, random)),
            Some(block) if random.below(4) == 0 => Some(block.resize(size, random)),
            Some(block) => {
                block.release(random);
                None
            }
        };
        self.live[index] = next;
    }

    /// Releases all blocks.
    pub(crate) fn clear(&mut self) {
        let mut random = Generator::new(7);
        self.live.iter_mut().filter_map(Option::take).for_each(|block| block.release(&mut random));
    }
}

impl Block {
    fn allocate(size: usize, site: usize, random: &mut Generator) -> Self {
        let (start, zeroed) = calls::allocate(site, size, random);
        let block = Self { start, size, tag: random.next() };
        if zeroed {
            assert!(
                block.bytes().iter().all(|&byte| byte == 0),
                "calloc of {size} at {start:?} has no zeros"
            );
        }
        block.fill(0);
        block
    }

    /// Returns the contents from byte `8 * index` on.
    fn word(&self, index: usize) -> [u8; 8] {
        (self.tag ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_ne_bytes()
    }

    fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: the block has this many bytes, which belong to this value; callers use one slice at a time.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }

    fn fill(&self, from: usize) {
        for (index, bytes) in self.bytes().chunks_mut(8).enumerate().skip(from / 8) {
            bytes.copy_from_slice(&self.word(index)[..bytes.len()]);
        }
    }

    fn verify(&self, length: usize) {
        for (index, bytes) in self.bytes()[..length].chunks(8).enumerate() {
            let expected = &self.word(index)[..bytes.len()];
            assert_eq!(bytes, expected, "byte {} of {} at {:?}", 8 * index, self.size, self.start);
        }
    }

    fn resize(mut self, size: usize, random: &mut Generator) -> Self {
        self.verify(self.size);
        let kept = self.size.min(size);
        self.start = calls::resize(self.start, size.max(1), random);
        self.size = size.max(1);
        self.verify(kept.min(self.size));
        self.fill(kept);
        self
    }

    fn release(self, random: &mut Generator) {
        self.verify(self.size);
        calls::release(self.start, self.size, random);
    }
}
