//! The tiering of the guest's kernel.

use std::fmt;
use std::str::FromStr;

use isotherm_core::names::advice;

use crate::LabError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Pages stay where they were first touched.
    None,
    /// Reclaim moves pages to the slow node instead of discarding them.
    Demotion,
    /// NUMA balancing's tiering mode (2) promotes, and reclaim demotes.
    NumaBalancing,
    /// DAMON's schemes `migrate_hot` and `migrate_cold`.
    Damon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTiering {
    pub mechanism: Mechanism,
    /// Whether reclaim uses the multi-generational LRU, Debian's default.
    pub multi_generational: bool,
}

/// Names of the mechanisms; a suffix `-lru` selects the classical LRU.
const NAMES: [(&str, Mechanism); 4] = [
    ("none", Mechanism::None),
    ("demotion", Mechanism::Demotion),
    ("numab", Mechanism::NumaBalancing),
    ("damon", Mechanism::Damon),
];
const CLASSICAL: &str = "-lru";

impl KernelTiering {
    pub const NONE: Self = Self { mechanism: Mechanism::None, multi_generational: true };

    pub fn names() -> Vec<String> {
        NAMES.iter().flat_map(|(name, _)| [(*name).to_owned(), format!("{name}{CLASSICAL}")]).collect()
    }

    pub(crate) fn demotes(self) -> bool {
        matches!(self.mechanism, Mechanism::Demotion | Mechanism::NumaBalancing)
    }
}

impl FromStr for KernelTiering {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let bare = text.strip_suffix(CLASSICAL);
        let found = NAMES.iter().find(|(name, _)| *name == bare.unwrap_or(text));
        let Some((_, mechanism)) = found else {
            let names = Self::names();
            let advice = advice(text, names.iter().map(String::as_str));
            return Err(LabError::UnknownTiering { name: crate::error::shortened(text), advice });
        };
        Ok(Self { mechanism: *mechanism, multi_generational: bare.is_none() })
    }
}

impl fmt::Display for KernelTiering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            NAMES.iter().find(|(_, mechanism)| *mechanism == self.mechanism).map_or("", |(name, _)| name);
        write!(f, "{name}{}", if self.multi_generational { "" } else { CLASSICAL })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in KernelTiering::names() {
            assert_eq!(name.parse::<KernelTiering>().map(|tiering| tiering.to_string()).ok(), Some(name));
        }
    }

    #[test]
    fn unknown_names_get_advice() {
        let error = "numa".parse::<KernelTiering>().map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("numab")));
        for text in ["", "-lru", "none-lru-lru"] {
            assert!(text.parse::<KernelTiering>().is_err(), "{text}");
        }
    }
}
