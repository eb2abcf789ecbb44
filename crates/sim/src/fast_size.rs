//! Sizes of the fast tier as users write them.

use isotherm_core::{Bytes, PageSize, Pages, parse_share};

use crate::SimulateError;
use crate::stream::Stream;

/// A size of the fast tier, as a user asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct FastSize {
    pub(crate) text: String,
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    Share(f64),
    Bytes(Bytes),
}

impl FastSize {
    /// Reads `1:8` (fast to slow), `25%` of the footprint, or `64M`.
    ///
    /// # Errors
    /// Text in none of these forms.
    pub fn parse(text: &str) -> Result<Self, SimulateError> {
        let size = match (parse_share(text), text.parse()) {
            (Some(share), _) => Size::Share(share),
            (None, Ok(bytes)) => Size::Bytes(bytes),
            (None, Err(_)) => return Err(SimulateError::InvalidSize(text.into())),
        };
        Ok(Self { text: text.into(), size })
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
        let pages = match self.size {
            Size::Share(share) => (share * total as f64).round() as u64,
            Size::Bytes(size) => size.0 >> page_size.shift(),
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
    fn absurd_sizes_are_refused_in_one_line() {
        for text in ["", "x", "1:", "0:0", "-5%", "1e400", "1:8:2"] {
            assert!(pages(text, 100).is_err_and(|error| error.contains("--fast")), "{text}");
        }
        assert_eq!(pages("0%", 100), Err("--fast 0%: leaves no fast page of a footprint of 400K".into()));
        assert!(pages("1T", 100).is_err_and(|error| error.contains("larger than the footprint of 400K")));
    }
}
