//! The periodic grid and how threads walk through arrays over it.

use crate::{Array, Memory, Token};

/// Points that a thread visits in its turn: a few lines of each array.
const TURN: usize = 8;

/// A cube of points, the first index running fastest; threads take planes of the last one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    side: usize,
    threads: usize,
}

impl Grid {
    pub(super) fn new(side: usize, threads: usize) -> Self {
        Self { side, threads: threads.min(side) }
    }

    pub(super) fn points(&self) -> usize {
        self.side.pow(3)
    }

    fn place(&self, point: usize) -> [usize; 3] {
        [point % self.side, point / self.side % self.side, point / self.side / self.side]
    }

    /// Returns the neighbours below and above in each direction, around the edges.
    #[inline]
    pub(super) fn neighbours(&self, point: usize) -> [usize; 6] {
        let (place, last) = (self.place(point), self.side - 1);
        let mut stride = 1;
        let mut neighbours = [0; 6];
        for (axis, at) in place.into_iter().enumerate() {
            neighbours[2 * axis] = if at == 0 { point + last * stride } else { point - stride };
            neighbours[2 * axis + 1] = if at == last { point - last * stride } else { point + stride };
            stride *= self.side;
        }
        neighbours
    }

    /// Returns the squared distance of a point from a place given in shares of the side, around the edges.
    pub(super) fn distance_squared(&self, point: usize, centre: [f64; 3]) -> f64 {
        let side = self.side as f64;
        let distance = |(at, centre): (usize, f64)| {
            let distance = (at as f64 - centre * side).abs();
            distance.min(side - distance)
        };
        self.place(point).into_iter().zip(centre).map(distance).map(|distance| distance * distance).sum()
    }

    /// Reports a loop over all points: it reads `read` at the point, `stencil` at the point and its
    /// neighbours, and writes `written`. An array holds the same number of values for each point.
    pub(super) fn sweep(
        &self,
        memory: &mut dyn Memory,
        read: &[&Array<f64>],
        stencil: &[&Array<f64>],
        written: &[&Array<f64>],
        instructions: u32,
    ) {
        let plane = self.side * self.side;
        let share = self.side.div_ceil(self.threads) * plane;
        for offset in (0..share).step_by(TURN) {
            for thread in 0..self.threads {
                let from = thread * share + offset;
                let to = (from + TURN).min((thread + 1) * share).min(self.points());
                if from >= to {
                    continue;
                }
                memory.thread(thread as u16);
                memory.compute(instructions * (to - from) as u32);
                self.visit(memory, read, stencil, written, from..to);
            }
            if memory.finished() {
                return;
            }
        }
        memory.thread(0);
    }

    fn visit(
        &self,
        memory: &mut dyn Memory,
        read: &[&Array<f64>],
        stencil: &[&Array<f64>],
        written: &[&Array<f64>],
        points: std::ops::Range<usize>,
    ) {
        let count = points.len();
        let range = |array: &Array<f64>, from: usize| {
            let width = array.len() / self.points();
            from * width..((from + count) * width).min(array.len())
        };
        for array in stencil {
            // Neighbours in the first direction share the point's lines.
            let [_, _, below, above, before, behind] = self.neighbours(points.start);
            for from in [before, below, points.start, above, behind] {
                array.load_run(memory, range(array, from), Token::NONE);
            }
        }
        for array in read {
            array.load_run(memory, range(array, points.start), Token::NONE);
        }
        for array in written {
            array.store_run(memory, range(array, points.start), Token::NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn neighbours_are_mutual_and_a_sweep_reads_every_line() {
        let grid = Grid::new(5, 3);
        for point in 0..grid.points() {
            let neighbours = grid.neighbours(point);
            (0..6).for_each(|side| assert_eq!(grid.neighbours(neighbours[side])[side ^ 1], point));
        }
        let mut memory = CountingMemory::default();
        let array = Array::new(&mut memory, 125 * 8, 0.0, "test");
        grid.sweep(&mut memory, &[&array], &[], &[&array], 1);
        assert_eq!((memory.loads, memory.stores, memory.computed), (125, 125, 125));
    }
}
