//! The ocean's grid, and the threads' walks over its fields.

use std::ops::Range;

use crate::{Array, Memory, Token};

/// Metres between columns, and seconds of a time step.
pub(super) const SPACING: f64 = 10_000.0;
pub(super) const STEP: f64 = 600.0;
/// Points that a thread visits in its turn, along the first index.
const TURN: usize = 64;

/// Columns east and north, levels from the bottom up. The eastern index runs fastest, the level slowest;
/// threads take bands of the northern index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) east: usize,
    pub(super) north: usize,
    pub(super) levels: usize,
    pub(super) threads: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Levels,
    Columns,
}

impl Grid {
    pub(super) fn columns(&self) -> usize {
        self.east * self.north
    }

    #[inline]
    pub(super) fn at(&self, column: usize, level: usize) -> usize {
        level * self.columns() + column
    }

    /// Calls `visit` for each column with whether it has a western and a southern neighbour.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, bool, bool)) {
        for north in 0..self.north {
            for east in 0..self.east {
                visit(north * self.east + east, east > 0, north > 0);
            }
        }
    }

    #[inline]
    pub(super) fn divergence(&self, column: usize, east: &[f64], north: &[f64]) -> f64 {
        let to_east = if (column + 1).is_multiple_of(self.east) { 0.0 } else { east[column + 1] };
        let to_north = north.get(column + self.east).copied().unwrap_or(0.0);
        to_east - east[column] + to_north - north[column]
    }

    /// Reports a loop that reads and writes these fields on all levels, with `instructions` for each point.
    pub(super) fn sweep(
        &self,
        order: Order,
        read: &[&Array<f64>],
        written: &[&Array<f64>],
        instructions: u32,
        memory: &mut dyn Memory,
    ) {
        let deepest = |arrays: &[&Array<f64>]| arrays.iter().map(|array| array.len()).max().unwrap_or(0);
        let levels = deepest(read).max(deepest(written)) / self.columns();
        let share = self.north.div_ceil(self.threads);
        let mut row = |level: usize, row: usize| {
            for start in (0..self.east).step_by(TURN) {
                for thread in 0..self.threads {
                    let north = thread * share + row;
                    if north >= self.north.min((thread + 1) * share) {
                        continue;
                    }
                    let first = north * self.east + start;
                    let points = first..(first + TURN).min((north + 1) * self.east);
                    memory.thread(thread as u16);
                    memory.compute(instructions * points.len() as u32);
                    self.visit(level, points, read, written, memory);
                }
            }
        };
        match order {
            Order::Levels => (0..levels).for_each(|level| (0..share).for_each(|at| row(level, at))),
            Order::Columns => (0..share).for_each(|at| (0..levels).for_each(|level| row(level, at))),
        }
        memory.thread(0);
    }

    fn visit(
        &self,
        level: usize,
        columns: Range<usize>,
        read: &[&Array<f64>],
        written: &[&Array<f64>],
        memory: &mut dyn Memory,
    ) {
        let place = |array: &Array<f64>| {
            // A field of one level is used on all of them.
            let first = if array.len() == self.columns() { 0 } else { level * self.columns() };
            first + columns.start..first + columns.end
        };
        for array in read {
            array.load_run(memory, place(array), Token::NONE);
        }
        for array in written {
            array.store_run(memory, place(array), Token::NONE);
        }
    }
}

/// Solves in place `diagonal[i] x[i] - below[i] x[i-1] - above[i] x[i+1] = right[i]`.
pub(super) fn tridiagonal(below: &[f64], diagonal: &mut [f64], above: &[f64], right: &mut [f64]) {
    for row in 1..right.len() {
        let factor = below[row] / diagonal[row - 1];
        diagonal[row] -= factor * above[row - 1];
        right[row] += factor * right[row - 1];
    }
    let last = right.len() - 1;
    right[last] /= diagonal[last];
    for row in (0..last).rev() {
        right[row] = (right[row] + above[row] * right[row + 1]) / diagonal[row];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn a_tridiagonal_solution_fulfils_its_equations() {
        let (below, above) = ([0.0, 0.5, 0.7, 0.1], [0.2, 0.9, 0.3, 0.0]);
        let diagonal = [2.0, 3.0, 2.5, 1.5];
        let mut solution = [1.0, -2.0, 3.0, 0.5];
        tridiagonal(&below, &mut diagonal.clone(), &above, &mut solution);
        for (row, right) in [1.0, -2.0, 3.0, 0.5].into_iter().enumerate() {
            let before = if row > 0 { below[row] * solution[row - 1] } else { 0.0 };
            let after = if row < 3 { above[row] * solution[row + 1] } else { 0.0 };
            assert!((diagonal[row] * solution[row] - before - after - right).abs() < 1e-12);
        }
    }

    #[test]
    fn both_orders_touch_each_line_of_each_level() {
        let grid = Grid { east: 40, north: 7, levels: 3, threads: 3 };
        for order in [Order::Levels, Order::Columns] {
            let mut memory = CountingMemory::default();
            let (deep, flat) =
                (Array::new(&mut memory, 840, 0.0, "deep"), Array::new(&mut memory, 280, 0.0, "flat"));
            grid.sweep(order, &[&deep, &flat], &[&deep], 1, &mut memory);
            assert_eq!((memory.loads, memory.stores, memory.computed), (2 * 105, 105, 840));
        }
    }
}
