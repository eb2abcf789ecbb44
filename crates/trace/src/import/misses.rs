//! The model of the last-level cache through which the accesses of a tool pass that knows them all.

use isotherm_core::cache::{Cache, Geometry, LINE_SHIFT};

use super::output::Output;
use crate::{Row, Rows};

/// Place of a process's number in the tags, above every line of an address below 2^57.
const PROCESS_SHIFT: u32 = 51;

/// Cache that all threads and processes share; its misses become rows.
pub(super) struct Misses<'a> {
    cache: Cache,
    output: Output<'a>,
}

impl<'a> Misses<'a> {
    pub(super) fn new(geometry: Geometry, sink: &'a mut dyn FnMut(&Rows)) -> Self {
        Self { cache: Cache::new(geometry), output: Output::new(sink) }
    }

    /// Passes an access of `size` bytes on. The first line that misses takes the `instructions`.
    pub(super) fn access(
        &mut self,
        (process, thread): (u32, u32),
        address: u64,
        size: u64,
        store: bool,
        instructions: &mut u32,
    ) {
        let last = address.saturating_add(size.saturating_sub(1));
        for line in address >> LINE_SHIFT..=last >> LINE_SHIFT {
            if !self.touch(process, line) {
                let instructions = std::mem::take(instructions);
                self.push(Row { process, thread, instructions, line, store, dependence: 0 });
            }
        }
    }

    /// Touches a line and returns whether it hit.
    pub(super) fn touch(&mut self, process: u32, line: u64) -> bool {
        // The uppermost bit stays free: a tag is one more than this.
        self.cache.touch((line ^ u64::from(process) << PROCESS_SHIFT) & (u64::MAX >> 1))
    }

    pub(super) fn push(&mut self, row: Row) {
        self.output.push(row);
    }

    /// Hands out the rest, and returns the number of rows.
    pub(super) fn finish(self) -> u64 {
        self.output.finish()
    }
}
