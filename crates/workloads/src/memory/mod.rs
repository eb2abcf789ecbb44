//! The memory that an instrumented algorithm runs on, its arrays and heaps, and its implementations.

mod address_space;
mod array;
mod counting;
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
pub use isotherm_trace::dataflow::Token;

pub(crate) const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Bytes of a word, the unit in which objects on a heap are read and written.
pub(crate) const WORD: u64 = 8;

/// Memory that an algorithm allocates from and touches; it records, counts or ignores the accesses.
///
/// The algorithm keeps its data in ordinary Rust values and reports the original program's accesses.
pub trait Memory {
    /// Reserves `bytes` at a new address, page-aligned from one page on and otherwise 16-byte-aligned.
    /// `context` names the allocation site, as a context-based allocator sees it.
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64;

    /// Tells that real values at `real` in this process back the allocation at `start`.
    fn backed_by(&mut self, start: u64, real: u64) {
        _ = (start, real);
    }

    /// Makes the following accesses this thread's.
    fn thread(&mut self, thread: u16) {
        _ = thread;
    }

    /// Makes the following accesses this process', whose threads have their own numbers.
    fn process(&mut self, process: u16) {
        _ = process;
    }

    /// Executes `instructions` that touch nothing worth reporting.
    fn compute(&mut self, instructions: u32) {
        _ = instructions;
    }

    /// Reads from `address`, which depends on the value named by `after`. Returns the name of the value read.
    fn load(&mut self, address: u64, after: Token) -> Token;

    /// Writes to `address`, which depends on the value named by `after`.
    fn store(&mut self, address: u64, after: Token);

    /// Reads and then writes what lies at `address`, which depends on the value named by `after`.
    fn modify(&mut self, address: u64, after: Token) {
        let token = self.load(address, after);
        self.store(address, token);
    }

    /// Reads `bytes` from `address` on, line by line in ascending order. Returns the name of the last line's
    /// value, with which the whole object has arrived.
    fn load_range(&mut self, address: u64, bytes: u64, after: Token) -> Token {
        let mut last = after;
        let mut line = address & !63;
        while line < address + bytes && !self.finished() {
            last = self.load(line.max(address), after);
            line += 64;
        }
        last
    }

    /// Writes `bytes` from `address` on, line by line in ascending order.
    fn store_range(&mut self, address: u64, bytes: u64, after: Token) {
        let mut line = address & !63;
        while line < address + bytes && !self.finished() {
            self.store(line.max(address), after);
            line += 64;
        }
    }

    /// Returns whether the algorithm may read ahead of its reports, so that this machine waits for many
    /// values at once. It may not if its own values are observed.
    fn reads_ahead(&self) -> bool {
        true
    }

    /// Returns whether the run may end; a long-running workload then returns soon.
    fn finished(&self) -> bool {
        false
    }
}
