//! Memory that nobody uses, by accessed bits beside windows.
//!
//! A scan tells how many pages of a mapping were accessed since the last one. Windows set bits, too: a page
//! that comes back from the store counts as accessed. So a mapping is idle if windows saw no touch in it and
//! no more of its pages were accessed than windows had armed. Its pages are then untouched for the program's
//! processor time between the scans, all together.

use std::collections::HashMap;
use std::ops::Range;

use isotherm_core::PageId;
use isotherm_linux::source::ScannedMapping;

use super::super::tiered_memory::TieredMemory;

/// Smallest mapping that is told apart, in chunks of 2 MiB that lie within it.
const LEAST: usize = 2;

/// Windows since the last scan, by chunk.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    armed: u64,
    touched: u64,
}

#[derive(Debug, Default)]
pub(super) struct Idle {
    seen: HashMap<u32, Seen>,
    /// Idle pages, and the time for which each of them is known not to have been touched.
    pub(super) pages: Vec<(Range<u32>, f64)>,
}

impl Idle {
    pub(super) fn armed(&mut self, chunk: u32, pages: u64) {
        self.seen.entry(chunk).or_default().armed += pages;
    }

    pub(super) fn touched(&mut self, chunk: u32) {
        let seen = self.seen.entry(chunk).or_default();
        (seen.armed, seen.touched) = (seen.armed + 1, seen.touched + 1);
    }

    /// Forgets the pages of a chunk, whose numbers may be used for others.
    pub(super) fn forget(&mut self, pages: &Range<u32>) {
        self.pages.retain(|idle| !pages.contains(&idle.0.start));
    }

    /// Takes the mappings of a scan in place of those of the last one of the same processes.
    pub(super) fn scanned(&mut self, mappings: &[ScannedMapping], memory: &TieredMemory) {
        let numbers = &memory.numbers;
        let scanned = |page: u32| {
            let process = numbers.address(PageId(page)).map(|place| place.0);
            mappings.iter().any(|mapping| Some(mapping.process) == process)
        };
        self.pages.retain(|idle| !scanned(idle.0.start));
        for mapping in mappings {
            let chunks: Vec<Range<u32>> = numbers.within(mapping.process, &mapping.range).collect();
            let whole = |pages: &Range<u32>| *pages == numbers.chunk_of(PageId(pages.start));
            let whole: Vec<Range<u32>> = chunks.into_iter().filter(whole).collect();
            let seen = |pages: &Range<u32>| self.seen.get(&(pages.start / numbers.pages_in_chunk()));
            let (armed, touched) = whole
                .iter()
                .filter_map(seen)
                .fold((0, 0), |sum, seen| (sum.0 + seen.armed, sum.1 + seen.touched));
            if whole.len() >= LEAST && touched == 0 && mapping.referenced <= armed {
                let together = mapping.exposed.0 as f64 * mapping.present as f64;
                self.pages.extend(whole.into_iter().map(|pages| (pages, together)));
            }
        }
        self.seen.retain(|chunk, _| !scanned(chunk * numbers.pages_in_chunk()));
    }
}
