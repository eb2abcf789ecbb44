//! XSBench's data: nuclide grids, the unionised energy grid with its index grid, and the lookup through them.

use super::materials::MATERIALS;
use crate::{Array, Memory, Random, Token};

/// Nuclides of the large Hoogenboom-Martin reactor.
pub(super) const NUCLIDES: usize = 355;
/// Reaction channels: total, elastic, absorption, fission, nu-fission.
pub(super) const CHANNELS: usize = 5;
pub(super) const POINT_BYTES: u64 =
    (size_of::<Point>() + size_of::<f64>() + NUCLIDES * size_of::<u32>()) as u64;
/// Instructions of a step of the binary search, and of one nuclide's interpolation.
const SEARCH_INSTRUCTIONS: u32 = 5;
const INTERPOLATION_INSTRUCTIONS: u32 = 30;

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(super) struct Point {
    pub(super) energy: f64,
    pub(super) sections: [f64; CHANNELS],
}

/// The three grids, in the order of their allocation.
pub(super) struct Grids {
    /// Grid points of a nuclide.
    points: usize,
    /// All nuclides' points, one nuclide after the other, ascending in energy.
    nuclides: Array<Point>,
    /// The energies of all nuclides' points, ascending.
    energies: Array<f64>,
    /// Each nuclide's last point not above each of these energies.
    indices: Array<u32>,
    /// Concentrations of each material's nuclides.
    concentrations: Vec<Vec<f64>>,
}

impl Grids {
    pub(super) fn new(points: usize, random: &mut Random, memory: &mut dyn Memory) -> Self {
        let nuclides = nuclide_grids(points, random, memory);
        let mut energies: Vec<f64> = nuclides.iter().map(|point| point.energy).collect();
        energies.sort_unstable_by(f64::total_cmp);
        let energies = Array::of(memory, energies, "unionised energies");
        nuclides.load_run(memory, 0..nuclides.len(), Token::NONE);
        energies.store_run(memory, 0..energies.len(), Token::NONE);
        let indices = index_grid(points, &nuclides, &energies, memory);
        let concentrations =
            MATERIALS.iter().map(|nuclides| nuclides.iter().map(|_| random.unit()).collect()).collect();
        Self { points, nuclides, energies, indices, concentrations }
    }

    /// Returns the macroscopic cross sections of a material at an energy that came with the value `after`.
    pub(super) fn lookup(
        &self,
        energy: f64,
        material: usize,
        memory: &mut dyn Memory,
        after: Token,
    ) -> ([f64; CHANNELS], Token) {
        let (row, found) = self.search(energy, memory, after);
        let (mut sum, mut line) = ([0.0; CHANNELS], u64::MAX);
        let (mut index_token, mut last) = (found, found);
        for (&nuclide, concentration) in MATERIALS[material].iter().zip(&self.concentrations[material]) {
            let entry = row * NUCLIDES + usize::from(nuclide);
            // Neighbouring nuclides' indices lie on one line.
            if self.indices.address(entry) >> 6 != line {
                line = self.indices.address(entry) >> 6;
                (_, index_token) = self.indices.load(memory, entry, found);
            }
            let low = usize::from(nuclide) * self.points + self.indices[entry] as usize;
            let (pair, token) = self.nuclides.load_run(memory, low..low + 2, index_token);
            memory.compute(INTERPOLATION_INSTRUCTIONS);
            add(&mut sum, *concentration, energy, pair);
            last = token;
        }
        (sum, last)
    }

    /// Returns the last of all energies that is not above `energy`, or the first one.
    fn search(&self, energy: f64, memory: &mut dyn Memory, after: Token) -> (usize, Token) {
        let (mut low, mut high, mut token) = (0, self.energies.len(), after);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let (value, loaded) = self.energies.load(memory, middle, token);
            memory.compute(SEARCH_INSTRUCTIONS);
            token = loaded;
            if value > energy { high = middle } else { low = middle }
        }
        (low, token)
    }
}

/// Adds a nuclide's part: the cross sections between two points of its grid, times its concentration.
fn add(sum: &mut [f64; CHANNELS], concentration: f64, energy: f64, pair: &[Point]) {
    let (low, high) = (&pair[0], &pair[1]);
    let factor = (high.energy - energy) / (high.energy - low.energy);
    for (channel, sum) in sum.iter_mut().enumerate() {
        let (low, high) = (low.sections[channel], high.sections[channel]);
        *sum += concentration * (high - factor * (high - low));
    }
}

/// Fills every nuclide's grid with random values and sorts it; sorting is reported as one more pass.
fn nuclide_grids(points: usize, random: &mut Random, memory: &mut dyn Memory) -> Array<Point> {
    let point = |random: &mut Random| Point {
        energy: random.unit(),
        sections: std::array::from_fn(|_| random.unit()),
    };
    let mut values: Vec<Point> = (0..NUCLIDES * points).map(|_| point(random)).collect();
    values.chunks_mut(points).for_each(|grid| grid.sort_unstable_by(|a, b| a.energy.total_cmp(&b.energy)));
    let nuclides = Array::of(memory, values, "nuclide grids");
    nuclides.store_run(memory, 0..nuclides.len(), Token::NONE);
    for start in (0..nuclides.len()).step_by(points) {
        nuclides.load_run(memory, start..start + points, Token::NONE);
        nuclides.store_run(memory, start..start + points, Token::NONE);
    }
    nuclides
}

/// Returns for each energy and nuclide the point at or below it that has a point above.
fn index_grid(
    points: usize,
    nuclides: &Array<Point>,
    energies: &[f64],
    memory: &mut dyn Memory,
) -> Array<u32> {
    let mut indices = Array::new(memory, energies.len() * NUCLIDES, 0u32, "index grid");
    let mut low = vec![0u32; NUCLIDES];
    let next = |nuclide: usize, low: u32| nuclide * points + low as usize + 1;
    for (row, &energy) in energies.iter().enumerate() {
        if row % 1024 == 0 && memory.finished() {
            break;
        }
        for (nuclide, low) in low.iter_mut().enumerate() {
            if energy >= nuclides[next(nuclide, *low)].energy && (*low as usize) < points - 2 {
                *low += 1;
                memory.load(nuclides.address(next(nuclide, *low)), Token::NONE);
            }
        }
        let entries = row * NUCLIDES..(row + 1) * NUCLIDES;
        indices[entries.clone()].copy_from_slice(&low);
        memory.compute(4 * NUCLIDES as u32);
        indices.store_run(memory, entries, Token::NONE);
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn a_lookup_equals_interpolating_in_each_nuclides_own_grid() {
        let mut memory = CountingMemory::default();
        let mut random = Random::new(9);
        let grids = Grids::new(20, &mut random, &mut memory);
        for _ in 0..200 {
            let (energy, material) = (random.unit(), random.below(12) as usize);
            let mut expected = [0.0; CHANNELS];
            for (&nuclide, &concentration) in MATERIALS[material].iter().zip(&grids.concentrations[material])
            {
                let grid = &grids.nuclides[usize::from(nuclide) * 20..][..20];
                let above = grid.iter().position(|point| point.energy > energy).unwrap_or(19).clamp(1, 19);
                let (low, high) = (grid[above - 1], grid[above]);
                let share = (energy - low.energy) / (high.energy - low.energy);
                for (channel, expected) in expected.iter_mut().enumerate() {
                    let section = low.sections[channel] * (1.0 - share) + high.sections[channel] * share;
                    *expected += concentration * section;
                }
            }
            let (found, _) = grids.lookup(energy, material, &mut memory, Token::NONE);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} {expected}");
            }
        }
    }

    #[test]
    fn a_fuel_lookup_reads_a_row_of_indices_and_two_points_of_each_nuclide() {
        let mut memory = CountingMemory::default();
        let grids = Grids::new(64, &mut Random::new(1), &mut memory);
        let before = memory.loads;
        grids.lookup(0.5, 0, &mut memory, Token::NONE);
        let loads = memory.loads - before;
        // 14 or 15 steps of the search, 355 * 4 B of indices, 96 B of each of 321 nuclides.
        assert!((321 * 2 + 14 + 20..321 * 3 + 15 + 40).contains(&loads), "{loads}");
    }
}
