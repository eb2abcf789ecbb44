//! The Euler equations of a gas: fluxes and their derivatives.

/// Conserved quantities of a point: density, momentum in three directions, energy.
pub(super) const EQUATIONS: usize = 5;
pub(super) const BLOCK: usize = EQUATIONS * EQUATIONS;
/// Ratio of specific heats of air.
const GAMMA: f64 = 1.4;

pub(super) type State = [f64; EQUATIONS];

pub(super) fn state(density: f64, velocity: [f64; 3], pressure: f64) -> State {
    let kinetic = 0.5 * density * velocity.iter().map(|v| v * v).sum::<f64>();
    let [u, v, w] = velocity.map(|velocity| density * velocity);
    [density, u, v, w, pressure / (GAMMA - 1.0) + kinetic]
}

/// Returns the flow through a unit area across `direction`.
pub(super) fn flux(q: &State, direction: usize) -> State {
    let velocity = q[1 + direction] / q[0];
    let kinetic = 0.5 * (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) / q[0];
    let pressure = (GAMMA - 1.0) * (q[4] - kinetic);
    let mut flux = q.map(|quantity| quantity * velocity);
    flux[1 + direction] += pressure;
    flux[4] += pressure * velocity;
    flux
}

/// Returns the derivatives of [`flux`], row by row.
pub(super) fn jacobian(q: &State, direction: usize) -> [f64; BLOCK] {
    let velocity: [f64; 3] = std::array::from_fn(|axis| q[1 + axis] / q[0]);
    let along = velocity[direction];
    let square: f64 = velocity.iter().map(|v| v * v).sum();
    let enthalpy = GAMMA * q[4] / q[0] - 0.5 * (GAMMA - 1.0) * square;
    let mut rows = [0.0; BLOCK];
    let mut put = |row: usize, column: usize, value: f64| rows[row * EQUATIONS + column] += value;
    put(0, 1 + direction, 1.0);
    for (axis, speed) in velocity.into_iter().enumerate() {
        put(1 + axis, 0, -speed * along);
        put(1 + axis, 1 + axis, along);
        put(1 + axis, 1 + direction, speed);
        // Pressure acts along the direction only.
        put(1 + direction, 1 + axis, -(GAMMA - 1.0) * speed);
        put(4, 1 + axis, -(GAMMA - 1.0) * speed * along);
    }
    put(1 + direction, 0, 0.5 * (GAMMA - 1.0) * square);
    put(1 + direction, 4, GAMMA - 1.0);
    put(4, 0, along * (0.5 * (GAMMA - 1.0) * square - enthalpy));
    put(4, 1 + direction, enthalpy);
    put(4, 4, GAMMA * along);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jacobian_is_the_derivative_of_the_flux() {
        let q = state(1.3, [0.4, -0.2, 0.7], 0.9);
        for direction in 0..3 {
            let rows = jacobian(&q, direction);
            for column in 0..EQUATIONS {
                let mut moved = [q, q];
                moved[0][column] += 1e-6;
                moved[1][column] -= 1e-6;
                let [up, down] = moved.map(|q| flux(&q, direction));
                for row in 0..EQUATIONS {
                    let slope = (up[row] - down[row]) / 2e-6;
                    assert!(
                        (rows[row * EQUATIONS + column] - slope).abs() < 1e-6,
                        "{direction} {row} {column}"
                    );
                }
            }
        }
    }
}
