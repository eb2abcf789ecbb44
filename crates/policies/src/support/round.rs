//! One round of a scan over the address space, from where the scan before it stopped and once around the end.

use isotherm_core::PageId;

/// A scan that begins anywhere and meets each page once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    start: PageId,
    /// The page to continue from.
    pub(crate) cursor: PageId,
    wrapped: bool,
    /// Whether the scan has met its start again.
    pub(crate) complete: bool,
}

impl Round {
    pub(crate) fn from(start: PageId) -> Self {
        Self { start, cursor: start, wrapped: false, complete: false }
    }

    /// Returns whether the round meets a page for the first time: a batch may reach beyond the start.
    pub(crate) fn is_new(&self, page: PageId) -> bool {
        !self.wrapped || page < self.start
    }

    /// Goes on to what a walk returned: the next page, or `None` at the end of the address space.
    pub(crate) fn proceed(&mut self, next: Option<PageId>) {
        self.complete = match next {
            Some(next) => self.wrapped && next >= self.start,
            None => self.wrapped || self.start.0 == 0,
        };
        self.wrapped |= next.is_none();
        self.cursor = if self.complete { self.start } else { next.unwrap_or(PageId(0)) };
    }
}
