//! The materials of the large Hoogenboom-Martin reactor: their nuclides and how often a particle meets them.

/// Nuclides of the fuel that the small reactor has too.
const SMALL_FUEL: [u16; 34] = [
    58, 59, 60, 61, 40, 42, 43, 44, 45, 46, 1, 2, 3, 7, 8, 9, 10, 29, 57, 47, 48, 0, 62, 15, 33, 34, 52, 53,
    54, 55, 56, 18, 23, 41,
];
/// The first nuclide that only the large reactor has; all of them are in its fuel.
const FIRST_LARGE: u16 = 68;

const FUEL: [u16; 321] = {
    let mut fuel = [0; 321];
    let mut index = 0;
    while index < fuel.len() {
        let small = index < SMALL_FUEL.len();
        fuel[index] = if small { SMALL_FUEL[index] } else { FIRST_LARGE + (index - SMALL_FUEL.len()) as u16 };
        index += 1;
    }
    fuel
};
const CLADDING: &[u16] = &[63, 64, 65, 66, 67];
const WATER: &[u16] = &[24, 41, 4, 5];
const VESSEL: &[u16] = &[
    19, 20, 21, 22, 35, 36, 37, 38, 39, 25, 27, 28, 29, 30, 31, 32, 26, 49, 50, 51, 11, 12, 13, 14, 6, 16, 17,
];
const STEEL: &[u16] = &[24, 41, 4, 5, 19, 20, 21, 22, 35, 36, 37, 38, 39, 25, 49, 50, 51, 11, 12, 13, 14];
const ASSEMBLY: &[u16] = &[24, 41, 4, 5, 63, 64, 65, 66, 67];

pub(super) const MATERIALS: [&[u16]; 12] =
    [&FUEL, CLADDING, WATER, WATER, VESSEL, STEEL, STEEL, STEEL, STEEL, STEEL, ASSEMBLY, ASSEMBLY];

pub(super) const SHARES: [f64; 12] =
    [140.0, 52.0, 275.0, 134.0, 154.0, 64.0, 66.0, 55.0, 8.0, 15.0, 25.0, 13.0];
