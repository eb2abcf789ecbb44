//! Sub-samples of a stream: one page in several, with all of its accesses.
//!
//! Sampling pages, not accesses, keeps how often and when each page is used (spatial sampling, as in SHARDS,
//! Waldspurger et al., FAST 2015, section 3). SHARDS takes pages by their hash and must correct for an excess
//! or lack of hot ones. Here pages are ranked by their accesses, and each group gets one of every `one_in`
//! neighbours in that order, by lot: groups share no page and have nearly the same distribution of accesses.
//!
//! A group is a smaller program, not a thinner one: each access keeps the instructions before it, so that
//! misses are as dense as in the whole, and omitted accesses go together with their time. An access that
//! depended on an omitted one depends on that one's own parent instead: a chain stays a chain.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stream::{Access, CompressedShares, Stream};
use crate::summary::page_counts;

/// Reach of a dependence, which has 8 bits.
const REACH: usize = 256;
const NONE: u32 = u32::MAX;

/// The pages of a stream, dealt into equal groups.
pub(crate) struct Groups {
    group: Vec<u32>,
    count: u32,
}

impl Groups {
    pub(crate) fn new(stream: &Stream, count: u32, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let counts = page_counts(stream);
        let mut ranked: Vec<u32> = (0..counts.len() as u32).collect();
        // Pages with equally many accesses come in random order, not by address.
        ranked.shuffle(&mut random);
        ranked.sort_by_key(|&page| std::cmp::Reverse(counts[page as usize]));
        let mut group = vec![0; counts.len()];
        let mut lots: Vec<u32> = (0..count).collect();
        for neighbours in ranked.chunks(count as usize) {
            lots.shuffle(&mut random);
            neighbours.iter().zip(&lots).for_each(|(&page, &lot)| group[page as usize] = lot);
        }
        Self { group, count }
    }

    /// Returns the accesses to the pages of one group, in order; empty for a group without pages.
    pub(crate) fn sample(&self, stream: &Stream, group: u32) -> Stream {
        let kept = |page: usize| self.group[page] == group;
        let mut dense = vec![NONE; stream.pages.len()];
        let mut pages = Vec::with_capacity(stream.pages.len() / self.count as usize + 1);
        let shares = |all: &[u8]| -> Vec<u8> {
            all.iter().enumerate().filter(|&(page, _)| kept(page)).map(|(_, &share)| share).collect()
        };
        let CompressedShares { zstd, lz4 } = &stream.compressed_shares;
        let compressed_shares = CompressedShares { zstd: shares(zstd), lz4: shares(lz4) };
        for (page, &address) in stream.pages.iter().enumerate().filter(|&(page, _)| kept(page)) {
            dense[page] = pages.len() as u32;
            pages.push(address);
        }
        let mut threads: Vec<Ancestry> = (0..stream.threads).map(|_| Ancestry::default()).collect();
        let keep = |access: &Access| {
            let page = dense[access.page as usize];
            let thread = &mut threads[usize::from(access.thread)];
            let (trigger, pair) = (thread.trigger(access.trigger), thread.trigger(access.pair));
            let dependence = thread.next(access.dependence, page != NONE);
            (page != NONE).then_some(Access { page, dependence, trigger, pair, ..*access })
        };
        let accesses = stream.accesses.iter().filter_map(keep).collect();
        Stream {
            accesses,
            pages,
            threads: stream.threads,
            page_size: stream.page_size,
            compressed_shares,
            fingerprint: None,
        }
    }
}

/// The kept access that each of a thread's last accesses stands for.
struct Ancestry {
    /// Number among the kept accesses of each access or, if it was omitted, of its nearest kept ancestor.
    kept: [u32; REACH],
    seen: usize,
    count: u32,
}

impl Default for Ancestry {
    fn default() -> Self {
        Self { kept: [NONE; REACH], seen: 0, count: 0 }
    }
}

impl Ancestry {
    /// Returns the kept number of the access `back` accesses ago; `None` for 0.
    fn kept(&self, back: u8) -> Option<u32> {
        let back = usize::from(back);
        let known = back != 0 && back <= self.seen;
        known.then(|| self.kept[(self.seen - back) % REACH]).filter(|&kept| kept != NONE)
    }

    /// Returns the distance in the sub-sample from the next access to the one that prefetched its line.
    fn trigger(&self, trigger: u8) -> u8 {
        match trigger {
            u8::MAX => u8::MAX,
            _ => self.kept(trigger).map_or(0, |kept| (self.count - kept) as u8),
        }
    }

    /// Takes the next access and returns its dependence's distance in the sub-sample; 0 for none.
    fn next(&mut self, dependence: u8, keep: bool) -> u8 {
        let parent = self.kept(dependence);
        self.kept[self.seen % REACH] = if keep { self.count } else { parent.unwrap_or(NONE) };
        self.seen += 1;
        let shortened = parent.map_or(0, |parent| u8::try_from(self.count - parent).unwrap_or(0));
        self.count += u32::from(keep);
        shortened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds accesses of one thread from `(page, dependence)`.
    fn stream(accesses: &[(u32, u8)], pages: u32) -> Stream {
        let access = |&(page, dependence)| Access {
            page,
            instructions: 7,
            thread: 0,
            dependence,
            ..Access::default()
        };
        Stream {
            accesses: accesses.iter().map(access).collect(),
            pages: (0..u64::from(pages)).map(|page| (0, page << 12)).collect(),
            threads: 1,
            ..Stream::default()
        }
    }

    /// Returns the page of the whole that each access of a sub-sample goes to.
    fn originals(whole: &Stream, part: &Stream) -> Vec<u32> {
        let number = |page: u32| {
            let address = part.pages[page as usize];
            whole.pages.binary_search(&address).expect("a page of the whole") as u32
        };
        part.accesses.iter().map(|access| number(access.page)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn groups_share_no_page_and_hold_every_access_of_theirs_in_order(
            pages in prop::collection::vec(0u32..40, 1..300),
            count in 1u32..8,
            seed: u64,
        ) {
            let accesses: Vec<_> = pages.iter().map(|&page| (page, 0)).collect();
            let whole = stream(&accesses, 40);
            let groups = Groups::new(&whole, count, seed);
            let mut taken = [false; 40];
            for group in 0..count {
                let part = groups.sample(&whole, group);
                let mut mine = [false; 40];
                for &address in &part.pages {
                    let page = whole.pages.binary_search(&address).expect("a page of the whole");
                    prop_assert!(!std::mem::replace(&mut taken[page], true), "page {} is in two \
                        groups", page);
                    mine[page] = true;
                }
                let expected: Vec<u32> = pages.iter().copied().filter(|&page| mine[page as usize]).collect();
                prop_assert_eq!(originals(&whole, &part), expected);
            }
            prop_assert!(taken.iter().all(|&taken| taken), "every page is in a group");
        }
    }

    #[test]
    fn a_group_has_one_page_in_so_many_whether_hot_or_cold() {
        // Page n has 2^(n / 8) accesses: eight pages of each heat.
        let accesses: Vec<_> =
            (0..64u32).flat_map(|page| std::iter::repeat_n((page, 0), 1 << (page / 8))).collect();
        let whole = stream(&accesses, 64);
        let groups = Groups::new(&whole, 8, 3);
        for group in 0..8 {
            let part = groups.sample(&whole, group);
            assert_eq!((part.pages.len(), part.accesses.len()), (8, 255));
        }
    }

    #[test]
    fn the_seed_decides_which_pages() {
        let accesses: Vec<_> = (0..1000).map(|page| (page, 0)).collect();
        let whole = stream(&accesses, 1000);
        let pages = |seed| Groups::new(&whole, 10, seed).sample(&whole, 0).pages;
        assert_eq!(pages(1), pages(1));
        assert_ne!(pages(1), pages(2));
    }

    #[test]
    fn one_group_is_the_whole() {
        let whole = stream(&[(0, 0), (2, 1), (1, 2), (2, 0), (0, 4)], 3);
        let part = Groups::new(&whole, 1, 1).sample(&whole, 0);
        assert_eq!((part.accesses, part.pages), (whole.accesses, whole.pages));
    }

    #[test]
    fn what_prefetched_a_line_is_found_again() {
        // Two pages in turn, a stream in each: all but a page's first two accesses were prefetched.
        let triggers = [0, 0, 0, 0, 2, 2, 4, 4, 255, 255];
        let mut whole = stream(&[(0, 0), (1, 0)].repeat(5), 2);
        whole.accesses.iter_mut().zip(triggers).for_each(|(access, trigger)| access.trigger = trigger);
        let groups = Groups { group: vec![0, 1], count: 2 };
        for group in 0..2 {
            let part = groups.sample(&whole, group);
            let triggers: Vec<u8> = part.accesses.iter().map(|access| access.trigger).collect();
            assert_eq!(triggers, [0, 0, 1, 2, 255]);
        }
    }

    #[test]
    fn chains_stay_chains_through_accesses_that_are_left_out() {
        // Every access depends on the one before, except the last, whose parent is in its own page.
        let whole = stream(&[(0, 0), (1, 1), (1, 1), (0, 1), (1, 1), (1, 0), (0, 1), (0, 3)], 2);
        let groups = Groups { group: vec![0, 1], count: 2 };
        let dependences = |group| -> Vec<u8> {
            groups.sample(&whole, group).accesses.iter().map(|access| access.dependence).collect()
        };
        // The third access to page 0 depended on page 1's fifth, a root; the last one on the fourth.
        assert_eq!(dependences(0), [0, 1, 0, 2]);
        assert_eq!(dependences(1), [0, 1, 1, 0]);
    }
}
