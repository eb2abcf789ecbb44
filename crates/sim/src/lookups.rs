//! The TLB look-ups of a stream's accesses and their places in the reorder window, which all runs on a
//! machine share.
//!
//! The order of accesses decides them, so they are computed once. Moved pages change them: [`ShotDown`] has
//! the next access to such a page walk. That the page leaves room in the TLBs, and that a shootdown drops
//! cached directories, is left out: a few nanoseconds beside the microseconds of a move.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use isotherm_machine::{Footprint, Lookup, Profile, ReorderWindows, Translator};

use crate::stop::check;
use crate::stream::{Access, Stream};

/// Accesses ahead for which memory is fetched.
const AHEAD: usize = 16;
/// Accesses between two looks at whether the run is to stop.
const CHUNK: usize = 1 << 16;

/// The part of an access that the order of accesses decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordered {
    pub(crate) lookup: Lookup,
    /// See [`ReorderWindows::miss`].
    pub(crate) left: u8,
}

/// The accesses of the first round over a stream, and of later ones, whose caches are in use.
#[derive(Debug)]
pub(crate) struct Lookups {
    first: Vec<Ordered>,
    /// TLBs, caches and reorder windows at its end.
    end: State,
    later: OnceLock<Vec<Ordered>>,
}

#[derive(Debug, Clone)]
struct State {
    translator: Translator,
    windows: ReorderWindows,
}

impl Lookups {
    pub(crate) fn new(stream: &Stream, profile: &Profile, scale: f64, stop: Option<&AtomicBool>) -> Self {
        let footprint = Footprint { pages: stream.pages.len(), page_size: stream.page_size, scale };
        let mut end = State {
            translator: Translator::new(profile, stream.threads, footprint),
            windows: ReorderWindows::new(profile, stream.threads),
        };
        let first = look_up(&mut end, &stream.accesses, stop);
        Self { first, end, later: OnceLock::new() }
    }

    pub(crate) fn first(&self) -> &[Ordered] {
        &self.first
    }

    /// Returns those of the second round, from access `from` on; later rounds are taken to have the same.
    pub(crate) fn later(&self, accesses: &[Access], stop: Option<&AtomicBool>) -> &[Ordered] {
        self.later.get_or_init(|| look_up(&mut self.end.clone(), accesses, stop))
    }
}

fn look_up(state: &mut State, accesses: &[Access], stop: Option<&AtomicBool>) -> Vec<Ordered> {
    let State { translator, windows } = state;
    let mut lookups = Vec::with_capacity(accesses.len());
    for (number, chunk) in accesses.chunks(CHUNK).enumerate() {
        stop.inspect(|stop| check(stop));
        let ahead = accesses.get(number * CHUNK + AHEAD..).unwrap_or(&[]);
        lookups.extend(chunk.iter().enumerate().map(|(offset, access)| {
            ahead.get(offset).inspect(|access| translator.prefetch(access.page));
            Ordered {
                lookup: translator.look_up(access.thread, access.page, access.triggers()),
                left: windows.miss(access.thread, access.instructions),
            }
        }));
    }
    lookups
}

/// Pages that were shot down since their last access: a bit each. Where several threads use a page, only the
/// first one walks again.
#[derive(Debug, Default)]
pub(crate) struct ShotDown {
    /// Empty until the first shootdown.
    words: Vec<u64>,
    pages: usize,
}

impl ShotDown {
    pub(crate) fn new(pages: usize) -> Self {
        Self { words: Vec::new(), pages }
    }

    pub(crate) fn add(&mut self, page: u32) {
        self.words.resize(self.pages / 64 + 1, 0);
        self.words[page as usize / 64] |= 1 << (page % 64);
    }

    pub(crate) fn add_all(&mut self) {
        self.words.clear();
        self.words.resize(self.pages / 64 + 1, u64::MAX);
    }

    /// Returns the look-up of an access to `page`, which has `lookup` if the page was not shot down.
    #[inline]
    pub(crate) fn apply(&mut self, page: u32, lookup: Lookup) -> Lookup {
        let Some(word) = self.words.get_mut(page as usize / 64) else { return lookup };
        let bit = 1 << (page % 64);
        if *word & bit == 0 {
            return lookup;
        }
        *word &= !bit;
        // What walks anyway finds the line where it is.
        if lookup.walks() { lookup } else { Lookup::SHOT_DOWN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(pages: &[u32]) -> Stream {
        let access = |&page: &u32| Access { page, instructions: 10, ..Access::default() };
        let accesses = pages.iter().map(access).collect();
        Stream { accesses, pages: vec![(0, 0); 4096], threads: 1, ..Stream::default() }
    }

    #[test]
    fn a_page_that_was_shot_down_walks_once_more() {
        let mut shot_down = ShotDown::new(100);
        let hit = Lookup::default();
        assert_eq!(shot_down.apply(99, hit), hit, "nothing was shot down");
        shot_down.add(99);
        let looked_up = [98, 99, 99].map(|page| shot_down.apply(page, hit));
        assert_eq!(looked_up, [hit, Lookup::SHOT_DOWN, hit]);
        shot_down.add_all();
        let looked_up = [0, 99, 0].map(|page| shot_down.apply(page, hit));
        assert_eq!(looked_up, [Lookup::SHOT_DOWN, Lookup::SHOT_DOWN, hit]);
    }

    #[test]
    fn a_later_round_finds_the_tlb_and_caches_in_use() {
        // 64 pages of different page-table lines fit a TLB: the first round walks, the second hits.
        let pages: Vec<u32> = (0..64).map(|page| page * 64).collect();
        let stream = stream(&pages);
        let profile = Profile::builtin("pact").expect("it comes with Isotherm");
        let lookups = Lookups::new(&stream, &profile, 1.0, None);
        let walks = |all: &[Ordered]| all.iter().filter(|ordered| ordered.lookup.walks()).count();
        assert_eq!(walks(lookups.first()), 64);
        assert_eq!(walks(lookups.later(&stream.accesses, None)), 0);
        assert_eq!(lookups.later(&stream.accesses[60..], None).len(), 64, "computed once");
    }
}
