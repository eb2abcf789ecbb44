//! The built-in profiles: the machines of the five papers, and five of today.

use isotherm_core::names::advice;

use super::{Profile, ProfileError};

macro_rules! machines {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../../machines/", $name, ".toml")))),+]
    };
}

const BUILTIN: &[(&str, &str)] = machines![
    "freqtier-cxl1",
    "freqtier-cxl2",
    "hybridtier",
    "jenga",
    "neomem",
    "pact",
    "sapphire-rapids",
    "turin",
    "xeon-max",
    "zswap",
    "zswap-lz4"
];

impl Profile {
    /// Returns one of the built-in profiles.
    ///
    /// # Errors
    /// An unknown name; the error suggests known ones.
    pub fn builtin(name: &str) -> Result<Self, ProfileError> {
        let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            return Err(ProfileError::unknown_machine(name, &advice(name, Self::builtin_names())));
        };
        Self::parse(text, name)
    }

    /// Returns the names of the built-in profiles, in alphabetical order.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }
}
