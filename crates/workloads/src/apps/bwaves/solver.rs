//! The implicit time step: blocks of a 7-point stencil and BiCGstab over them.

use super::flow::{BLOCK, EQUATIONS, State, flux, jacobian, state};
use super::grid::Grid;
use crate::{Array, Memory, Random};

/// Time step and viscosity, in units of the grid's spacing and the reference density and pressure.
const STEP: f64 = 0.25;
const VISCOSITY: f64 = 0.05;
/// Blocks of a point: its own and six neighbours'.
const STENCIL: usize = 7;
pub(super) const POINT_BYTES: u64 = (8 * (STENCIL * BLOCK + 9 * EQUATIONS)) as u64;
/// Instructions for each point of a matrix product, of a vector operation, and of assembling blocks.
const PRODUCT_INSTRUCTIONS: u32 = 400;
const VECTOR_INSTRUCTIONS: u32 = 20;
const ASSEMBLY_INSTRUCTIONS: u32 = 700;

pub(super) struct Solver {
    grid: Grid,
    q: Array<f64>,
    blocks: Vec<Array<f64>>,
    right: Array<f64>,
    change: Array<f64>,
    residual: Array<f64>,
    shadow: Array<f64>,
    direction: Array<f64>,
    image: Array<f64>,
    half: Array<f64>,
    half_image: Array<f64>,
}

impl Solver {
    pub(super) fn new(grid: Grid, random: &mut Random, memory: &mut dyn Memory) -> Self {
        let points = grid.points();
        let centre: [f64; 3] = std::array::from_fn(|_| random.unit());
        let strength = 1.0 + 3.0 * random.unit();
        let mut field = Vec::with_capacity(points * EQUATIONS);
        for point in 0..points {
            let distance = grid.distance_squared(point, centre);
            field.extend(state(1.0, [0.3, 0.2, 0.1], 1.0 + strength * (-distance / 8.0).exp()));
        }
        let q = Array::of(memory, field, "bwaves field");
        grid.sweep(memory, &[], &[], &[&q], ASSEMBLY_INSTRUCTIONS);
        let blocks = (0..STENCIL).map(|_| Array::new(memory, points * BLOCK, 0.0, "bwaves blocks")).collect();
        let mut vector = || Array::new(memory, points * EQUATIONS, 0.0, "bwaves vectors");
        Self {
            right: vector(),
            change: vector(),
            residual: vector(),
            shadow: vector(),
            direction: vector(),
            image: vector(),
            half: vector(),
            half_image: vector(),
            grid,
            q,
            blocks,
        }
    }

    /// Advances the field; returns the iterations of BiCGstab.
    pub(super) fn advance(&mut self, tolerance: f64, memory: &mut dyn Memory) -> u32 {
        self.assemble(memory);
        let iterations = self.solve(tolerance, memory);
        for (q, change) in self.q.iter_mut().zip(self.change.iter()) {
            *q += change;
        }
        self.grid.sweep(memory, &[&self.q, &self.change], &[], &[&self.q], VECTOR_INSTRUCTIONS);
        iterations
    }

    fn state(&self, point: usize) -> State {
        std::array::from_fn(|equation| self.q[point * EQUATIONS + equation])
    }

    fn assemble(&mut self, memory: &mut dyn Memory) {
        for point in 0..self.grid.points() {
            let here = self.state(point);
            let mut right = here.map(|quantity| -6.0 * VISCOSITY * quantity);
            put_block(&mut self.blocks[0], point, 1.0 / STEP + 6.0 * VISCOSITY, None, 0.0);
            for (side, neighbour) in self.grid.neighbours(point).into_iter().enumerate() {
                let (axis, sign) = (side / 2, if side % 2 == 0 { -0.5 } else { 0.5 });
                let there = self.state(neighbour);
                let outflow = flux(&there, axis);
                for equation in 0..EQUATIONS {
                    right[equation] += VISCOSITY * there[equation] - sign * outflow[equation];
                }
                put_block(&mut self.blocks[1 + side], point, -VISCOSITY, Some(&jacobian(&there, axis)), sign);
            }
            self.right[point * EQUATIONS..][..EQUATIONS].copy_from_slice(&right);
        }
        self.grid.sweep(memory, &[], &[&self.q], &[&self.right], ASSEMBLY_INSTRUCTIONS / 2);
        let blocks: Vec<_> = self.blocks.iter().collect();
        self.grid.sweep(memory, &[], &[&self.q], &blocks, ASSEMBLY_INSTRUCTIONS / 2);
    }

    /// Solves for the change of the field by BiCGstab until the residual has shrunk to `tolerance`.
    fn solve(&mut self, tolerance: f64, memory: &mut dyn Memory) -> u32 {
        let grid = self.grid;
        self.change.fill(0.0);
        for target in [&mut self.residual, &mut self.shadow, &mut self.direction] {
            target.copy_from_slice(&self.right);
        }
        let written = [&self.change, &self.residual, &self.shadow, &self.direction];
        grid.sweep(memory, &[&self.right], &[], &written, VECTOR_INSTRUCTIONS);
        let first = dot(&self.right, &self.right);
        let mut rho = first;
        for iteration in 1..=100 {
            if rho == 0.0 || memory.finished() {
                return iteration;
            }
            product(&grid, &self.blocks, &self.direction, &mut self.image, memory);
            let alpha = rho / dot(&self.shadow, &self.image);
            grid.sweep(memory, &[&self.shadow, &self.image], &[], &[], VECTOR_INSTRUCTIONS);
            combine(&mut self.half, |at| self.residual[at] - alpha * self.image[at]);
            grid.sweep(memory, &[&self.residual, &self.image], &[], &[&self.half], VECTOR_INSTRUCTIONS);
            product(&grid, &self.blocks, &self.half, &mut self.half_image, memory);
            let omega = dot(&self.half_image, &self.half) / dot(&self.half_image, &self.half_image);
            grid.sweep(memory, &[&self.half_image, &self.half], &[], &[], VECTOR_INSTRUCTIONS);
            let (direction, half) = (&self.direction, &self.half);
            for (at, change) in self.change.iter_mut().enumerate() {
                *change += alpha * direction[at] + omega * half[at];
            }
            combine(&mut self.residual, |at| half[at] - omega * self.half_image[at]);
            let read = [&self.change, &self.direction, &self.half, &self.half_image, &self.shadow];
            grid.sweep(memory, &read, &[], &[&self.change, &self.residual], 3 * VECTOR_INSTRUCTIONS);
            if dot(&self.residual, &self.residual) <= tolerance * tolerance * first {
                return iteration;
            }
            let before = std::mem::replace(&mut rho, dot(&self.shadow, &self.residual));
            let beta = rho / before * (alpha / omega);
            let (residual, image) = (&self.residual, &self.image);
            for (at, direction) in self.direction.iter_mut().enumerate() {
                *direction = residual[at] + beta * (*direction - omega * image[at]);
            }
            let read = [&self.residual, &self.direction, &self.image];
            grid.sweep(memory, &read, &[], &[&self.direction], VECTOR_INSTRUCTIONS);
        }
        100
    }
}

/// Writes a block: `diagonal` on its diagonal plus `factor` times `rows`.
fn put_block(blocks: &mut Array<f64>, point: usize, diagonal: f64, rows: Option<&[f64; BLOCK]>, factor: f64) {
    let block = &mut blocks[point * BLOCK..][..BLOCK];
    for (at, value) in block.iter_mut().enumerate() {
        *value = rows.map_or(0.0, |rows| factor * rows[at]);
        *value += if at % (EQUATIONS + 1) == 0 { diagonal } else { 0.0 };
    }
}

fn product(
    grid: &Grid,
    blocks: &[Array<f64>],
    from: &Array<f64>,
    to: &mut Array<f64>,
    memory: &mut dyn Memory,
) {
    let values: &[f64] = from;
    for point in 0..grid.points() {
        let mut sum = [0.0; EQUATIONS];
        let mut add = |blocks: &Array<f64>, other: usize| {
            let rows = &blocks[point * BLOCK..][..BLOCK];
            let vector = &values[other * EQUATIONS..][..EQUATIONS];
            for (sum, row) in sum.iter_mut().zip(rows.chunks_exact(EQUATIONS)) {
                *sum += row.iter().zip(vector).map(|(a, b)| a * b).sum::<f64>();
            }
        };
        add(&blocks[0], point);
        for (blocks, neighbour) in blocks[1..].iter().zip(grid.neighbours(point)) {
            add(blocks, neighbour);
        }
        to[point * EQUATIONS..][..EQUATIONS].copy_from_slice(&sum);
    }
    let read: Vec<_> = blocks.iter().collect();
    grid.sweep(memory, &read, &[from], &[to], PRODUCT_INSTRUCTIONS);
}

fn dot(a: &Array<f64>, b: &Array<f64>) -> f64 {
    a.iter().zip(b.iter()).map(|(a, b)| a * b).sum()
}

fn combine(target: &mut Array<f64>, value: impl Fn(usize) -> f64) {
    target.iter_mut().enumerate().for_each(|(at, target)| *target = value(at));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    fn solver(side: usize) -> (Solver, CountingMemory) {
        let mut memory = CountingMemory::default();
        (Solver::new(Grid::new(side, 2), &mut Random::new(5), &mut memory), memory)
    }

    /// Solves the whole system by Gaussian elimination.
    fn dense(solver: &Solver) -> Vec<f64> {
        let unknowns = solver.right.len();
        let mut rows = vec![vec![0.0; unknowns + 1]; unknowns];
        for point in 0..solver.grid.points() {
            let neighbours = solver.grid.neighbours(point);
            let columns = std::iter::once(point).chain(neighbours);
            for (blocks, other) in solver.blocks.iter().zip(columns) {
                for at in 0..BLOCK {
                    rows[point * 5 + at / 5][other * 5 + at % 5] += blocks[point * BLOCK + at];
                }
            }
        }
        rows.iter_mut().zip(solver.right.iter()).for_each(|(row, right)| row[unknowns] = *right);
        for pivot in 0..unknowns {
            let best =
                (pivot..unknowns).max_by(|&a, &b| rows[a][pivot].abs().total_cmp(&rows[b][pivot].abs()));
            rows.swap(pivot, best.expect("rows are left"));
            let lead = rows[pivot].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
                let factor = row[pivot] / lead[pivot];
                row.iter_mut().zip(&lead).for_each(|(value, lead)| *value -= factor * lead);
            }
        }
        (0..unknowns).map(|at| rows[at][unknowns] / rows[at][at]).collect()
    }

    #[test]
    fn bicgstab_finds_what_elimination_finds() {
        let (mut solver, mut memory) = solver(3);
        solver.assemble(&mut memory);
        solver.solve(1e-12, &mut memory);
        for (found, expected) in solver.change.iter().zip(dense(&solver)) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn a_blast_spreads_and_mass_and_energy_stay() {
        let (mut solver, mut memory) = solver(8);
        let sum = |solver: &Solver, equation| solver.q.iter().skip(equation).step_by(5).sum::<f64>();
        let before = [0, 4].map(|equation| sum(&solver, equation));
        let peak = |solver: &Solver| solver.q.iter().skip(4).step_by(5).copied().fold(0.0, f64::max);
        let height = peak(&solver);
        (0..4).for_each(|_| assert!(solver.advance(1e-10, &mut memory) < 60));
        let after = [0, 4].map(|equation| sum(&solver, equation));
        before.iter().zip(after).for_each(|(before, after)| assert!((before - after).abs() < 1e-6 * before));
        assert!(peak(&solver) < 0.9 * height);
    }
}
