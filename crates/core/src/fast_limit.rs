//! Sizes of the faster tiers as users write them.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::{Bytes, TierId, parse_share};

/// How much fast memory programs may use.
#[derive(Debug, Clone, PartialEq)]
pub enum FastLimit {
    /// Bytes of the fast tier.
    Bytes(Bytes),
    /// Share of the memory in use that the fast tier holds.
    Share(f64),
    /// Parts of the memory in use, one for each of three or more tiers, fastest first, as the user gave them.
    Parts(Vec<f64>),
}

/// An error of a text that sizes tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FastLimitError {
    /// The text has none of the forms.
    Text(String),
    /// There are more or fewer parts than tiers.
    OtherTiers {
        /// The limit.
        limit: String,
        /// Its parts.
        parts: usize,
        /// The machine, in words.
        machine: String,
        /// The machine's tiers.
        tiers: usize,
    },
}

impl fmt::Display for FastLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(
                f,
                "'{text}' is not a size (4G), a fast:slow ratio (1:8), the parts of all tiers (1:2:4) or a \
                 percentage of the memory in use (25%)"
            ),
            Self::OtherTiers { limit, parts, machine, tiers } => write!(
                f,
                "'{limit}' has {parts} parts, but {machine} has {tiers} tiers; expected a part for each tier"
            ),
        }
    }
}

impl Error for FastLimitError {}

impl FromStr for FastLimit {
    type Err = FastLimitError;

    /// Reads `1:8` (fast to slow), `1:2:4` (all tiers, fastest first), `25%` of the memory in use or `64M`.
    fn from_str(text: &str) -> Result<Self, FastLimitError> {
        let limit = parse_parts(text).map(Self::Parts).or_else(|| parse_share(text).map(Self::Share));
        limit.or_else(|| text.parse().ok().map(Self::Bytes)).ok_or_else(|| FastLimitError::Text(text.into()))
    }
}

impl fmt::Display for FastLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Share(share) => write!(f, "{}%", 100.0 * share),
            Self::Parts(parts) => {
                let parts: Vec<String> = parts.iter().map(f64::to_string).collect();
                f.write_str(&parts.join(":"))
            }
        }
    }
}

impl FastLimit {
    /// Returns for how many tiers the limit is.
    pub fn tiers(&self) -> usize {
        if let Self::Parts(parts) = self { parts.len() } else { 2 }
    }

    /// Checks that there is a part for each of the machine's tiers, or that the fast one alone is limited.
    ///
    /// # Errors
    /// If neither is so.
    pub fn check(&self, machine: &str, tiers: usize) -> Result<(), FastLimitError> {
        let parts = self.tiers();
        if parts == 2 || parts == tiers {
            return Ok(());
        }
        Err(FastLimitError::OtherTiers { limit: self.to_string(), parts, machine: machine.into(), tiers })
    }

    /// Returns a tier's share of the memory in use, from 0 to 1; `None` for the last tier, and for one that
    /// the memory in use does not limit.
    pub fn share(&self, tier: TierId) -> Option<f64> {
        match self {
            Self::Share(share) if tier == TierId::FAST => Some(*share),
            Self::Parts(parts) if tier.index() + 1 < parts.len() => {
                Some(parts[tier.index()] / parts.iter().sum::<f64>())
            }
            Self::Bytes(_) | Self::Share(_) | Self::Parts(_) => None,
        }
    }

    /// Returns the limits of the tiers that have one, fastest first, while so much memory is in use: in
    /// bytes, pages or whatever `used` counts, where `bytes` turns bytes into that.
    pub fn limits(&self, used: u64, bytes: impl Fn(Bytes) -> u64) -> Vec<u64> {
        match self {
            Self::Bytes(size) => vec![bytes(*size)],
            Self::Share(_) | Self::Parts(_) => {
                let shares = (0..).map_while(|tier| self.share(TierId(tier)));
                shares.map(|share| (used as f64 * share) as u64).collect()
            }
        }
    }
}

/// Reads three or more parts: `1:2:4`.
fn parse_parts(text: &str) -> Option<Vec<f64>> {
    let parts: Vec<f64> = text.split(':').map(|part| part.trim().parse().ok()).collect::<Option<Vec<_>>>()?;
    let (sum, valid) = (parts.iter().sum::<f64>(), parts.iter().all(|part| part.is_finite() && *part >= 0.0));
    (parts.len() > 2 && valid && sum > 0.0 && sum.is_finite()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_shares_or_parts_of_the_memory_in_use() {
        let pages = |text: &str| {
            let limit: FastLimit = text.parse().expect("a limit");
            limit.limits(1000, |bytes| bytes.0 >> 12)
        };
        assert_eq!(pages("4M"), [1024]);
        assert_eq!(pages("25%"), [250]);
        assert_eq!(pages("1:9"), [100]);
        assert_eq!(pages("1:2:5"), [125, 250]);
        let error = "much".parse::<FastLimit>().expect_err("no number");
        assert!(error.to_string().contains("'much' is not a size"), "{error}");
    }

    #[test]
    fn parts_fit_machines_of_as_many_tiers() {
        let check = |text: &str, tiers| text.parse::<FastLimit>().expect("a limit").check("machine m", tiers);
        assert_eq!([check("1:2:4", 3), check("1:8", 3), check("64M", 2)], [Ok(()), Ok(()), Ok(())]);
        let error = check("1:2:4.5", 2).expect_err("two tiers").to_string();
        assert_eq!(error, "'1:2:4.5' has 3 parts, but machine m has 2 tiers; expected a part for each tier");
    }
}
