//! A memory that counts each object's misses, for the layout that no allocator can know.

use isotherm_core::cache::{Cache, Geometry, LINE_SHIFT};

use super::translation::Translation;
use crate::{Memory, Token};

/// Counts each object's misses in a cache that all threads share, as the PEBS samples of Jenga's authors do.
pub(super) struct Popularity {
    cache: Cache,
    objects: Translation,
    misses: Vec<u64>,
}

impl Popularity {
    pub(super) fn new(cache: Geometry) -> Self {
        Self { cache: Cache::new(cache), objects: Translation::default(), misses: Vec::new() }
    }

    /// Returns the objects, numbered by allocation, in descending order of misses per byte, and their sizes.
    pub(super) fn ranked(&self) -> (Vec<usize>, Vec<u64>) {
        let bytes: Vec<u64> = self.objects.objects().iter().map(|object| object.bytes).collect();
        let mut ranked: Vec<usize> = (0..bytes.len()).collect();
        let density = |object: usize| self.misses[object] as f64 / bytes[object] as f64;
        ranked.sort_by(|&one, &other| density(other).total_cmp(&density(one)));
        (ranked, bytes)
    }

    fn access(&mut self, address: u64) {
        if !self.cache.touch(address >> LINE_SHIFT) {
            self.misses[self.objects.object(address)] += 1;
        }
    }
}

impl Memory for Popularity {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.misses.push(0);
        self.objects.allocate(bytes, context, 0)
    }

    fn load(&mut self, address: u64, _after: Token) -> Token {
        self.access(address);
        Token::NONE
    }

    fn store(&mut self, address: u64, _after: Token) {
        self.access(address);
    }
}
