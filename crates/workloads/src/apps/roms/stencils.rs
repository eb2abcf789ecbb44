//! The computations of a time step around one point or in one column.

use super::grid::{Grid, SPACING, STEP, tridiagonal};
use crate::memory::Array;

/// Friction sideways, in square metres a second.
const VISCOSITY: f64 = 500.0;

/// Returns a velocity's advection by the flow and its sideways friction; 0 at the basin's edge.
pub(super) fn inertia(
    grid: &Grid,
    field: &Array<f64>,
    column: usize,
    at: usize,
    east: f64,
    north: f64,
) -> f64 {
    let (place, row) = (column % grid.east, column / grid.east);
    if place == 0 || place + 1 == grid.east || row == 0 || row + 1 == grid.north {
        return 0.0;
    }
    let values: &[f64] = field;
    let (left, right) = (values[at - 1], values[at + 1]);
    let (back, ahead) = (values[at - grid.east], values[at + grid.east]);
    let advection = east * (right - left) + north * (ahead - back);
    let friction = left + right + back + ahead - 4.0 * values[at];
    -advection / (2.0 * SPACING) + VISCOSITY * friction / (SPACING * SPACING)
}

/// Returns the value at a column's western or southern face: a parabola through its two neighbours and the
/// next one upstream, or their mean beside the basin's edge.
pub(super) fn upstream(
    values: &[f64],
    column: usize,
    stride: usize,
    place: usize,
    size: usize,
    transport: f64,
) -> f64 {
    if place == 0 {
        return 0.0;
    }
    let (before, after) = (values[column - stride], values[column]);
    let mean = 0.5 * (before + after);
    if transport > 0.0 && place >= 2 {
        mean - (values[column - 2 * stride] - 2.0 * before + after) / 6.0
    } else if transport < 0.0 && place + 1 < size {
        mean - (before - 2.0 * after + values[column + stride]) / 6.0
    } else {
        mean
    }
}

/// Lets a column mix implicitly: `right` holds content (value times thickness) before and values after.
pub(super) fn mix(
    grid: &Grid,
    column: usize,
    thickness: impl Fn(usize) -> f64,
    rate: &Array<f64>,
    right: &mut [f64],
) {
    let levels = grid.levels;
    let between = |level: usize| {
        let gap = 0.5 * (thickness(level) + thickness(level + 1));
        STEP * rate[grid.at(column, level)] / gap
    };
    let above: Vec<f64> =
        (0..levels).map(|level| if level + 1 < levels { between(level) } else { 0.0 }).collect();
    let below: Vec<f64> = (0..levels).map(|level| if level > 0 { above[level - 1] } else { 0.0 }).collect();
    let mut diagonal: Vec<f64> =
        (0..levels).map(|level| thickness(level) + above[level] + below[level]).collect();
    tridiagonal(&below, &mut diagonal, &above, right);
}
