//! Compressed memory as the slowest tier, as zswap makes it: pages are stored small and cannot be accessed.
//!
//! An access to a stored page faults: the thread decompresses it into the fastest tier with room. Where no
//! tier has room, for it or for a new page, the kernel compresses the coldest pages of the slowest memory
//! above, [`CLUSTER`] at once. Stored pages take room of that memory; what does not compress stays there.

use isotherm_core::{Bytes, PageId, PageSize};
use isotherm_trace::INCOMPRESSIBLE;

/// Pages that reclaim takes at once (`SWAP_CLUSTER_MAX`).
pub(crate) const CLUSTER: u64 = 32;
/// Shares of a page, in 256ths, that pages take compressed where the input does not say: Google's far memory
/// compresses twofold to sixfold, threefold on average, and 31 % of cold pages not at all (Lagar-Cavilla et
/// al., ASPLOS 2019).
const SHARES: [u8; 20] =
    [43, 49, 56, 62, 69, 75, 82, 88, 95, 101, 108, 114, 121, 128, 255, 255, 255, 255, 255, 255];

/// Sizes of stored pages, and how much is stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compression {
    /// Share of its size that each page takes, in 256ths.
    shares: Vec<u8>,
    page_size: PageSize,
    /// In 256ths of a page.
    stored: u64,
    most: u64,
}

/// Work that an access to a stored page, or room for a new one, took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Swapped {
    /// Tier in which the page is now.
    pub(crate) tier: u8,
    /// Bytes that were read and decompressed; none of a new page.
    pub(crate) decompressed: Option<Bytes>,
    /// Pages that were compressed to make room, their bytes in store, and pages that reclaim looked at.
    pub(crate) compressed: u64,
    pub(crate) written: Bytes,
    pub(crate) scanned: u64,
}

impl Compression {
    /// Creates an empty store; `shares` are those of the input, one a page, if it has them.
    pub(crate) fn new(pages: usize, page_size: PageSize, shares: &[u8]) -> Self {
        let shares = match shares {
            [] => (0..pages as u64).map(usual).collect(),
            shares => shares.to_vec(),
        };
        Self { shares, page_size, ..Self::default() }
    }

    /// Returns whether a page can be stored.
    pub(crate) fn takes(&self, page: PageId) -> bool {
        self.shares[page.index()] < INCOMPRESSIBLE
    }

    /// Returns the bytes that a page takes in store.
    pub(crate) fn size(&self, page: PageId) -> Bytes {
        Bytes((u64::from(self.shares[page.index()]) << self.page_size.shift()).div_ceil(256))
    }

    pub(crate) fn store(&mut self, page: PageId) {
        self.stored += u64::from(self.shares[page.index()]);
        self.most = self.most.max(self.stored);
    }

    pub(crate) fn drop(&mut self, page: PageId) {
        self.stored -= u64::from(self.shares[page.index()]);
    }

    /// Returns the pages of memory that all stored ones take.
    pub(crate) fn room(&self) -> u64 {
        self.stored.div_ceil(256)
    }

    /// Returns the largest memory that stored pages took.
    pub(crate) fn most(&self) -> Bytes {
        Bytes((self.most << self.page_size.shift()).div_ceil(256))
    }
}

/// Returns the share of a page of an input whose contents are not known.
fn usual(page: u64) -> u8 {
    // Fibonacci hashing: neighbours differ, and the same page is always the same.
    let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    SHARES[(hash % SHARES.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_unknown_contents_compress_as_published() {
        let compression = Compression::new(100_000, PageSize::Base, &[]);
        let (stored, kept): (Vec<_>, Vec<_>) =
            (0..100_000).map(PageId).partition(|&page| compression.takes(page));
        assert!((0.29..0.33).contains(&(kept.len() as f64 / 100_000.0)), "{}", kept.len());
        let bytes: u64 = stored.iter().map(|&page| compression.size(page).0).sum();
        let ratio = (stored.len() << 12) as f64 / bytes as f64;
        assert!((2.9..3.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_store_knows_its_memory_and_its_largest() {
        let mut compression = Compression::new(2, PageSize::Base, &[64, 128]);
        (0..2).for_each(|page| compression.store(PageId(page)));
        compression.drop(PageId(1));
        assert_eq!(
            (compression.room(), compression.most(), compression.size(PageId(0))),
            (1, Bytes(3072), Bytes(1024))
        );
    }
}
