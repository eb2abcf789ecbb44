//! The presets that every workload has.

use isotherm_core::parameters::Preset;

/// Preset of every workload whose run takes less than two seconds.
pub const TEST_PRESET: &str = "test";

/// Preset of every workload with the size of its paper, or of the largest of its papers.
pub const PAPER_PRESET: &str = "paper";

/// Parameters and their values, as a user would write them.
pub(crate) type Values = &'static [(&'static str, &'static str)];

pub(crate) const fn test(values: Values) -> Preset {
    Preset { name: TEST_PRESET, source: "ours", help: "Small enough for tests.", values }
}

pub(crate) const fn paper(source: &'static str, help: &'static str, values: Values) -> Preset {
    Preset { name: PAPER_PRESET, source, help, values }
}
