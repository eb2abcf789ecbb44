//! Sizes of the fast tier as users write them.

use isotherm_core::{Bytes, FastLimit, PageSize, Pages, TierId};
use isotherm_machine::Profile;

use crate::SimulateError;
use crate::stream::Stream;

/// A size of the fast tier, as a user asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct FastSize {
    pub(crate) text: String,
    limit: FastLimit,
}

impl FastSize {
    /// Reads `1:8` (fast to slow), `1:2:4` (of all tiers, fastest first), `25%` of the footprint, or `64M`.
    ///
    /// # Errors
    /// Text in none of these forms.
    pub fn parse(text: &str) -> Result<Self, SimulateError> {
        Ok(Self { text: text.into(), limit: text.parse().map_err(SimulateError::Size)? })
    }

    /// Returns for how many tiers the text is.
    pub fn tiers(&self) -> usize {
        self.limit.tiers()
    }

    /// Checks that the text is for as many tiers as the machine has, or sizes the fast one only.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, profile: &Profile) -> Result<(), SimulateError> {
        self.limit
            .check(&format!("machine {}", profile.name), profile.tiers.len())
            .map_err(SimulateError::Size)
    }

    /// Returns the machine with the sizes of the tiers between the fast and the last one, if the text names
    /// them.
    ///
    /// # Errors
    /// See [`FastSize::check`].
    pub(crate) fn on(&self, profile: &Profile, stream: &Stream) -> Result<Option<Profile>, SimulateError> {
        self.check(profile)?;
        if self.tiers() == 2 {
            return Ok(None);
        }
        let mut profile = profile.clone();
        for (tier, index) in profile.tiers[1..].iter_mut().zip(1..) {
            let Some(share) = self.limit.share(TierId(index)) else { break };
            let pages = (share * stream.pages.len() as f64).round() as u64;
            tier.capacity = Some(Bytes(pages << stream.page_size.shift()));
        }
        Ok(Some(profile))
    }

    /// Returns the pages of the fast tier for a stream.
    ///
    /// # Errors
    /// A size without a page, or above the footprint.
    pub fn pages(&self, stream: &Stream) -> Result<Pages, SimulateError> {
        self.pages_of(Pages(stream.pages.len() as u64), stream.page_size)
    }

    /// Returns the pages of the fast tier for a footprint.
    ///
    /// # Errors
    /// See [`FastSize::pages`].
    pub fn pages_of(&self, footprint: Pages, page_size: PageSize) -> Result<Pages, SimulateError> {
        let (total, bytes) = (footprint.0, Bytes(footprint.0 << page_size.shift()));
        let pages = match self.limit {
            FastLimit::Bytes(size) => size.0 >> page_size.shift(),
            FastLimit::Share(_) | FastLimit::Parts(_) => {
                (self.limit.share(TierId::FAST).unwrap_or(0.0) * total as f64).round() as u64
            }
        };
        if pages == 0 {
            return Err(SimulateError::NoFastPage(self.text.clone(), bytes));
        }
        if pages > total {
            return Err(SimulateError::LargerThanFootprint(self.text.clone(), bytes));
        }
        Ok(Pages(pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str, count: u64) -> Result<u64, String> {
        let stream = Stream { pages: (0..count).map(|page| (0, page << 12)).collect(), ..Stream::default() };
        let size = FastSize::parse(text).map_err(|error| error.to_string())?;
        size.pages(&stream).map(|pages| pages.0).map_err(|error| error.to_string())
    }

    #[test]
    fn ratios_percentages_and_bytes_name_pages() {
        assert_eq!(pages("1:3", 100), Ok(25));
        assert_eq!(pages("25%", 100), Ok(25));
        assert_eq!(pages("100K", 100), Ok(25));
        assert_eq!(pages("100%", 100), Ok(100));
    }

    #[test]
    fn parts_give_each_tier_its_size() {
        assert_eq!(pages("1:2:5", 80), Ok(10));
        let stream = Stream { pages: (0..80).map(|page| (0, page << 12)).collect(), ..Stream::default() };
        let on = |text: &str, machine: &str| {
            let profile = Profile::builtin(machine).expect("known");
            FastSize::parse(text).expect("parts").on(&profile, &stream).map_err(|error| error.to_string())
        };
        let three = on("1:2:5", "zswap").expect("three tiers").expect("sizes");
        assert_eq!(three.tiers[1].capacity, Some(Bytes(20 << 12)));
        assert_eq!(on("1:8", "zswap"), Ok(None));
        let error =
            "--fast: '1:2:5' has 3 parts, but machine pact has 2 tiers; expected a part for each tier";
        assert_eq!(on("1:2:5", "pact"), Err(error.into()));
    }

    #[test]
    fn absurd_sizes_are_refused_in_one_line() {
        for text in ["", "x", "1:", "0:0", "-5%", "1e400", "1:8:", "1:-1:2", "0:0:0", "1:inf:2", "::"] {
            assert!(pages(text, 100).is_err_and(|error| error.contains("--fast")), "{text}");
        }
        assert_eq!(pages("0%", 100), Err("--fast 0%: leaves no fast page of a footprint of 400K".into()));
        assert!(pages("1T", 100).is_err_and(|error| error.contains("larger than the footprint of 400K")));
    }
}
