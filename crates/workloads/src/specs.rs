//! Defines the entries that most workloads' tables of parameters and presets share.

use isotherm_core::Bytes;
use isotherm_core::parameters::{Kind, Preset, Spec};

use crate::registry::{PAPER_PRESET, TEST_PRESET};

/// A parameter that no scale divides.
pub(crate) const fn spec(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    unit: &'static str,
    source: &'static str,
    help: &'static str,
) -> Spec {
    Spec { name, kind, default, unit, source, help, scaled: false }
}

/// How much memory the run reserves.
pub(crate) const fn footprint(default: &'static str, source: &'static str, help: &'static str) -> Spec {
    spec("footprint", Kind::Size(Bytes(2 << 20), Bytes(1 << 42)), default, "bytes", source, help)
}

/// How long the run is.
pub(crate) const fn operations(
    default: &'static str,
    unit: &'static str,
    source: &'static str,
    help: &'static str,
) -> Spec {
    spec("operations", Kind::Count(1, 1 << 40), default, unit, source, help)
}

/// Threads, up to `most`.
pub(crate) const fn threads(
    most: u64,
    default: &'static str,
    source: &'static str,
    help: &'static str,
) -> Spec {
    spec("threads", Kind::Count(1, most), default, "", source, help)
}

/// The preset for tests.
pub(crate) const fn test(values: &'static [(&'static str, &'static str)]) -> Preset {
    Preset { name: TEST_PRESET, source: "ours", help: "Small enough for tests.", values }
}

/// The preset of the paper's size.
pub(crate) const fn paper(
    source: &'static str,
    help: &'static str,
    values: &'static [(&'static str, &'static str)],
) -> Preset {
    Preset { name: PAPER_PRESET, source, help, values }
}
