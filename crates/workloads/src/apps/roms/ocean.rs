//! The ocean: its fields and one time step.

use super::grid::{Grid, Order, SPACING, STEP};
use super::stencils::{inertia, mix, upstream};
use crate::{Array, Memory, Random, Token};

/// Fast steps in a time step, gravity, density, rotation.
const FAST_STEPS: usize = 30;
const GRAVITY: f64 = 9.81;
const DENSITY: f64 = 1025.0;
const ROTATION: f64 = 1e-4;
const DRIFTER_COLUMNS: usize = 64;
/// Fields with levels, and without.
const DEEP: usize = 16;
const FLAT: usize = 7;

pub(super) fn column_bytes(levels: usize) -> u64 {
    (8 * (DEEP * levels + FLAT)) as u64
}

/// Fields of the ocean; east and north mean a column's western and southern face.
pub(super) struct Ocean {
    grid: Grid,
    depth: Array<f64>,
    surface: Array<f64>,
    mean_east: Array<f64>,
    mean_north: Array<f64>,
    /// Transports averaged over the fast steps.
    flow_east: Array<f64>,
    flow_north: Array<f64>,
    old_surface: Array<f64>,
    thickness: Array<f64>,
    next_thickness: Array<f64>,
    height: Array<f64>,
    east: Array<f64>,
    north: Array<f64>,
    force_east: Array<f64>,
    force_north: Array<f64>,
    transport_east: Array<f64>,
    transport_north: Array<f64>,
    /// Through each point's top.
    upward: Array<f64>,
    density: Array<f64>,
    friction: Array<f64>,
    diffusion: Array<f64>,
    /// Temperature and salinity, and what they become.
    tracers: [Array<f64>; 2],
    next_tracer: Array<f64>,
    /// Columns and fractions of the drifters' places.
    drifters: Vec<[f64; 2]>,
}

impl Ocean {
    /// Creates a resting, stratified ocean over a slope, with a warm eddy at a random place.
    pub(super) fn new(grid: Grid, random: &mut Random, memory: &mut dyn Memory) -> Self {
        let mut unit = || random.unit();
        let (columns, points) = (grid.columns(), grid.columns() * grid.levels);
        let flat = |memory: &mut dyn Memory| Array::new(memory, columns, 0.0, "roms 2-d fields");
        let deep = |memory: &mut dyn Memory| Array::new(memory, points, 0.0, "roms 3-d fields");
        let mut ocean = Self {
            grid,
            depth: flat(memory),
            surface: flat(memory),
            mean_east: flat(memory),
            mean_north: flat(memory),
            flow_east: flat(memory),
            flow_north: flat(memory),
            old_surface: flat(memory),
            thickness: deep(memory),
            next_thickness: deep(memory),
            height: deep(memory),
            east: deep(memory),
            north: deep(memory),
            force_east: deep(memory),
            force_north: deep(memory),
            transport_east: deep(memory),
            transport_north: deep(memory),
            upward: deep(memory),
            density: deep(memory),
            friction: deep(memory),
            diffusion: deep(memory),
            tracers: [deep(memory), deep(memory)],
            next_tracer: deep(memory),
            drifters: Vec::new(),
        };
        let Self { depth, surface, mean_east, mean_north, tracers, east, north, .. } = &mut ocean;
        let centre = [unit() * grid.east as f64, unit() * grid.north as f64];
        for column in 0..columns {
            let place = [(column % grid.east) as f64, (column / grid.east) as f64];
            depth[column] = 1000.0 + 500.0 * place[0] / grid.east as f64;
            let distance: f64 = place.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
            for level in 0..grid.levels {
                let share = (level as f64 + 0.5) / grid.levels as f64;
                let eddy = 2.0 * share * (-distance / 50.0).exp();
                tracers[0][grid.at(column, level)] = 4.0 + 14.0 * share * share + eddy;
                tracers[1][grid.at(column, level)] = 35.0 - share;
            }
        }
        grid.sweep(Order::Levels, &[], &[depth, surface, mean_east, mean_north], 20, memory);
        grid.sweep(Order::Levels, &[], &[&tracers[0], &tracers[1], east, north], 60, memory);
        let count = (columns / DRIFTER_COLUMNS).max(1);
        ocean.drifters =
            (0..count).map(|_| [unit() * grid.east as f64, unit() * grid.north as f64]).collect();
        ocean
    }

    /// Runs one time step, in the order of the original's `main3d`.
    pub(super) fn advance(&mut self, memory: &mut dyn Memory) {
        self.set_depths(memory);
        self.set_density(memory);
        self.set_mixing(memory);
        self.force(memory);
        self.step_surface(memory);
        self.step_velocities(memory);
        self.set_transports(memory);
        for tracer in 0..2 {
            if memory.finished() {
                return;
            }
            self.step_tracer(tracer, memory);
        }
        self.drift(memory);
    }

    fn set_depths(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        for column in 0..grid.columns() {
            let surface = self.surface[column];
            let thickness = (self.depth[column] + surface) / grid.levels as f64;
            for level in 0..grid.levels {
                let below = (grid.levels - level) as f64 - 0.5;
                self.thickness[grid.at(column, level)] = thickness;
                self.height[grid.at(column, level)] = surface - below * thickness;
            }
        }
        let read = [&self.depth, &self.surface];
        grid.sweep(Order::Columns, &read, &[&self.thickness, &self.height], 8, memory);
    }

    fn set_density(&mut self, memory: &mut dyn Memory) {
        let (warmth, salt) = (&self.tracers[0], &self.tracers[1]);
        for (at, density) in self.density.iter_mut().enumerate() {
            let pressure = 4.5e-3 * -self.height[at];
            *density = DENSITY * (1.0 - 1.7e-4 * (warmth[at] - 10.0) + 7.6e-4 * (salt[at] - 35.0)) + pressure;
        }
        let read = [&self.tracers[0], &self.tracers[1], &self.height];
        self.grid.sweep(Order::Columns, &read, &[&self.density], 60, memory);
    }

    /// Computes vertical friction and diffusion from stability and shear (Pacanowski, Philander) at each top.
    fn set_mixing(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        for level in 0..grid.levels - 1 {
            for column in 0..grid.columns() {
                let (at, up) = (grid.at(column, level), grid.at(column, level + 1));
                let gap = self.height[up] - self.height[at];
                let slope = |field: &Array<f64>| (field[up] - field[at]) / gap;
                // Less the part of density that pressure makes.
                let stability = -GRAVITY / DENSITY * (slope(&self.density) + 4.5e-3);
                let shear = slope(&self.east).powi(2) + slope(&self.north).powi(2) + 1e-10;
                let damping = 1.0 / (1.0 + 5.0 * (stability / shear).max(0.0));
                self.friction[at] = 1e-4 + 5e-3 * damping * damping;
                self.diffusion[at] = 1e-5 + 5e-3 * damping * damping * damping;
            }
        }
        let read = [&self.density, &self.height, &self.east, &self.north];
        grid.sweep(Order::Levels, &read, &[&self.friction, &self.diffusion], 40, memory);
    }

    /// Computes the forces: pressure of the stratification, rotation, advection, sideways friction.
    fn force(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        let mut pressure = vec![0.0; grid.columns()];
        for level in (0..grid.levels).rev() {
            let half = |column: usize| {
                let at = grid.at(column, level);
                0.5 * GRAVITY * (self.density[at] - DENSITY) * self.thickness[at]
            };
            pressure.iter_mut().enumerate().for_each(|(column, pressure)| *pressure += half(column));
            let gradient = |column: usize, other: usize| {
                let (at, from) = (grid.at(column, level), grid.at(other, level));
                let (density, height) = (&self.density, &self.height);
                let tilt = 0.5 * (density[at] + density[from]) - DENSITY;
                (pressure[column] - pressure[other] + GRAVITY * tilt * (height[at] - height[from]))
                    / (DENSITY * SPACING)
            };
            grid.each(|column, has_west, has_south| {
                let at = grid.at(column, level);
                let (east, north) = (&self.east, &self.north);
                if has_west {
                    let forced = ROTATION * north[at] - gradient(column, column - 1);
                    self.force_east[at] =
                        forced + inertia(&grid, &self.east, column, at, east[at], north[at]);
                }
                if has_south {
                    let forced = -ROTATION * east[at] - gradient(column, column - grid.east);
                    self.force_north[at] =
                        forced + inertia(&grid, &self.north, column, at, east[at], north[at]);
                }
            });
            pressure.iter_mut().enumerate().for_each(|(column, pressure)| *pressure += half(column));
        }
        let read = [&self.density, &self.height, &self.thickness, &self.east, &self.north];
        grid.sweep(Order::Levels, &read, &[&self.force_east, &self.force_north], 90, memory);
    }

    /// Runs the fast steps of surface and mean flow, forward and backward, driven by the mean forces.
    fn step_surface(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        let mean = |field: &Array<f64>| -> Vec<f64> {
            let sum =
                |column: usize| (0..grid.levels).map(|level| field[grid.at(column, level)]).sum::<f64>();
            (0..grid.columns()).map(|column| sum(column) / grid.levels as f64).collect()
        };
        let (force_east, force_north) = (mean(&self.force_east), mean(&self.force_north));
        grid.sweep(Order::Columns, &[&self.force_east, &self.force_north], &[], 4, memory);
        self.old_surface.copy_from_slice(&self.surface);
        self.flow_east.fill(0.0);
        self.flow_north.fill(0.0);
        let (fast, share) = (STEP / FAST_STEPS as f64, 1.0 / FAST_STEPS as f64);
        let (mut through_east, mut through_north) = (vec![0.0; grid.columns()], vec![0.0; grid.columns()]);
        for _ in 0..FAST_STEPS {
            grid.each(|column, has_west, has_south| {
                let deep = |column: usize| self.depth[column] + self.surface[column];
                let (mean_east, mean_north) = (self.mean_east[column], self.mean_north[column]);
                if has_west {
                    through_east[column] = 0.5 * (deep(column) + deep(column - 1)) * mean_east;
                    self.flow_east[column] += share * through_east[column];
                }
                if has_south {
                    through_north[column] = 0.5 * (deep(column) + deep(column - grid.east)) * mean_north;
                    self.flow_north[column] += share * through_north[column];
                }
            });
            for column in 0..grid.columns() {
                let loss = grid.divergence(column, &through_east, &through_north) / SPACING;
                self.surface[column] -= fast * loss;
            }
            grid.each(|column, has_west, has_south| {
                let slope = |other: usize| GRAVITY * (self.surface[column] - self.surface[other]) / SPACING;
                if has_west {
                    self.mean_east[column] += fast * (force_east[column] - slope(column - 1));
                }
                if has_south {
                    self.mean_north[column] += fast * (force_north[column] - slope(column - grid.east));
                }
            });
            let flow = [&self.mean_east, &self.mean_north];
            let read = [&self.depth, &self.surface, flow[0], flow[1]];
            grid.sweep(Order::Levels, &read, &[&self.flow_east, &self.flow_north, &self.surface], 30, memory);
            grid.sweep(Order::Levels, &[&self.surface], &flow, 20, memory);
        }
    }

    /// Adds forces, applies friction implicitly, and gives each column the mean flow's transport.
    fn step_velocities(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        for (velocity, force, flow, stride) in [
            (&mut self.east, &self.force_east, &self.flow_east, 1),
            (&mut self.north, &self.force_north, &self.flow_north, grid.east),
        ] {
            grid.each(|column, has_west, has_south| {
                if !(if stride == 1 { has_west } else { has_south }) {
                    return;
                }
                let thickness = |at: usize| 0.5 * (self.thickness[at] + self.thickness[at - stride]);
                let mut right = Vec::with_capacity(grid.levels);
                for level in 0..grid.levels {
                    let at = grid.at(column, level);
                    right.push((velocity[at] + STEP * force[at]) * thickness(at));
                }
                let thick = |level| thickness(grid.at(column, level));
                mix(&grid, column, thick, &self.friction, &mut right);
                let total: f64 = (0..grid.levels).map(thick).sum();
                let carried: f64 = right.iter().enumerate().map(|(level, value)| value * thick(level)).sum();
                let correction = (flow[column] - carried) / total;
                for (level, value) in right.into_iter().enumerate() {
                    velocity[grid.at(column, level)] = value + correction;
                }
            });
            let read = [&*velocity, force, &self.thickness, &self.friction, flow];
            grid.sweep(Order::Columns, &read, &[velocity], 50, memory);
        }
    }

    /// Computes transports through the sides, the new thickness, and the flow upward that follows.
    fn set_transports(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        for level in 0..grid.levels {
            grid.each(|column, has_west, has_south| {
                let at = grid.at(column, level);
                let thickness = &self.thickness;
                let face = |other: usize| 0.5 * (thickness[at] + thickness[other]);
                let through = |velocity: &Array<f64>, has: bool, stride: usize| {
                    if has { velocity[at] * face(at - stride) } else { 0.0 }
                };
                self.transport_east[at] = through(&self.east, has_west, 1);
                self.transport_north[at] = through(&self.north, has_south, grid.east);
            });
            let own = grid.at(0, level)..grid.at(0, level + 1);
            for column in 0..grid.columns() {
                let at = grid.at(column, level);
                let (east, north) = (&self.transport_east[own.clone()], &self.transport_north[own.clone()]);
                let loss = grid.divergence(column, east, north) / SPACING;
                let next = (self.depth[column] + self.surface[column]) / grid.levels as f64;
                let below = if level == 0 { 0.0 } else { self.upward[grid.at(column, level - 1)] };
                self.next_thickness[at] = next;
                self.upward[at] = below - loss - (next - self.thickness[at]) / STEP;
            }
        }
        let written = [&self.transport_east, &self.transport_north];
        grid.sweep(Order::Levels, &[&self.thickness, &self.east, &self.north], &written, 12, memory);
        let read = [&self.transport_east, &self.transport_north, &self.thickness, &self.depth, &self.surface];
        grid.sweep(Order::Columns, &read, &[&self.upward, &self.next_thickness], 16, memory);
    }

    /// Advects a tracer, third-order upstream sideways and centred upward, then diffuses it implicitly.
    fn step_tracer(&mut self, tracer: usize, memory: &mut dyn Memory) {
        let grid = self.grid;
        let values = &self.tracers[tracer];
        let (mut east, mut north) = (vec![0.0; grid.columns()], vec![0.0; grid.columns()]);
        for level in 0..grid.levels {
            let own = &values[grid.at(0, level)..grid.at(0, level + 1)];
            grid.each(|column, _, _| {
                let at = grid.at(column, level);
                let (place, row) = (column % grid.east, column / grid.east);
                let through = |transport: f64, stride: usize, place: usize, size: usize| {
                    transport * upstream(own, column, stride, place, size, transport)
                };
                east[column] = through(self.transport_east[at], 1, place, grid.east);
                north[column] = through(self.transport_north[at], grid.east, row, grid.north);
            });
            for column in 0..grid.columns() {
                let at = grid.at(column, level);
                let top = |level: usize| {
                    let at = grid.at(column, level);
                    let above =
                        if level + 1 < grid.levels { values[grid.at(column, level + 1)] } else { values[at] };
                    self.upward[at] * 0.5 * (values[at] + above)
                };
                let below = if level == 0 { 0.0 } else { top(level - 1) };
                let loss = grid.divergence(column, &east, &north) / SPACING + top(level) - below;
                self.next_tracer[at] = values[at] * self.thickness[at] - STEP * loss;
            }
        }
        let read = [
            &self.tracers[tracer],
            &self.transport_east,
            &self.transport_north,
            &self.upward,
            &self.thickness,
        ];
        grid.sweep(Order::Levels, &read, &[&self.next_tracer], 70, memory);
        for column in 0..grid.columns() {
            let mut right: Vec<f64> =
                (0..grid.levels).map(|level| self.next_tracer[grid.at(column, level)]).collect();
            let thick = |level| self.next_thickness[grid.at(column, level)];
            mix(&grid, column, thick, &self.diffusion, &mut right);
            for (level, value) in right.into_iter().enumerate() {
                self.tracers[tracer][grid.at(column, level)] = value;
            }
        }
        let read = [&self.next_tracer, &self.next_thickness, &self.diffusion];
        grid.sweep(Order::Columns, &read, &[&self.tracers[tracer]], 40, memory);
    }

    fn drift(&mut self, memory: &mut dyn Memory) {
        let grid = self.grid;
        for place in &mut self.drifters {
            let at = grid.at(place[1] as usize * grid.east + place[0] as usize, grid.levels - 1);
            memory.compute(60);
            let moved =
                [&self.east, &self.north].map(|field| field.load(memory, at, Token::NONE).0 * STEP / SPACING);
            place[0] = (place[0] + moved[0]).clamp(0.0, grid.east as f64 - 1.0);
            place[1] = (place[1] + moved[1]).clamp(0.0, grid.north as f64 - 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountingMemory;

    #[test]
    fn heat_and_water_stay_a_uniform_tracer_stays_uniform_and_nothing_leaves_the_surface() {
        let mut memory = CountingMemory::default();
        let grid = Grid { east: 24, north: 12, levels: 6, threads: 3 };
        let mut ocean = Ocean::new(grid, &mut Random::new(2), &mut memory);
        ocean.tracers[1].fill(35.0);
        ocean.set_depths(&mut memory);
        let heat = |ocean: &Ocean| -> f64 {
            let pairs = ocean.tracers[0].iter().zip(ocean.thickness.iter());
            pairs.map(|(warmth, thickness)| warmth * thickness).sum()
        };
        let before = heat(&ocean);
        for _ in 0..20 {
            ocean.advance(&mut memory);
            ocean.upward[grid.at(0, 5)..].iter().for_each(|top| assert!(top.abs() < 1e-12, "{top}"));
        }
        ocean.set_depths(&mut memory);
        assert!((heat(&ocean) - before).abs() < 1e-9 * before);
        assert!(ocean.surface.iter().sum::<f64>().abs() < 1e-9);
        ocean.tracers[1].iter().for_each(|salt| assert!((salt - 35.0).abs() < 1e-9, "{salt}"));
        let fastest = ocean.east.iter().fold(0.0f64, |most, speed| most.max(speed.abs()));
        assert!((1e-4..2.0).contains(&fastest), "{fastest} m/s");
    }
}
