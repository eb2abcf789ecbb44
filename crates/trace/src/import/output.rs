//! Output of the importers: rows in batches, and numbers for processes and threads.

use std::collections::HashMap;
use std::hash::Hash;

use crate::{Row, Rows};

const BATCH: usize = 1 << 16;

pub(super) struct Output<'a> {
    rows: Rows,
    count: u64,
    sink: &'a mut dyn FnMut(&Rows),
}

impl<'a> Output<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(&Rows)) -> Self {
        Self { rows: Rows::default(), count: 0, sink }
    }

    pub(super) fn push(&mut self, row: Row) {
        self.rows.push(row);
        self.count += 1;
        if self.rows.len() == BATCH {
            self.hand_out();
        }
    }

    fn hand_out(&mut self) {
        (self.sink)(&self.rows);
        self.rows.clear();
    }

    /// Hands out the rest, and returns the number of rows.
    pub(super) fn finish(mut self) -> u64 {
        if !self.rows.is_empty() {
            self.hand_out();
        }
        self.count
    }
}

/// Numbers of keys in order of appearance, from 0.
pub(super) struct Numbering<K>(HashMap<K, u32>);

impl<K: Eq + Hash> Numbering<K> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Returns the number of `key`, and whether it is new.
    pub(super) fn number(&mut self, key: K) -> (u32, bool) {
        // More than 2^32 different keys do not fit in memory.
        let next = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}
