//! The memory that an instrumented algorithm runs on, what it keeps there, and the memories that record, count or ignore
//! its accesses.

mod address_space;
mod array;
mod counting;
mod dataflow;
pub(crate) mod heap;
mod last_line;
mod layout;
mod miss_recorder;
mod native;

pub use self::address_space::{AddressSpace, Allocation};
pub(crate) use self::array::Array;
pub use self::counting::CountingMemory;
pub(crate) use self::last_line::LastLine;
pub use self::layout::Layout;
pub(crate) use self::layout::LayoutSettings;
pub use self::miss_recorder::{Limits, MissRecorder};
pub use self::native::NativeMemory;

/// Bytes of a line.
pub(crate) const LINE: u64 = 64;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a word, the unit in which objects on a heap are read and written.
pub(crate) const WORD: u64 = 8;

/// Names the value that a load brought in, so that a later access can say that its address depends on it.
///
/// A token means something only to the thread that got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Token(pub u64);

impl Token {
    /// An address that depends on no load: known from the start or computed from a counter.
    pub const NONE: Self = Self(0);
}

/// Memory that an algorithm allocates from and touches; its implementations record, count or really access it.
///
/// The algorithm keeps its real data in ordinary Rust values and reports each access that the original program would
/// make to its own memory.
pub trait Memory {
    /// Reserves `bytes` at a new address (page-aligned from one page upward, otherwise 16-byte-aligned), in the calling
    /// context `context`: the name of the allocation site, as a context-based allocator would see it.
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64;

    /// Real values stand behind the allocation at `start`; they lie at `real` in this process.
    fn backed_by(&mut self, start: u64, real: u64) {
        _ = (start, real);
    }

    /// The accesses that follow are made by this thread.
    fn thread(&mut self, thread: u16);

    /// The accesses that follow are made in the address space of this process; its threads have numbers of their own.
    fn process(&mut self, process: u16) {
        _ = process;
    }

    /// `instructions` were executed that touch nothing worth reporting.
    fn compute(&mut self, instructions: u32);

    /// Reads from `address`, which depends on the value named by `after`. Returns the name of the value read.
    fn load(&mut self, address: u64, after: Token) -> Token;

    /// Writes to `address`, which depends on the value named by `after`.
    fn store(&mut self, address: u64, after: Token);

    /// Reads and then writes what lies at `address`, which depends on the value named by `after`.
    fn modify(&mut self, address: u64, after: Token) {
        let token = self.load(address, after);
        self.store(address, token);
    }

    /// Reads `bytes` from `address` on, a line at a time, in ascending order. Returns the name of the last line's value:
    /// with it the whole object has arrived.
    fn load_range(&mut self, address: u64, bytes: u64, after: Token) -> Token {
        let mut last = after;
        let mut line = address & !63;
        while line < address + bytes {
            last = self.load(line.max(address), after);
            line += 64;
        }
        last
    }

    /// Writes `bytes` from `address` on, a line at a time, in ascending order.
    fn store_range(&mut self, address: u64, bytes: u64, after: Token) {
        let mut line = address & !63;
        while line < address + bytes {
            self.store(line.max(address), after);
            line += 64;
        }
    }

    /// Returns whether the algorithm may read ahead of what it reports, so that this machine waits for many values at once; where
    /// its own values are what is observed it may not.
    fn reads_ahead(&self) -> bool {
        true
    }

    /// Returns whether the run has seen enough: a long-running workload should return soon.
    fn finished(&self) -> bool {
        false
    }
}
