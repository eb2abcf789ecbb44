//! Pages of a batch that are mapped nowhere until they are copied. A thread that touches one waits for it
//! (`migration_entry_wait` in Linux's mm/migrate.c).

use std::collections::HashMap;

use isotherm_core::PageId;

#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    /// When the batch was unmapped, in picoseconds.
    since: u64,
    /// When each of its pages is mapped again.
    until: HashMap<u32, u64>,
}

impl InFlight {
    /// Begins a batch.
    pub(crate) fn begin(&mut self, since: u64) {
        self.since = since;
    }

    pub(crate) fn add(&mut self, page: PageId, until: u64) {
        self.until.insert(page.0, until);
    }

    /// Leaves out a page that moves on: where it is stored, its accesses fault for that.
    pub(crate) fn forget(&mut self, page: PageId) {
        self.until.remove(&page.0);
    }

    /// Ends the batch; returns its pages.
    pub(crate) fn end(&mut self) -> impl Iterator<Item = PageId> {
        self.until.drain().map(|(page, _)| PageId(page))
    }

    /// Returns until when an access at `clock` waits for the page, `clock` if it need not; `None` if the page
    /// is not of the batch. A thread that is behind the others' time comes before the batch.
    pub(crate) fn lands(&self, page: u32, clock: u64) -> Option<u64> {
        let until = *self.until.get(&page)?;
        Some(if clock < self.since { clock } else { until.max(clock) })
    }
}
