//! Rows of a trace, in columns.

use std::ops::Range;

/// Batch of accesses that missed the last-level cache, column by column; all vectors have the same length.
///
/// Rows are in the global order in which they happened, as far as the source knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Process, numbered from 0 in order of appearance. `exec` brings a new address space and a new number.
    pub process: Vec<u32>,
    /// Thread, numbered from 0 over all processes.
    pub thread: Vec<u32>,
    /// Instructions that the thread executed since its previous row, including this one's.
    pub instructions: Vec<u32>,
    /// Cache line: virtual address >> 6.
    pub line: Vec<u64>,
    /// 0 for a load, 1 for a store.
    pub store: Vec<u8>,
    /// Distance, in this thread's misses, to the miss whose value this row's address depends on, at most 255;
    /// 0 for none within the recorder's window.
    pub dependence: Vec<u8>,
}

/// Single row; the fields are columns of [`Rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `Rows`")]
pub struct Row {
    pub process: u32,
    pub thread: u32,
    pub instructions: u32,
    pub line: u64,
    pub store: bool,
    pub dependence: u8,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: Row) {
        self.process.push(row.process);
        self.thread.push(row.thread);
        self.instructions.push(row.instructions);
        self.line.push(row.line);
        self.store.push(u8::from(row.store));
        self.dependence.push(row.dependence);
    }

    /// Appends the rows `range` of `other`.
    ///
    /// # Panics
    /// If a column of `other` is shorter.
    pub fn extend_from(&mut self, other: &Self, range: Range<usize>) {
        self.process.extend_from_slice(&other.process[range.clone()]);
        self.thread.extend_from_slice(&other.thread[range.clone()]);
        self.instructions.extend_from_slice(&other.instructions[range.clone()]);
        self.line.extend_from_slice(&other.line[range.clone()]);
        self.store.extend_from_slice(&other.store[range.clone()]);
        self.dependence.extend_from_slice(&other.dependence[range]);
    }

    /// Returns the row at `index`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn get(&self, index: usize) -> Row {
        Row {
            process: self.process[index],
            thread: self.thread[index],
            instructions: self.instructions[index],
            line: self.line[index],
            store: self.store[index] != 0,
            dependence: self.dependence[index],
        }
    }

    /// Returns the rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Keeps the first `length` rows.
    pub fn truncate(&mut self, length: usize) {
        self.process.truncate(length);
        self.thread.truncate(length);
        self.instructions.truncate(length);
        self.line.truncate(length);
        self.store.truncate(length);
        self.dependence.truncate(length);
    }

    /// Keeps the rows of the processes that are wanted.
    ///
    /// # Panics
    /// If a column is shorter than [`Rows::line`].
    pub fn retain_processes(&mut self, wanted: impl Fn(u32) -> bool) {
        let mut kept = 0;
        for index in 0..self.len() {
            if wanted(self.process[index]) {
                self.process[kept] = self.process[index];
                self.thread[kept] = self.thread[index];
                self.instructions[kept] = self.instructions[index];
                self.line[kept] = self.line[index];
                self.store[kept] = self.store[index];
                self.dependence[kept] = self.dependence[index];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Removes every row and keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}
