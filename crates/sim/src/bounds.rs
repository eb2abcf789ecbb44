//! The limits that every policy's result is shown against.
//!
//! * `oracle`: before each interval, the pages with most accesses in it are chosen for the fast tier, and
//!   brought in at their first access for free. Where misses come in bursts, a policy that follows them can
//!   beat it.
//! * `belady`: MIN with bypass. On each access the fast tier may take the page in or let it pass; it keeps
//!   those used soonest again. A page's first access is a hit, because a fresh page can be allocated in the
//!   fast tier. No placement that brings a page in at one of its accesses can hit more often.
//!
//! With more than two tiers both are computed for the fast tier, for it and the second together, and so on:
//! an access is served by the first tier up to which it hits. What MIN keeps in fewer pages it keeps in more.

use isotherm_core::Pages;
use prefetch_index::prefetch_index;

use crate::page_table::Locator;
use crate::stream::{Access, Stream};

/// Average accesses per page in the oracle's horizon: a shorter one would fetch pages for one access each.
const ORACLE_ACCESSES_PER_PAGE: usize = 10;

/// The pages of each of the oracle's intervals, most accessed first.
#[derive(Debug)]
pub(crate) struct IntervalRanks {
    length: usize,
    loads_only: bool,
    intervals: Vec<Vec<u32>>,
}

impl IntervalRanks {
    /// Ranks pages by all accesses or by loads only. The oracle's intervals are whole ones of the timeline.
    pub(crate) fn new(stream: &Stream, interval_length: usize, loads_only: bool) -> Self {
        let wanted = (ORACLE_ACCESSES_PER_PAGE * stream.pages.len()).min(stream.accesses.len());
        let length = wanted.div_ceil(interval_length).max(1) * interval_length;
        Self::with_length(stream, length, loads_only)
    }

    fn with_length(stream: &Stream, length: usize, loads_only: bool) -> Self {
        let mut counts = vec![0u32; stream.pages.len()];
        let rank = |accesses: &[Access]| {
            let mut touched = Vec::new();
            for access in accesses.iter().filter(|access| counts_in(access, loads_only)) {
                let count = &mut counts[access.page as usize];
                if *count == 0 {
                    touched.push(access.page);
                }
                *count += 1;
            }
            touched.sort_unstable_by_key(|&page| (std::cmp::Reverse(counts[page as usize]), page));
            touched.iter().for_each(|&page| counts[page as usize] = 0);
            touched
        };
        Self { length, loads_only, intervals: stream.accesses.chunks(length).map(rank).collect() }
    }

    /// Returns an interval's accesses.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns the oracle's hits of each of the first `rounds` rounds, in pieces of `resolution` accesses,
    /// which divides the interval's length.
    pub(crate) fn hits(
        &self,
        stream: &Stream,
        fast: Pages,
        resolution: usize,
        rounds: usize,
    ) -> Vec<Vec<u64>> {
        let mut chosen = Chosen::new(stream.pages.len(), fast);
        let mut round = |_| {
            let mut hits = Vec::new();
            for (accesses, ranked) in stream.accesses.chunks(self.length).zip(&self.intervals) {
                chosen.choose(ranked);
                for piece in accesses.chunks(resolution) {
                    let hit =
                        |access: &&Access| chosen.serve(access.page) && counts_in(access, self.loads_only);
                    hits.push(piece.iter().filter(hit).count() as u64);
                }
            }
            hits
        };
        (0..rounds).map(&mut round).collect()
    }
}

/// The oracle's fast tier: the pages chosen for the present interval, and older ones while there is room. A
/// page that was used before comes in at its first access, as with MIN; a fresh one can be allocated in the
/// fast tier. So MIN hits as often.
struct Chosen {
    fast: usize,
    pages: Vec<u32>,
    states: Vec<State>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Never used.
    Fresh,
    Slow,
    /// Chosen, and slow until its next access.
    Coming,
    Fast,
    /// Fast, while the pages of the next interval are chosen.
    Leaving,
}

impl Chosen {
    fn new(pages: usize, fast: Pages) -> Self {
        Self { fast: fast.0 as usize, pages: Vec::new(), states: vec![State::Fresh; pages] }
    }

    /// Chooses the first of these pages.
    fn choose(&mut self, ranked: &[u32]) {
        let best = ranked[..ranked.len().min(self.fast)].to_vec();
        let before = std::mem::replace(&mut self.pages, best);
        for &page in &before {
            let state = &mut self.states[page as usize];
            *state = if *state == State::Fast { State::Leaving } else { State::Slow };
        }
        for &page in &self.pages {
            let state = &mut self.states[page as usize];
            *state = if *state == State::Slow { State::Coming } else { State::Fast };
        }
        for page in before {
            let state = &mut self.states[page as usize];
            if *state == State::Leaving {
                let stays = self.pages.len() < self.fast;
                *state = if stays { State::Fast } else { State::Slow };
                self.pages.extend(stays.then_some(page));
            }
        }
    }

    /// Returns whether an access finds its page in the fast tier.
    #[inline]
    fn serve(&mut self, page: u32) -> bool {
        let state = &mut self.states[page as usize];
        let hit = *state == State::Fast;
        *state = match *state {
            State::Coming | State::Fast => State::Fast,
            State::Fresh | State::Slow | State::Leaving => State::Slow,
        };
        hit
    }
}

fn counts_in(access: &Access, loads_only: bool) -> bool {
    !loads_only || access.store() == 0
}

/// Serves each access from where the oracle has its page.
pub(crate) struct OraclePlacement<'a> {
    ranks: &'a IntervalRanks,
    levels: Vec<Chosen>,
}

impl<'a> OraclePlacement<'a> {
    /// Places a stream's `pages` pages: as many as the first of `levels` in the fast tier, as the second in
    /// it and the next, and so on; the rest in the last tier.
    pub(crate) fn new(ranks: &'a IntervalRanks, pages: usize, levels: &[Pages]) -> Self {
        Self { ranks, levels: levels.iter().map(|&fast| Chosen::new(pages, fast)).collect() }
    }
}

impl Locator for OraclePlacement<'_> {
    #[inline]
    fn serve(&mut self, _index: usize, page: u32) -> u8 {
        // From the slowest on, since each level takes note of the access.
        let levels = self.levels.iter_mut().enumerate().rev();
        let last = levels.len();
        levels.fold(last as u8, |tier, (level, chosen)| if chosen.serve(page) { level as u8 } else { tier })
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.levels.iter().for_each(|chosen| prefetch_index(&chosen.states, page as usize));
    }

    fn interval(&mut self, first_access: usize) {
        if first_access.is_multiple_of(self.ranks.length) {
            let ranked = &self.ranks.intervals[first_access / self.ranks.length];
            self.levels.iter_mut().for_each(|chosen| chosen.choose(ranked));
        }
    }
}

/// The accesses of each round that MIN with bypass hits: one bit each.
pub(crate) struct Belady {
    /// The first round, and in a run of several the second, which stands for every later one: they differ by
    /// a few hits at most, because the tier holds other pages at their starts.
    rounds: Vec<BeladyRound>,
}

struct BeladyRound {
    hits: Vec<u64>,
    total: u64,
}

impl Belady {
    /// Replays MIN with `fast` fast pages, once or, if the stream `repeats`, twice: the next use of an access
    /// may then lie in the round after.
    pub(crate) fn new(stream: &Stream, uses: &NextUses, fast: Pages, repeats: bool) -> Self {
        let length = stream.accesses.len();
        let mut seen = vec![false; stream.pages.len()];
        let mut kept = Uses::new(length * if repeats { 3 } else { 1 });
        let mut count = 0;
        let mut replay = |round: usize| {
            let start = round * length;
            let (mut hits, mut total) = (vec![0u64; length.div_ceil(64)], 0);
            uses.visit(stream, |index, page, next| {
                let was_resident = kept.contains(start + index);
                let fresh = !std::mem::replace(&mut seen[page as usize], true);
                if fast.0 > 0 && (was_resident || fresh) {
                    hits[index / 64] |= 1 << (index % 64);
                    total += 1;
                }
                count += u64::from(!was_resident);
                match next {
                    NEVER if repeats => kept.insert(start + length + uses.first(page)),
                    NEVER => {
                        count -= 1;
                        return;
                    }
                    next => kept.insert(start + next as usize),
                }
                if count > fast.0 {
                    kept.remove_latest();
                    count -= 1;
                }
            });
            BeladyRound { hits, total }
        };
        Self { rounds: (0..1 + usize::from(repeats)).map(&mut replay).collect() }
    }

    /// Returns the hits of the first `rounds` rounds.
    pub(crate) fn hits(&self, rounds: u64) -> u64 {
        let later = self.rounds.last().map_or(0, |round| round.total);
        self.rounds[0].total + later * (rounds - 1)
    }
}

/// Serves each access from where MIN with bypass has its page.
pub(crate) struct BeladyPlacement<'a> {
    /// Of each number of tiers, the rounds from the current one on.
    levels: Vec<&'a [BeladyRound]>,
}

impl<'a> BeladyPlacement<'a> {
    /// Returns the placement that has these hits, before the first access.
    pub(crate) fn new(levels: &'a [Belady]) -> Self {
        Self { levels: levels.iter().map(|belady| &belady.rounds[..]).collect() }
    }
}

impl Locator for BeladyPlacement<'_> {
    #[inline]
    fn serve(&mut self, index: usize, _page: u32) -> u8 {
        let misses = |rounds: &&&[BeladyRound]| rounds[0].hits[index / 64] & 1 << (index % 64) == 0;
        self.levels.iter().take_while(misses).count() as u8
    }

    fn rewind(&mut self) {
        for rounds in &mut self.levels {
            if let [_, later @ ..] = *rounds
                && !later.is_empty()
            {
                *rounds = later;
            }
        }
    }
}

/// Next use of a page that is not used again.
pub(crate) const NEVER: u32 = u32::MAX;

/// Accesses of a segment, at least: their next uses take 16 MiB.
const SEGMENT: usize = 1 << 22;
/// Accesses of a segment, at least, for each page: the pages' next uses at its end take a 16th of them.
const SEGMENT_PER_PAGE: usize = 16;

/// When pages are used, in less memory than a number for each access: the next uses of one segment's accesses
/// are computed when it is visited, from those of all pages at its end.
#[derive(Debug)]
pub(crate) struct NextUses {
    segment: usize,
    /// The index of each page's first access from the start of each segment on, and behind the last one.
    from: Vec<Vec<u32>>,
}

impl NextUses {
    pub(crate) fn of(stream: &Stream) -> Self {
        Self::in_segments(stream, SEGMENT.max(SEGMENT_PER_PAGE * stream.pages.len()))
    }

    fn in_segments(stream: &Stream, segment: usize) -> Self {
        let mut from = vec![vec![NEVER; stream.pages.len()]];
        for (number, accesses) in stream.accesses.chunks(segment).enumerate().rev() {
            let mut first = from[from.len() - 1].clone();
            for (index, access) in accesses.iter().enumerate().rev() {
                first[access.page as usize] = (number * segment + index) as u32;
            }
            from.push(first);
        }
        from.reverse();
        Self { segment, from }
    }

    /// Returns the index of the first access to a page.
    fn first(&self, page: u32) -> usize {
        self.from[0][page as usize] as usize
    }

    /// Calls `visit` with the index and page of each access, in order, and the index of the next access to
    /// that page, or [`NEVER`].
    pub(crate) fn visit(&self, stream: &Stream, mut visit: impl FnMut(usize, u32, u32)) {
        let mut next = Vec::new();
        for (number, accesses) in stream.accesses.chunks(self.segment).enumerate() {
            let (start, mut following) = (number * self.segment, self.from[number + 1].clone());
            next.resize(accesses.len(), NEVER);
            for (index, access) in accesses.iter().enumerate().rev() {
                next[index] = std::mem::replace(&mut following[access.page as usize], (start + index) as u32);
            }
            for (index, (access, &next)) in accesses.iter().zip(&next).enumerate() {
                visit(start + index, access.page, next);
            }
        }
    }
}

/// The next uses of the pages that MIN keeps: a bit for each access to come, and on each further level a bit
/// for each word of the one before that is not 0.
pub(crate) struct Uses {
    levels: Vec<Vec<u64>>,
}

impl Uses {
    pub(crate) fn new(accesses: usize) -> Self {
        let mut levels = vec![vec![0; accesses.div_ceil(64).max(1)]];
        while levels[levels.len() - 1].len() > 1 {
            levels.push(vec![0; levels[levels.len() - 1].len().div_ceil(64)]);
        }
        Self { levels }
    }

    #[inline]
    pub(crate) fn contains(&self, access: usize) -> bool {
        self.levels[0][access / 64] & 1 << (access % 64) != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, mut access: usize) {
        for level in &mut self.levels {
            let word = &mut level[access / 64];
            let was_empty = *word == 0;
            *word |= 1 << (access % 64);
            if !was_empty {
                return;
            }
            access /= 64;
        }
    }

    /// Lets the latest use go. There must be one; what has passed may stay, as it is never the latest then.
    #[inline]
    pub(crate) fn remove_latest(&mut self) {
        let down = |at: usize, level: &Vec<u64>| at * 64 + level[at].ilog2() as usize;
        let mut access = self.levels.iter().rev().fold(0, down);
        for level in &mut self.levels {
            let word = &mut level[access / 64];
            *word &= !(1 << (access % 64));
            if *word != 0 {
                return;
            }
            access /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(pages: &[u32]) -> Stream {
        let access = |&page| Access { page, instructions: 1, thread: 0, dependence: 0, ..Access::default() };
        Stream {
            accesses: pages.iter().map(access).collect(),
            pages: (0..8).map(|page| (0, page << 12)).collect(),
            threads: 1,
            ..Stream::default()
        }
    }

    fn belady(pages: &[u32], fast: u64) -> u64 {
        let stream = stream(pages);
        Belady::new(&stream, &NextUses::of(&stream), Pages(fast), false).hits(1)
    }

    /// Returns the most hits that any choice of pages to keep, made access by access, can reach.
    fn exhaustive(pages: &[u32], kept: u8, seen: u8, fast: u32) -> u64 {
        let Some((&page, rest)) = pages.split_first() else { return 0 };
        let bit = 1 << page;
        let hit = u64::from(fast > 0 && (kept & bit != 0 || seen & bit == 0));
        let candidates = kept | bit;
        let best = (0..=255u8)
            .filter(|&choice| choice & !candidates == 0 && choice.count_ones() <= fast)
            .map(|choice| exhaustive(rest, choice, seen | bit, fast))
            .max();
        hit + best.unwrap_or(0)
    }

    #[test]
    fn a_loop_larger_than_the_tier_hits_as_often_as_a_fixed_part_of_it() {
        let pages: Vec<u32> = (0..400).map(|index| index % 4).collect();
        // Two of four pages stay: every other access hits, and so do the first accesses of the others.
        assert_eq!(belady(&pages, 2), 202);
        assert_eq!(belady(&pages, 4), 400);
        assert_eq!(belady(&pages, 0), 0);
    }

    #[test]
    fn in_later_rounds_belady_keeps_what_the_next_round_uses_first() {
        let stream = stream(&[0, 1, 2, 3]);
        let belady = Belady::new(&stream, &NextUses::of(&stream), Pages(2), true);
        // Each page's first access is a hit. Then the tier holds pages 0 and 1 of the next round.
        assert_eq!((belady.hits(1), belady.hits(2), belady.hits(11)), (4, 6, 24));
        let once = Belady::new(&stream, &NextUses::of(&stream), Pages(2), false);
        assert_eq!(once.hits(1), 4);
        let levels = [belady];
        let mut placement = BeladyPlacement::new(&levels);
        let mut round = || {
            let tiers = [0, 1, 2, 3].map(|index| placement.serve(index, 0));
            placement.rewind();
            tiers
        };
        assert_eq!([round(), round(), round()], [[0; 4], [0, 0, 1, 1], [0, 0, 1, 1]]);
    }

    #[test]
    fn of_three_tiers_the_middle_one_serves_what_only_both_together_would_hit() {
        // A loop over four pages: MIN keeps two of them in two pages, three in three.
        let stream = stream(&(0..400).map(|index| index % 4).collect::<Vec<_>>());
        let uses = NextUses::of(&stream);
        let levels = [1, 3].map(|pages| Belady::new(&stream, &uses, Pages(pages), false));
        let mut placement = BeladyPlacement::new(&levels);
        let mut served = [0; 3];
        for index in 0..400 {
            served[usize::from(placement.serve(index, 0))] += 1;
        }
        let hits = levels.each_ref().map(|belady| belady.hits(1));
        assert_eq!(served, [hits[0], hits[1] - hits[0], 400 - hits[1]]);
        assert!(served.iter().all(|&accesses| accesses > 50), "{served:?}");
        let ranks = IntervalRanks::with_length(&stream, 40, false);
        let mut oracle = OraclePlacement::new(&ranks, 4, &[Pages(1), Pages(3)]);
        oracle.interval(0);
        let tiers: Vec<u8> = [0, 1, 2, 3, 0, 1, 2, 3].map(|page| oracle.serve(0, page)).to_vec();
        assert_eq!(tiers, [0, 1, 1, 2, 0, 1, 1, 2], "fresh pages are allocated where they are to be");
    }

    #[test]
    fn the_oracle_takes_the_top_of_each_interval() {
        let stream = stream(&[0, 0, 1, 2, 1, 1, 2, 0]);
        let ranks = IntervalRanks::with_length(&stream, 4, false);
        // Page 1 was used before it is chosen, so it comes in at its first access.
        assert_eq!(ranks.hits(&stream, Pages(1), 4, 2), [[2, 1], [1, 1]]);
        assert_eq!(ranks.hits(&stream, Pages(2), 4, 1), [[3, 3]]);
        assert_eq!(ranks.hits(&stream, Pages(1), 2, 1), [[2, 0, 1, 0]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn belady_equals_exhaustive_search(pages in prop::collection::vec(0u32..4, 1..8), fast in 0u32..4) {
            prop_assert_eq!(belady(&pages, u64::from(fast)), exhaustive(&pages, 0, 0, fast));
        }

        #[test]
        fn what_belady_hits_with_fewer_pages_it_hits_with_more(
            pages in prop::collection::vec(0u32..8, 1..60), fast in 0u64..7
        ) {
            let stream = stream(&pages);
            let uses = NextUses::of(&stream);
            let [small, large] = [fast, fast + 1].map(|pages| Belady::new(&stream, &uses, Pages(pages), false));
            for (small, large) in small.rounds[0].hits.iter().zip(&large.rounds[0].hits) {
                prop_assert_eq!(small & !large, 0);
            }
        }

        #[test]
        fn segments_of_any_length_have_the_same_next_uses(
            pages in prop::collection::vec(0u32..8, 1..60), segment in 1usize..70
        ) {
            let stream = stream(&pages);
            let mut visited = Vec::new();
            NextUses::in_segments(&stream, segment).visit(&stream, |_, page, next| visited.push((page, next)));
            let next = |(index, &page): (usize, &u32)| {
                let behind = pages[index + 1..].iter().position(|&other| other == page);
                (page, behind.map_or(NEVER, |behind| (index + 1 + behind) as u32))
            };
            prop_assert_eq!(visited, pages.iter().enumerate().map(next).collect::<Vec<_>>());
        }

        #[test]
        fn the_latest_use_goes_first(uses in prop::collection::btree_set(0usize..300_000, 1..40)) {
            let mut kept = Uses::new(300_000);
            uses.iter().for_each(|&access| kept.insert(access));
            for access in uses.into_iter().rev() {
                prop_assert!(kept.contains(access));
                kept.remove_latest();
                prop_assert!(!kept.contains(access));
            }
        }

        #[test]
        fn two_rounds_of_belady_are_belady_of_the_stream_twice(
            pages in prop::collection::vec(0u32..8, 1..40), fast in 0u64..8, rounds in 1u64..3
        ) {
            let once = stream(&pages);
            let repeated = Belady::new(&once, &NextUses::of(&once), Pages(fast), true);
            prop_assert_eq!(repeated.hits(rounds), belady(&pages.repeat(rounds as usize), fast));
        }

        /// The oracle brought pages in before their first access, and so had more hits than MIN.
        #[test]
        fn the_oracle_never_beats_belady(
            pages in prop::collection::vec(0u32..8, 1..60), fast in 0u64..8, length in 1usize..20, rounds in 1usize..4
        ) {
            let stream = stream(&pages);
            let ranks = IntervalRanks::with_length(&stream, length, false);
            let oracle: u64 = ranks.hits(&stream, Pages(fast), length, rounds).iter().flatten().sum();
            prop_assert!(oracle <= belady(&pages.repeat(rounds), fast));
        }
    }
}
