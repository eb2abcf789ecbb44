//! Address translation: TLBs of two levels, and page tables whose lines share the caches with data.
//!
//! A scaled run stands for a footprint `scale` times larger. Its TLBs have the real ones' entries over the
//! scale, and the caches hold the real ones' lines over it, so that hit ratios are those of that footprint.

use isotherm_core::PageSize;

use crate::profile::{CoreProfile, Profile, TlbProfile};
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

/// Counts of page walks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walks {
    /// Accesses whose page was in no TLB.
    pub walks: u64,
    /// Those of them whose page-table line was in no cache.
    pub from_memory: u64,
}

/// Time that an access waits for its page's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Translation {
    /// Picoseconds, without the wait for a walker.
    pub latency: u64,
    /// Whether a walker is busy for that time.
    pub walks: bool,
    /// Whether a page-table line is read from memory.
    pub from_memory: bool,
}

/// Entries of a page table or directory: 512 of 8 bytes.
const TABLE_SHIFT: u32 = 9;
/// Entries in a cache line: 8 of 8 bytes.
const LINE_ENTRIES_SHIFT: u32 = 3;
/// Associativity of the walkers' cache of page directories: no manual gives it.
const DIRECTORY_WAYS: u32 = 4;
const NO_PAGE: u32 = u32::MAX;
const WHOLE: u32 = 1 << 16;

/// A set-associative array of entries by least recent use, whose size may be a fraction.
#[derive(Debug, Clone)]
struct Level {
    /// Sets one after another, each the latest use first.
    tags: Vec<u32>,
    sets: u32,
    ways: usize,
    /// Share of a set's last way that exists, of [`WHOLE`]: so many of its hits count.
    last: u32,
    /// Sum of these shares that no hit has taken yet.
    due: u32,
}

impl Level {
    fn new(entries: f64, ways: u32, pages: usize) -> Self {
        // More entries than twice the pages are never used.
        let entries = entries.min(2.0 * pages.max(1) as f64);
        let sets = (entries / f64::from(ways)).floor().max(1.0);
        let of_set = entries / sets;
        let fraction = (of_set.fract() * f64::from(WHOLE)) as u32;
        let ways = of_set as usize + usize::from(fraction > 0);
        Self {
            tags: vec![NO_PAGE; ways * sets as usize],
            sets: sets as u32,
            ways,
            last: if fraction > 0 { fraction } else { WHOLE },
            due: 0,
        }
    }

    #[inline]
    fn set(&mut self, page: u32) -> &mut [u32] {
        let spread = u64::from(page.wrapping_mul(0x9e37_79b1));
        let set = (spread * u64::from(self.sets)) >> u32::BITS;
        let start = set as usize * self.ways;
        &mut self.tags[start..start + self.ways]
    }

    /// Returns whether the page was there, and makes it the latest.
    #[inline]
    fn look_up(&mut self, page: u32) -> bool {
        let ways = self.ways;
        let mut moved = page;
        for (way, tag) in self.set(page).iter_mut().enumerate() {
            let found = std::mem::replace(tag, moved);
            if found == page {
                return way + 1 < ways || self.last_way_holds();
            }
            moved = found;
        }
        false
    }

    #[inline]
    fn last_way_holds(&mut self) -> bool {
        self.due += self.last;
        let holds = self.due >= WHOLE;
        self.due -= if holds { WHOLE } else { 0 };
        holds
    }

    fn flush(&mut self, page: u32) {
        self.set(page).iter_mut().filter(|tag| **tag == page).for_each(|tag| *tag = NO_PAGE);
    }

    fn flush_all(&mut self) {
        self.tags.fill(NO_PAGE);
    }
}

/// Translations that one thread's core holds.
#[derive(Debug, Clone)]
struct Tlb {
    last: u32,
    first: Level,
    second: Level,
    directories: Level,
}

/// When each page-table line was last used, counted in lines that the last-level cache took in.
#[derive(Debug, Clone)]
struct Lines(Vec<u64>);

/// The nearest place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    SecondLevel,
    LastLevel,
    Memory,
}

impl Lines {
    /// 48 bits of time and 16 of the thread; 0 for a line not yet used.
    fn look_up(&mut self, index: usize, thread: u16, now: u64, caches: &Caches) -> Place {
        let used = std::mem::replace(&mut self.0[index], now << u16::BITS | u64::from(thread));
        let (age, by) = (now - (used >> u16::BITS), used as u16);
        if used == 0 {
            // The kernel has just written it: it has handled the page's first fault.
            Place::SecondLevel
        } else if age >= caches.last_level {
            Place::Memory
        } else if by == thread && age < caches.second_level {
            Place::SecondLevel
        } else {
            Place::LastLevel
        }
    }
}

/// Sizes, in lines that the last-level cache takes in until it, or a second-level cache, has lost a line.
#[derive(Debug, Clone, Copy)]
struct Caches {
    second_level: u64,
    last_level: u64,
}

/// All threads' TLBs, and the page tables of the memory that they share.
#[derive(Debug, Clone)]
pub(crate) struct Translator {
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
    second_latency: u64,
    second_level: u64,
    last_level: u64,
    counts: Walks,
}

impl Translator {
    pub(crate) fn new(profile: &Profile, threads: usize, footprint: Footprint) -> Self {
        let Footprint { pages, page_size, scale } = footprint;
        let TlbProfile { first_ways, second_ways, .. } = profile.tlb;
        let (first, second) = match page_size {
            PageSize::Base => (profile.tlb.first_entries, profile.tlb.second_entries),
            PageSize::Huge => (profile.tlb.first_huge_entries, profile.tlb.second_huge_entries),
        };
        let level = |entries: u32, ways: u32| Level::new(f64::from(entries) / scale, ways, pages);
        let tlb = Tlb {
            last: NO_PAGE,
            first: level(first, first_ways),
            second: level(second, second_ways),
            directories: level(profile.tlb.directory_entries, DIRECTORY_WAYS),
        };
        let CoreProfile { l2_size, l2_latency, .. } = profile.core;
        let lines = |bytes: u64| (bytes as f64 / LINE_BYTES as f64 / scale) as u64;
        let cycles = |cycles: u32| (f64::from(cycles) * 1e12 / profile.clock.frequency.max(1) as f64) as u64;
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
            second_latency: cycles(profile.tlb.second_latency),
            second_level: cycles(l2_latency),
            last_level: profile.costs.cached_touch.0 * 1000,
            counts: Walks::default(),
        }
    }

    pub(crate) fn counts(&self) -> Walks {
        self.counts
    }

    /// Translates an access of a thread. `streams` tells that it continues a stream within its page, and
    /// `memory` is the latency of the tier that holds the page tables.
    #[inline]
    pub(crate) fn translate(&mut self, thread: u16, page: u32, streams: bool, memory: u64) -> Translation {
        self.taken += 1;
        let tlb = &mut self.tlbs[usize::from(thread)];
        if tlb.last == page || streams && self.keeps_streams {
            return Translation::default();
        }
        tlb.last = page;
        if tlb.first.look_up(page) {
            return Translation::default();
        }
        if tlb.second.look_up(page) {
            return Translation { latency: self.second_latency, ..Translation::default() };
        }
        self.walk(thread, page, memory)
    }

    fn walk(&mut self, thread: u16, page: u32, memory: u64) -> Translation {
        self.counts.walks += 1;
        let mut latency = self.second_latency;
        if !self.tlbs[usize::from(thread)].directories.look_up(page >> TABLE_SHIFT) {
            let line = page as usize >> (TABLE_SHIFT + LINE_ENTRIES_SHIFT);
            let index = usize::from(thread) * self.upper_lines + line;
            latency += match self.upper.look_up(index, thread, self.taken, &self.caches) {
                Place::SecondLevel => self.second_level,
                // The directories of a terabyte take 4 MiB, and every thread's walks use them.
                Place::LastLevel | Place::Memory => self.last_level,
            };
        }
        let line = page as usize >> LINE_ENTRIES_SHIFT;
        let place = self.leaves.look_up(line, thread, self.taken, &self.caches);
        latency += match place {
            Place::SecondLevel => self.second_level,
            Place::LastLevel => self.last_level,
            Place::Memory => memory,
        };
        let from_memory = place == Place::Memory;
        self.taken += u64::from(from_memory);
        self.counts.from_memory += u64::from(from_memory);
        Translation { latency, walks: true, from_memory }
    }

    /// Drops a page's translation everywhere, as a shootdown does. With it go the cached directories.
    pub(crate) fn flush(&mut self, page: u32) {
        for tlb in &mut self.tlbs {
            tlb.first.flush(page);
            tlb.second.flush(page);
            tlb.directories.flush_all();
            tlb.last = if tlb.last == page { NO_PAGE } else { tlb.last };
        }
    }

    /// Drops all translations.
    pub(crate) fn flush_all(&mut self) {
        for tlb in &mut self.tlbs {
            tlb.first.flush_all();
            tlb.second.flush_all();
            tlb.directories.flush_all();
            tlb.last = NO_PAGE;
        }
    }
}
