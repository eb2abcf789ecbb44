//! Defines the profiles that come with Isotherm: the machines of the five papers.

use isotherm_core::names::advice;

use super::{Profile, ProfileError};

/// Names and texts, in alphabetical order.
const BUILTIN: &[(&str, &str)] = &[
    ("freqtier-cxl1", include_str!("../../../../machines/freqtier-cxl1.toml")),
    ("freqtier-cxl2", include_str!("../../../../machines/freqtier-cxl2.toml")),
    ("hybridtier", include_str!("../../../../machines/hybridtier.toml")),
    ("jenga", include_str!("../../../../machines/jenga.toml")),
    ("neomem", include_str!("../../../../machines/neomem.toml")),
    ("pact", include_str!("../../../../machines/pact.toml")),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

pub(super) fn load(name: &str) -> Result<Profile, ProfileError> {
    let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
        let advice = advice(name, names());
        return Err(ProfileError::UnknownMachine { name: super::error::one_line(name), advice });
    };
    Profile::parse(text, name)
}
