//! The hot-page buffer: first in, first out, of fixed size, with a count of refused pages.

use std::collections::VecDeque;

use crate::registers::{COUNTER_MAX, EMPTY};

#[derive(Debug, Clone)]
pub(crate) struct HotBuffer {
    pub(crate) pages: VecDeque<u64>,
    entries: usize,
    /// Pages that found no room, at most [`COUNTER_MAX`].
    pub(crate) refused: u64,
}

impl HotBuffer {
    pub(crate) fn new(entries: u32) -> Self {
        Self { pages: VecDeque::new(), entries: entries as usize, refused: 0 }
    }

    /// Adds a page. Returns false, and counts a refusal, if the buffer is full.
    pub(crate) fn push(&mut self, page: u64) -> bool {
        let room = self.pages.len() < self.entries;
        if room {
            self.pages.push_back(page);
        } else {
            self.refused = (self.refused + 1).min(COUNTER_MAX);
        }
        room
    }

    pub(crate) fn pop(&mut self) -> u64 {
        self.pages.pop_front().unwrap_or(EMPTY)
    }
}
