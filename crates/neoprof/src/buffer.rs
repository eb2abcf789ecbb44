//! Defines the hot-page buffer: first in, first out, of fixed size, which counts what it had to refuse.

use std::collections::VecDeque;

use crate::registers::{COUNTER_MAX, EMPTY};

/// Pages found hot and not read yet.
#[derive(Debug, Clone)]
pub(crate) struct HotBuffer {
    pages: VecDeque<u64>,
    entries: usize,
    refused: u64,
}

impl HotBuffer {
    pub(crate) fn new(entries: u32) -> Self {
        Self { pages: VecDeque::new(), entries: entries as usize, refused: 0 }
    }

    /// Whether there was room.
    pub(crate) fn push(&mut self, page: u64) -> bool {
        let room = self.pages.len() < self.entries;
        if room {
            self.pages.push_back(page);
        } else {
            self.refused = (self.refused + 1).min(COUNTER_MAX);
        }
        room
    }

    /// The oldest page, or [`EMPTY`].
    pub(crate) fn pop(&mut self) -> u64 {
        self.pages.pop_front().unwrap_or(EMPTY)
    }

    pub(crate) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.refused = 0;
    }
}
