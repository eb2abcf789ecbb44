//! Read-ahead for policies that look pages up sample by sample: in chunks, so that their cache misses
//! overlap. One lookup after the other waits for each miss in turn, because what is done with an entry keeps
//! the processor's window full; a loop that only reads has as many misses under way as there can be.

use std::hint::black_box;

use isotherm_core::{PageId, Sample, TierId, View};

/// Pages read ahead: enough to hide memory's latency, few enough to stay in the first-level cache.
pub(crate) const CHUNK: usize = 64;

/// The pages of at most [`CHUNK`] samples, and where they are.
#[derive(Debug)]
pub(crate) struct Chunk {
    pages: [PageId; CHUNK],
    tiers: [Option<TierId>; CHUNK],
    length: usize,
}

impl Chunk {
    /// Asks where the pages are, all at once. Those beyond [`CHUNK`] are left out.
    pub(crate) fn new(pages: impl Iterator<Item = PageId>, view: &dyn View) -> Self {
        let mut chunk = Self { pages: [PageId(0); CHUNK], tiers: [None; CHUNK], length: 0 };
        for (place, page) in chunk.pages.iter_mut().zip(pages) {
            *place = page;
            chunk.length += 1;
        }
        view.tiers_of(&chunk.pages[..chunk.length], &mut chunk.tiers);
        chunk
    }

    pub(crate) fn of(samples: &[Sample], view: &dyn View) -> Self {
        Self::new(samples.iter().map(|sample| sample.page), view)
    }

    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages[..self.length]
    }

    pub(crate) fn tiers(&self) -> &[Option<TierId>] {
        &self.tiers[..self.length]
    }
}

/// Reads something of every page, with nothing depending on it: a prefetch that needs no `unsafe`.
#[inline(always)]
pub(crate) fn read(pages: &[PageId], read: impl Fn(PageId) -> u32) {
    black_box(pages.iter().fold(0, |sum, &page| sum ^ read(page)));
}
