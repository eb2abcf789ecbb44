//! The dependences between a thread's misses, for whoever knows which value an address comes from.
//!
//! A token names the miss through which a value came. A load that misses names its own miss. A load that hits
//! a line still in flight waits for that line's miss. Any other hit costs nothing, but passes on the miss
//! that its address came from. Nothing is in flight longer than a reorder window of instructions, because a
//! core cannot hold both accesses then. Examples: in a pointer chase each miss depends on the one before
//! (distance 1); with four chains in turn, on the fourth before; in `values[index[i]]`, on the recent miss of
//! the index' line.

/// Instructions for which a value is tracked: the reorder window of the largest cores (512, Golden Cove).
const WINDOW: u64 = 512;
/// Misses that a thread remembers: more than a row's dependence can name.
const REMEMBERED: usize = 256;
/// Bits of a token that count misses; the thread stands above them.
const INDEX_BITS: u32 = 48;

/// Name of the value that a load brought in; an access that depends on the value passes it on.
///
/// A token is valid only in the thread that got it. Of the tokens of one thread, the larger one is of the
/// later miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Token(pub u64);

impl Token {
    /// An address that depends on no load: known from the start or computed from a counter.
    pub const NONE: Self = Self(0);
}

/// A miss, counted from 1 in its thread; 0 means none.
type Miss = u64;

/// Returns where a line is remembered: multiplicative hashing, for programs like powers of two.
#[inline]
fn set_of(line: u64) -> usize {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % REMEMBERED
}

/// Misses of a thread that may still be in flight, and the instructions between them.
#[derive(Debug, Clone)]
pub struct Dataflow {
    thread: u16,
    /// As reported; the original's are `factor` times as many.
    instructions: u64,
    factor: f64,
    /// Reported instructions for which a value may be in flight.
    window: u64,
    /// The original's, up to the last row.
    executed: u64,
    misses: Miss,
    /// The instruction count at each recent miss, by miss modulo [`REMEMBERED`].
    issued: Vec<u64>,
    /// Lines of recent misses, two in each set, the newer first; a displaced line counts as arrived.
    brought: Vec<[(u64, Miss); 2]>,
}

impl Dataflow {
    /// Starts a thread that executes `factor` instructions for each reported one.
    pub fn new(thread: u16, factor: f64) -> Self {
        Self {
            thread,
            instructions: 0,
            factor,
            // Conversion from floating point saturates.
            window: (WINDOW as f64 / factor) as u64,
            executed: 0,
            misses: 0,
            issued: vec![0; REMEMBERED],
            brought: vec![[(0, 0); 2]; REMEMBERED],
        }
    }

    /// Counts instructions.
    #[inline]
    pub fn execute(&mut self, count: u64) {
        self.instructions += count;
    }

    /// Records a hit on `line`; returns the name of the value read.
    #[inline]
    pub fn hit(&self, line: u64, after: Token) -> Token {
        if !self.in_flight(self.misses) {
            return Token::NONE;
        }
        let miss = match self.brought[set_of(line)] {
            [(brought, miss), _] | [_, (brought, miss)] if brought == line => miss,
            _ => 0,
        };
        let own = if self.in_flight(miss) { miss } else { 0 };
        self.token(own.max(self.miss(after)))
    }

    /// Records a miss of `line`; returns its row's instructions and dependence, and the value's name.
    #[inline]
    pub fn record(&mut self, line: u64, after: Token) -> (u32, u8, Token) {
        let source = self.miss(after);
        self.misses += 1;
        let distance = if source == 0 { 0 } else { self.misses - source };
        self.issued[self.misses as usize % REMEMBERED] = self.instructions;
        let set = &mut self.brought[set_of(line)];
        *set = [(line, self.misses), set[0]];
        // Of the sum, so that fractions add up.
        let executed = (self.instructions as f64 * self.factor) as u64;
        let instructions = executed - std::mem::replace(&mut self.executed, executed);
        let dependence = u8::try_from(distance).unwrap_or(0);
        (u32::try_from(instructions).unwrap_or(u32::MAX), dependence, self.token(self.misses))
    }

    /// Returns whether the value that `miss` brings may still be on its way.
    #[inline]
    fn in_flight(&self, miss: Miss) -> bool {
        miss != 0
            && self.misses - miss < REMEMBERED as u64
            && self.instructions - self.issued[miss as usize % REMEMBERED] <= self.window
    }

    /// Returns the miss that a token names, if it belongs to this thread and is in flight.
    #[inline]
    fn miss(&self, token: Token) -> Miss {
        let miss = token.0 & ((1 << INDEX_BITS) - 1);
        let own = token.0 >> INDEX_BITS == u64::from(self.thread) && miss <= self.misses;
        if own && self.in_flight(miss) { miss } else { 0 }
    }

    #[inline]
    fn token(&self, miss: Miss) -> Token {
        if miss == 0 { Token::NONE } else { Token(u64::from(self.thread) << INDEX_BITS | miss) }
    }
}
