//! The built-in profiles: the machines of the five papers.

use isotherm_core::names::advice;

use super::{Profile, ProfileError};

/// Pairs each name with the text of its file in `machines/`.
macro_rules! machines {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../../machines/", $name, ".toml")))),+]
    };
}

/// Names and texts, in alphabetical order.
const BUILTIN: &[(&str, &str)] =
    machines!["freqtier-cxl1", "freqtier-cxl2", "hybridtier", "jenga", "neomem", "pact"];

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
