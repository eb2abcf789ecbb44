//! Address translation: TLBs of two levels, and page tables whose lines share the caches with data.
//!
//! A scaled run stands for a footprint `scale` times larger. Its TLBs have the real ones' entries over the
//! scale, and the caches hold the real ones' lines over it, so that hit ratios are those of that footprint.

use isotherm_core::PageSize;
use prefetch_index::prefetch_index;

use crate::lookup::{Directory, Lookup, Place};
use crate::profile::{CoreProfile, Profile, TlbProfile};
use crate::streamer::Triggers;
use crate::tiers::LINE_BYTES;

/// Memory that a run touches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footprint {
    /// Number of its pages; those of accesses are below it.
    pub pages: usize,
    /// Their size.
    pub page_size: PageSize,
    /// How many times larger the footprint is that the run stands for; at least 1.
    pub scale: f64,
}

/// Entries of a page table or directory: 512 of 8 bytes.
const TABLE_SHIFT: u32 = 9;
/// Entries in a cache line: 8 of 8 bytes.
const LINE_ENTRIES_SHIFT: u32 = 3;
/// Associativity of the walkers' cache of page directories: no manual gives it.
const DIRECTORY_WAYS: u32 = 4;
const NO_PAGE: u32 = u32::MAX;
const WHOLE: u32 = 1 << 16;

/// A set-associative array of entries by least recent use, whose size may be a fraction. `GROUP` entries are
/// compared at once: a set's, unless it has more ways.
#[derive(Debug, Clone)]
struct Level<const GROUP: usize> {
    /// Sets one after another, each a ring of `ways` entries, filled up to whole groups.
    groups: Vec<[u32; GROUP]>,
    /// Place of the latest use in each set; towards higher places, uses are older.
    latest: Vec<u32>,
    groups_of_set: usize,
    ways: usize,
    /// The page of the only entry of a level that has no more, as many of a scaled run: beside its share.
    only: u32,
    is_one_entry: bool,
    /// Share of a set's last way that exists, of [`WHOLE`]: so many of its hits count.
    last: u32,
    /// Sum of these shares that no hit has taken yet.
    due: u32,
}

impl<const GROUP: usize> Level<GROUP> {
    fn new(entries: f64, ways: u32, pages: usize) -> Self {
        // More entries than twice the pages are never used.
        let entries = entries.min(2.0 * pages.max(1) as f64);
        // About as many ways as the real one has: a search looks at each.
        let sets = (entries / f64::from(ways)).round().max(1.0);
        let of_set = entries / sets;
        let fraction = (of_set.fract() * f64::from(WHOLE)) as u32;
        let ways = (of_set as usize + usize::from(fraction > 0)).max(1);
        let groups_of_set = ways.div_ceil(GROUP);
        Self {
            only: NO_PAGE,
            is_one_entry: ways * sets as usize == 1,
            groups: vec![[NO_PAGE; GROUP]; groups_of_set * sets as usize],
            latest: vec![0; sets as usize],
            groups_of_set,
            ways,
            last: if fraction > 0 || of_set < 1.0 { fraction } else { WHOLE },
            due: 0,
        }
    }

    /// Returns the entries of the page's set, and which is its latest.
    #[inline]
    fn set(&mut self, page: u32) -> (&mut [[u32; GROUP]], &mut u32) {
        let spread = u64::from(page.wrapping_mul(0x9e37_79b1));
        let set = ((spread * self.latest.len() as u64) >> u32::BITS) as usize;
        let start = set * self.groups_of_set;
        (&mut self.groups[start..start + self.groups_of_set], &mut self.latest[set])
    }

    /// Returns whether the page was there, and makes it the latest.
    #[inline(always)]
    fn look_up(&mut self, page: u32) -> bool {
        if self.is_one_entry {
            return std::mem::replace(&mut self.only, page) == page && self.last_way_holds();
        }
        let ways = self.ways;
        let (groups, latest) = self.set(page);
        if holds(groups, page) {
            return self.renew(page);
        }
        // It takes the place of the oldest, which is before the latest.
        let before = if *latest == 0 { ways } else { *latest as usize } - 1;
        *latest = before as u32;
        groups.as_flattened_mut()[before] = page;
        false
    }

    /// Makes a page that is there the latest. Returns whether its way exists.
    #[inline(never)]
    fn renew(&mut self, page: u32) -> bool {
        let ways = self.ways;
        let (groups, latest) = self.set(page);
        let (newer, older) = groups.as_flattened_mut()[..ways].split_at_mut(*latest as usize);
        let mut moved = page;
        let found = older.iter_mut().chain(newer).position(|tag| {
            moved = std::mem::replace(tag, moved);
            moved == page
        });
        found.is_some_and(|age| age + 1 < ways) || self.last_way_holds()
    }

    fn last_way_holds(&mut self) -> bool {
        self.due += self.last;
        let holds = self.due >= WHOLE;
        self.due -= if holds { WHOLE } else { 0 };
        holds
    }
}

/// Returns whether a page is among the entries, without a branch for each.
#[inline]
fn holds<const GROUP: usize>(groups: &[[u32; GROUP]], page: u32) -> bool {
    let alike = |group: &[u32; GROUP]| group.iter().fold(0, |alike, &tag| alike | u32::from(tag == page));
    let Some((first, rest)) = groups.split_first() else { return false };
    rest.iter().fold(alike(first), |found, group| found | alike(group)) != 0
}

/// Translations that one thread's core holds.
#[derive(Debug, Clone)]
struct Tlb {
    last: u32,
    /// `None` where `last` is all that it holds.
    first: Option<Level<8>>,
    second: Level<16>,
    directories: Level<8>,
}

/// When each page-table line was last used, counted in lines that the last-level cache took in.
#[derive(Debug, Clone)]
struct Lines(Vec<u64>);

impl Lines {
    #[inline]
    /// 48 bits of time and 16 of the thread; 0 for a line not yet used.
    fn look_up(&mut self, index: usize, thread: u16, now: u64, caches: &Caches) -> Place {
        let used = std::mem::replace(&mut self.0[index], now << u16::BITS | u64::from(thread));
        let (age, by) = (now - (used >> u16::BITS), used as u16);
        // A line not yet used is as near: the kernel has just written it, handling the page's first fault.
        let fresh = used == 0;
        let near = fresh | ((by == thread) & (age < caches.second_level) & (age < caches.last_level));
        let place = if age < caches.last_level { Place::LastLevel } else { Place::Memory };
        if near { Place::SecondLevel } else { place }
    }
}

/// Sizes, in lines that the last-level cache takes in until it, or a second-level cache, has lost a line.
#[derive(Debug, Clone, Copy)]
struct Caches {
    second_level: u64,
    last_level: u64,
}

/// All threads' TLBs, and the page tables of the memory that they share.
///
/// Which look-ups hit depends on the order of accesses alone, not on their times: all runs of a stream on a
/// machine share them.
#[derive(Debug, Clone)]
pub struct Translator {
    tlbs: Vec<Tlb>,
    /// Lines of the tables whose entries map pages.
    leaves: Lines,
    /// Lines of the tables above, of each thread in turn: each core's second-level cache has its own copy.
    upper: Lines,
    upper_lines: usize,
    caches: Caches,
    /// Lines that the last-level cache has taken in.
    taken: u64,
    /// Whether a thread's streams use pages that its first level holds in the run that this one stands for.
    keeps_streams: bool,
}

impl Translator {
    /// Creates empty TLBs and caches for `threads` threads that use the memory of `footprint`.
    pub fn new(profile: &Profile, threads: usize, footprint: Footprint) -> Self {
        let Footprint { pages, page_size, scale } = footprint;
        let TlbProfile { first_ways, second_ways, .. } = profile.tlb;
        let (first, second) = match page_size {
            PageSize::Base => (profile.tlb.first_entries, profile.tlb.second_entries),
            PageSize::Huge => (profile.tlb.first_huge_entries, profile.tlb.second_huge_entries),
        };
        let entries = |entries: u32| f64::from(entries) / scale;
        let tlb = Tlb {
            last: NO_PAGE,
            first: Some(Level::new(entries(first), first_ways, pages)).filter(|first| !first.is_one_entry),
            second: Level::new(entries(second), second_ways, pages),
            directories: Level::new(entries(profile.tlb.directory_entries), DIRECTORY_WAYS, pages),
        };
        let CoreProfile { l2_size, .. } = profile.core;
        let lines = |bytes: u64| (bytes as f64 / LINE_BYTES as f64 / scale) as u64;
        let upper_lines = (pages >> (TABLE_SHIFT + LINE_ENTRIES_SHIFT)) + 1;
        Self {
            tlbs: vec![tlb; threads],
            leaves: Lines(vec![0; (pages >> LINE_ENTRIES_SHIFT) + 1]),
            upper: Lines(vec![0; threads * upper_lines]),
            upper_lines,
            // Threads fill their second-level caches at the same pace.
            caches: Caches {
                second_level: lines(l2_size.0 * threads as u64),
                last_level: lines(profile.llc_size.0),
            },
            taken: 1,
            keeps_streams: scale > 1.0,
        }
    }

    /// Looks up the page of a thread's next access; `triggers` tells whether it continues a stream within its
    /// page.
    #[inline(always)]
    pub fn look_up(&mut self, thread: u16, page: u32, triggers: Triggers) -> Lookup {
        self.taken += 1;
        let tlb = &mut self.tlbs[usize::from(thread)];
        if tlb.last == page || self.keeps_streams && triggers != Triggers::default() {
            return Lookup::FIRST;
        }
        tlb.last = page;
        if tlb.first.as_mut().is_some_and(|first| first.look_up(page)) {
            return Lookup::FIRST;
        }
        if tlb.second.look_up(page) {
            return Lookup::SECOND;
        }
        let directory_known = tlb.directories.look_up(page >> TABLE_SHIFT);
        self.walk(thread, page, directory_known)
    }

    #[inline(always)]
    fn walk(&mut self, thread: u16, page: u32, directory_known: bool) -> Lookup {
        let directory = if directory_known {
            Directory::Known
        } else {
            let line = page as usize >> (TABLE_SHIFT + LINE_ENTRIES_SHIFT);
            let index = usize::from(thread) * self.upper_lines + line;
            Directory::Unknown(self.upper.look_up(index, thread, self.taken, &self.caches))
        };
        let line = page as usize >> LINE_ENTRIES_SHIFT;
        let leaf = self.leaves.look_up(line, thread, self.taken, &self.caches);
        self.taken += u64::from(leaf == Place::Memory);
        Lookup::walk(directory, leaf)
    }

    /// Has the processor fetch what a walk of the page will read.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        prefetch_index(&self.leaves.0, page as usize >> LINE_ENTRIES_SHIFT);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Nanos;
    use proptest::prelude::*;

    use super::*;
    use crate::{CostModel, Miss, Walks};

    proptest! {
        #[test]
        fn a_set_holds_the_pages_used_last(
            ways in 1u32..20,
            uses in prop::collection::vec(0u32..30, 1..300),
        ) {
            let mut level = Level::<8>::new(f64::from(ways), ways, 1000);
            // The latest first.
            let mut naive = vec![NO_PAGE; ways as usize];
            for page in uses {
                let found = naive.iter().position(|&held| held == page);
                prop_assert_eq!(level.look_up(page), found.is_some());
                naive[..=found.unwrap_or(ways as usize - 1)].rotate_right(1);
                naive[0] = page;
            }
        }
    }

    fn machine() -> Profile {
        Profile::builtin("pact").expect("it comes with Isotherm")
    }

    fn memory(pages: usize, page_size: PageSize, scale: f64) -> Footprint {
        Footprint { pages, page_size, scale }
    }

    /// Returns pages at random.
    fn random(pages: usize) -> impl FnMut() -> u32 {
        let mut state = 7u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % pages as u64) as u32
        }
    }

    /// Loads random pages in the slow tier; returns the nanoseconds a load once the caches are in use, and
    /// the shares of loads that walk, and that read a page table from memory.
    fn loads(profile: &Profile, footprint: Footprint, dependence: u8) -> (f64, f64, f64) {
        const LOADS: u64 = 1_000_000;
        let mut model = CostModel::new(profile, 1, footprint).expect("a valid machine");
        let mut page = random(footprint.pages);
        let mut half = || {
            for _ in 0..LOADS {
                let miss =
                    Miss { thread: 0, instructions: 1, dependence, store: false, tier: 1, page: page() };
                model.miss(miss).expect("a tier");
            }
            model.settle();
            (model.now(), model.walks())
        };
        let ((began, before), (ended, after)) = (half(), half());
        let share = |after: u64, before: u64| (after - before) as f64 / LOADS as f64;
        let Nanos(time) = ended - began;
        let from_memory = share(after.from_memory, before.from_memory);
        (time as f64 / LOADS as f64, share(after.walks, before.walks), from_memory)
    }

    /// Returns the time of a walk by hand, over a footprint whose leaf tables take `lines`, and the share of
    /// walks that read memory.
    fn walk_of(profile: &Profile, lines: f64) -> (f64, f64) {
        let cycle = 1e9 / profile.clock.frequency as f64;
        let [inner, last] = [profile.core.l2_size, profile.llc_size].map(|size| size.0 as f64 / 64.0);
        // A line leaves the cache when as many others came: one with each load, one with each walk's miss.
        let kept = |cache: f64, missed: f64| 1.0 - (-cache / (1.0 + missed) / lines).exp();
        let missed = (0..100).fold(1.0, |missed, _| 1.0 - kept(last, missed));
        let (second, nearest) = (f64::from(profile.core.l2_latency) * cycle, kept(inner, missed));
        let leaf = missed * profile.tiers[0].latency.0 as f64
            + (1.0 - missed - nearest) * profile.costs.cached_touch.0 as f64
            + nearest * second;
        (f64::from(profile.tlb.second_latency) * cycle + second + leaf, missed)
    }

    fn close(measured: f64, expected: f64, tolerance: f64) {
        assert!((measured / expected - 1.0).abs() <= tolerance, "{measured} against {expected}");
    }

    const PAGES: usize = 1 << 20;

    #[test]
    fn a_chase_beyond_the_tlb_pays_a_walk_each() {
        let profile = machine();
        let (walk, missed) = walk_of(&profile, (PAGES / 8) as f64);
        let (time, walks, from_memory) = loads(&profile, memory(PAGES, PageSize::Base, 1.0), 1);
        close(walks, 1.0 - 1536.0 / PAGES as f64, 0.001);
        close(from_memory, missed, 0.02);
        close(time, profile.tiers[1].latency.0 as f64 + walk, 0.02);
    }

    #[test]
    fn independent_misses_wait_for_the_walkers() {
        let profile = machine();
        let (walk, _) = walk_of(&profile, (PAGES / 8) as f64);
        let (time, ..) = loads(&profile, memory(PAGES, PageSize::Base, 1.0), 0);
        close(time, walk / f64::from(profile.tlb.walkers), 0.03);
        assert!(time > 1.5 * profile.tiers[1].latency.0 as f64 / f64::from(profile.core.miss_registers));
    }

    #[test]
    fn huge_pages_take_the_walks_away() {
        let (base, ..) = loads(&machine(), memory(PAGES, PageSize::Base, 1.0), 0);
        let (huge, walks, from_memory) = loads(&machine(), memory(PAGES / 512, PageSize::Huge, 1.0), 0);
        close(walks, 1.0 - 1536.0 / (PAGES / 512) as f64, 0.05);
        assert_eq!(from_memory, 0.0, "256 lines of tables");
        assert!(huge < 0.7 * base, "{huge} against {base} ns a load");
    }

    #[test]
    fn a_scaled_run_walks_as_the_footprint_that_it_stands_for() {
        for (pages, page_size, dependence) in
            [(PAGES, PageSize::Base, 1), (PAGES, PageSize::Base, 0), (PAGES / 16, PageSize::Huge, 1)]
        {
            let whole = loads(&machine(), memory(pages, page_size, 1.0), dependence);
            let scaled = loads(&machine(), memory(pages / 512, page_size, 512.0), dependence);
            close(scaled.0, whole.0, 0.03);
            assert!((scaled.1 - whole.1).abs() < 0.02, "{scaled:?} against {whole:?}");
            assert!((scaled.2 - whole.2).abs() < 0.02, "{scaled:?} against {whole:?}");
        }
    }

    #[test]
    fn what_fits_the_tlb_walks_once() {
        let mut model = CostModel::new(&machine(), 1, memory(1000, PageSize::Base, 1.0)).expect("valid");
        for page in (0..1000).cycle().take(10_000) {
            model.miss(Miss { thread: 0, instructions: 1, dependence: 1, store: false, tier: 0, page });
        }
        assert_eq!(model.walks(), Walks { walks: 1000, from_memory: 0 });
    }

    #[test]
    fn a_level_holds_its_entries_and_fractions_of_one() {
        const PAGES: usize = 4000;
        for entries in [0.4, 1.0, 5.7, 64.0, 1536.0 / 7.0, 1536.0] {
            let (mut level, mut page) = (Level::<16>::new(entries, 12, PAGES), random(PAGES));
            let hits = (0..2_000_000).filter(|_| level.look_up(page())).count();
            close(hits as f64 / 2e6, entries / PAGES as f64, 0.05);
        }
    }

    /// Guards against a set without a way, which made a run at an extreme scale panic.
    #[test]
    fn a_level_of_less_than_any_share_of_an_entry_holds_nothing() {
        let mut level = Level::<16>::new(1e-6, 12, 1);
        assert!((0..100).all(|_| !level.look_up(0)));
    }

    #[test]
    fn a_stream_keeps_its_page_however_small_the_scaled_tlb() {
        let walks = |scale| {
            let mut translator = Translator::new(&machine(), 1, memory(64, PageSize::Base, scale));
            // Eight streams in turn, 64 lines of each page: the third line on comes as part of a stream.
            let lines = (0..64).flat_map(|line| (0..8).map(move |page| (line, page)));
            lines
                .filter(|&(line, page)| {
                    let triggers = Triggers { stream: u8::from(line >= 2), pair: 0 };
                    translator.look_up(0, page, triggers).walks()
                })
                .count()
        };
        assert_eq!((walks(1.0), walks(1e6)), (8, 16));
    }

    #[test]
    fn a_table_that_memory_must_give_takes_bandwidth_of_the_fast_tier() {
        let mut profile = machine();
        profile.set("llc.size", "4KiB").expect("in range");
        let (pages, lines) = (1 << 14, 1 << 11);
        assert!(lines > 30 * profile.llc_size.0 / LINE_BYTES);
        let mut model =
            CostModel::new(&profile, 1, memory(pages, PageSize::Base, 1.0)).expect("a valid machine");
        let mut page = random(pages);
        for _ in 0..100_000 {
            model.miss(Miss {
                thread: 0,
                instructions: 1,
                dependence: 1,
                store: false,
                tier: 1,
                page: page(),
            });
        }
        model.settle();
        let mut counters = isotherm_core::Counters::default();
        model.counters(&mut counters);
        assert!(model.walks().from_memory > 80_000);
        assert_eq!(counters.tiers[0].bytes_read.0, model.walks().from_memory * LINE_BYTES);
        assert_eq!(counters.tiers[0].load_misses, 0, "a PMU counts no load of the program");
    }
}
