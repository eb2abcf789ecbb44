//! An application over a memory.

use isotherm_core::Bytes;

use crate::Memory;

/// An application ready to run once.
pub trait Program: Send {
    /// Returns about how much memory the run reserves; chunks exceed their items, so it may touch a fifth
    /// less.
    fn footprint(&self) -> Bytes;

    /// Returns the number of its processes, each with an address space of its own.
    fn processes(&self) -> usize {
        1
    }

    /// Runs to the end, or until `memory` is finished.
    fn run(self: Box<Self>, memory: &mut dyn Memory);
}
