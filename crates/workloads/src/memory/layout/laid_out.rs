//! The memory whose objects lie where a model of an allocator places them.

use super::allocators::Allocator;
use super::translation::Translation;
use crate::{Allocation, Memory, Token};

pub(crate) struct LaidOut<'a> {
    memory: &'a mut dyn Memory,
    allocator: Box<dyn Allocator>,
    translation: Translation,
}

impl<'a> LaidOut<'a> {
    pub(super) fn new(memory: &'a mut dyn Memory, allocator: Box<dyn Allocator>) -> Self {
        Self { memory, allocator, translation: Translation::default() }
    }

    pub(super) fn into_allocations(self) -> Vec<Allocation> {
        self.translation.into_allocations()
    }
}

impl Memory for LaidOut<'_> {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        let place = self.allocator.place(bytes.max(1), context);
        self.translation.allocate(bytes, context, place)
    }

    fn thread(&mut self, thread: u16) {
        self.memory.thread(thread);
    }

    fn process(&mut self, process: u16) {
        self.memory.process(process);
    }

    fn compute(&mut self, instructions: u32) {
        self.memory.compute(instructions);
    }

    fn load(&mut self, address: u64, after: Token) -> Token {
        self.memory.load(self.translation.translate(address), after)
    }

    fn store(&mut self, address: u64, after: Token) {
        self.memory.store(self.translation.translate(address), after);
    }

    fn load_range(&mut self, address: u64, bytes: u64, after: Token) -> Token {
        self.memory.load_range(self.translation.translate(address), bytes, after)
    }

    fn store_range(&mut self, address: u64, bytes: u64, after: Token) {
        self.memory.store_range(self.translation.translate(address), bytes, after);
    }

    fn reads_ahead(&self) -> bool {
        self.memory.reads_ahead()
    }

    fn finished(&self) -> bool {
        self.memory.finished()
    }
}
