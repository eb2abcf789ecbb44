//! Per-page access criticality (PAC): the processor's stall time for each page (PACT, sections 4.2, 4.3).
//!
//! Counters give a tier's misses, requests in flight and busy cycles, samples give pages; neither gives a
//! page's stall. Over a window `MLP = T1 / T2`, and stalls are `S = k x misses / MLP` (Equation 1,
//! [`Window::stall`]). Each sampled page gets a share of `S` proportional to its samples (Algorithm 1),
//! summed up in [`PacTable`]: an open-addressing hash table of cache lines with five entries each, in shards
//! that grow one at a time by a quarter, so that it takes up to 23 bytes a tracked page, and no pause exceeds
//! one shard's growth.

use std::hint::black_box;

use crate::hash::{mix, reduce, remix};

/// Entries of a cache line.
const LANES: usize = 5;
/// Lines of a new shard.
const SMALLEST: usize = 4;
/// Largest load of a shard, in percent.
const FULL: usize = 70;
/// Size of a grown shard, in percent of the old one.
const GROWTH: usize = 125;
/// Approximate pages per shard when every page is tracked.
const SHARD: usize = 32_768;
/// Entries searched for a page to displace when the table is full.
const NEIGHBOURS: usize = 16;
/// Updates whose slots are read ahead together.
const CHUNK: usize = 64;
/// Page number of an empty slot.
const EMPTY: u32 = u32::MAX;

/// A tier's counters of loads over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Loads that missed the last-level cache and were served by the tier.
    pub misses: u64,
    /// Requests in flight integrated over time (T1).
    pub occupancy: u64,
    /// Time with at least one request in flight, in the same unit (T2).
    pub busy: u64,
}

impl Window {
    /// Returns the mean number of requests in flight while there were any, clamped to 1 to `most`, or `None`
    /// if the counters show no activity.
    pub fn parallelism(&self, most: f64) -> Option<f64> {
        let measured = self.occupancy > 0 && self.busy > 0;
        measured.then(|| (self.occupancy as f64 / self.busy as f64).clamp(1.0, most))
    }

    /// Returns the stalls by Equation 1, in the unit of `k`, the cost of one miss that nothing overlaps;
    /// `None` if there were misses but no occupancy: some counters are missing.
    pub fn stall(&self, k: f64, most: f64) -> Option<f64> {
        match self.misses {
            0 => Some(0.0),
            misses => self.parallelism(most).map(|parallelism| k * misses as f64 / parallelism),
        }
    }
}

/// Cooling of a page's value when it is sampled again after a long time (section 4.3.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cooling {
    /// Factor that is kept of the value: 1 switches cooling off, 0.5 halves, 0 resets.
    pub keep: f32,
    /// Samples of all pages since the page's last one, above which the value is cooled.
    pub distance: u32,
}

impl Cooling {
    /// No cooling: pure accumulation.
    pub const OFF: Self = Self { keep: 1.0, distance: u32::MAX };
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    page: u32,
    /// The table's sample count when the page was last sampled.
    seen: u32,
    value: f32,
}

/// A cache line of entries, from which a page's search begins: most searches end in their first line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    pages: [u32; LANES],
    seen: [u32; LANES],
    values: [f32; LANES],
}

const VACANT: Line = Line { pages: [EMPTY; LANES], seen: [0; LANES], values: [0.0; LANES] };

/// An entry's line and its place there.
type Slot = (usize, usize);

/// Part of the table. A page's hash chooses the shard and its [`remix`] the line, which are thus independent.
#[derive(Debug, Clone, Default)]
struct Shard {
    lines: Box<[Line]>,
    used: usize,
}

impl Shard {
    /// Returns the slot of the page's entry, or the empty slot where it belongs.
    #[inline]
    fn find(&self, page: u32, hash: u64) -> Slot {
        self.find_from(self.home(hash), page)
    }

    #[inline]
    fn find_from(&self, mut line: usize, page: u32) -> Slot {
        loop {
            // Without a branch for each lane, the processor runs on to the next searches' lines.
            let lanes = self.lines[line].pages.iter().enumerate();
            let found = lanes.fold(0, |found, (lane, &other)| {
                found | (u32::from(other == page) | u32::from(other == EMPTY)) << lane
            });
            if found != 0 {
                return (line, found.trailing_zeros() as usize % LANES);
            }
            line = self.next_line(line);
        }
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        reduce(hash, self.lines.len() as u64)
    }

    #[inline]
    fn next_line(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }

    fn next(&self, (line, lane): Slot) -> Slot {
        if lane + 1 == LANES { (self.next_line(line), 0) } else { (line, lane + 1) }
    }

    fn slots(&self) -> usize {
        self.lines.len() * LANES
    }

    fn get(&self, (line, lane): Slot) -> Entry {
        let Line { pages, seen, values } = &self.lines[line];
        Entry { page: pages[lane], seen: seen[lane], value: values[lane] }
    }

    fn set(&mut self, (line, lane): Slot, entry: Entry) {
        let line = &mut self.lines[line];
        (line.pages[lane], line.seen[lane], line.values[lane]) = (entry.page, entry.seen, entry.value);
    }

    fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let slots = (0..self.lines.len()).flat_map(|line| (0..LANES).map(move |lane| (line, lane)));
        slots.map(|slot| self.get(slot)).filter(|entry| entry.page != EMPTY)
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.lines.len() * GROWTH / 100).max(SMALLEST);
        let new = vec![VACANT; size].into_boxed_slice();
        let old = Self { lines: std::mem::replace(&mut self.lines, new), used: self.used };
        for entry in old.iter() {
            self.set(self.find(entry.page, remix(mix(entry.page))), entry);
        }
    }

    /// Empties a slot and moves up the entries that it had displaced.
    fn vacate(&mut self, mut hole: Slot) {
        let length = self.lines.len();
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let entry = self.get(slot);
            if entry.page == EMPTY || slot == hole {
                break;
            }
            // An entry may fill the hole unless its home lies behind the hole's line.
            let home = self.home(remix(mix(entry.page)));
            if (slot.0 + length - home) % length >= (slot.0 + length - hole.0) % length {
                self.set(hole, entry);
                hole = slot;
            }
        }
        self.set(hole, Entry { page: EMPTY, seen: 0, value: 0.0 });
        self.used -= 1;
    }

    /// Returns the slot of the least value among the entries near `line`.
    fn least_near(&self, line: usize) -> Slot {
        let mut slot = (line, 0);
        let (mut least, mut looked) = (None, 0);
        for _ in 0..self.slots() {
            let entry = self.get(slot);
            if entry.page != EMPTY {
                if least.is_none_or(|(_, smallest)| entry.value < smallest) {
                    least = Some((slot, entry.value));
                }
                looked += 1;
                if looked == NEIGHBOURS {
                    break;
                }
            }
            slot = self.next(slot);
        }
        least.map_or(slot, |(slot, _)| slot)
    }
}

/// Where the search for a page begins.
#[derive(Debug, Clone, Copy)]
struct Place {
    shard: u32,
    line: u32,
}

/// Accumulated value of each sampled page.
#[derive(Debug, Clone)]
pub struct PacTable {
    shards: Box<[Shard]>,
    /// Most pages per shard.
    bound: usize,
    cooling: Cooling,
    tracked: usize,
    displaced: u64,
    samples: u32,
    places: Vec<Place>,
    /// Whether a shard has grown since the last places were found.
    grown: bool,
}

impl PacTable {
    /// Creates an empty table for samples of `pages` pages that tracks at most about `most`: when a shard is
    /// full, a new page displaces one of low value ([`Self::displaced`]).
    pub fn new(pages: usize, most: usize, cooling: Cooling) -> Self {
        let count = (pages.min(most) / SHARD).next_power_of_two();
        Self {
            shards: vec![Shard::default(); count].into_boxed_slice(),
            bound: most.div_ceil(count).max(1),
            cooling,
            tracked: 0,
            displaced: 0,
            samples: 0,
            places: Vec::with_capacity(CHUNK),
            grown: false,
        }
    }

    /// Adds to pages' values after cooling them if due, and writes the new ones to `values`; cache misses
    /// within the batch overlap.
    pub fn add_batch(&mut self, updates: &[(u32, f32)], values: &mut Vec<f32>) {
        values.clear();
        let mut places = std::mem::take(&mut self.places);
        for chunk in updates.chunks(CHUNK) {
            places.clear();
            places.extend(chunk.iter().map(|&(page, _)| self.place(page)));
            // A loop of reads alone has the most of them in flight: a prefetch without `unsafe`.
            black_box(places.iter().fold(0, |sum, &place| sum ^ self.peek(place)));
            self.grown = false;
            values.extend(chunk.iter().zip(&places).map(|(&(page, amount), &place)| {
                let place = if self.grown { self.place(page) } else { place };
                self.add_at(page, amount, place)
            }));
        }
        self.places = places;
    }

    /// Returns where the search for a page begins.
    #[inline]
    fn place(&self, page: u32) -> Place {
        let hash = mix(page);
        let shard = self.shard(hash);
        Place { shard: shard as u32, line: self.shards[shard].home(remix(hash)) as u32 }
    }

    #[inline]
    fn peek(&self, place: Place) -> u32 {
        let line = self.shards[place.shard as usize].lines.get(place.line as usize);
        line.map_or(0, |line| line.pages[0])
    }

    #[inline]
    fn shard(&self, hash: u64) -> usize {
        reduce(hash, self.shards.len() as u64)
    }

    #[inline]
    fn add_at(&mut self, page: u32, amount: f32, place: Place) -> f32 {
        self.samples = self.samples.wrapping_add(1);
        let shard = &mut self.shards[place.shard as usize];
        if !shard.lines.is_empty() {
            let (line, lane) = shard.find_from(place.line as usize, page);
            let line = &mut shard.lines[line];
            if line.pages[lane] == page {
                let distance = self.samples.wrapping_sub(line.seen[lane]);
                let kept = if distance > self.cooling.distance { self.cooling.keep } else { 1.0 };
                line.seen[lane] = self.samples;
                line.values[lane] = line.values[lane] * kept + amount;
                return line.values[lane];
            }
        }
        self.enter(page, amount);
        amount
    }

    #[cold]
    fn enter(&mut self, page: u32, amount: f32) {
        let hash = mix(page);
        let index = self.shard(hash);
        let shard = &mut self.shards[index];
        if shard.used == self.bound {
            let victim = shard.least_near(shard.home(remix(hash)));
            shard.vacate(victim);
            self.tracked -= 1;
            self.displaced += 1;
        } else if (shard.used + 1) * 100 > shard.slots() * FULL {
            shard.grow();
            self.grown = true;
        }
        shard.set(shard.find(page, remix(hash)), Entry { page, seen: self.samples, value: amount });
        shard.used += 1;
        self.tracked += 1;
    }

    /// Returns the page's value, 0 if it is not tracked.
    pub fn get(&self, page: u32) -> f32 {
        let hash = mix(page);
        let shard = &self.shards[self.shard(hash)];
        // A vacant slot has the value 0.
        if shard.lines.is_empty() { 0.0 } else { shard.get(shard.find(page, remix(hash))).value }
    }

    /// Forgets a page.
    pub fn remove(&mut self, page: u32) {
        let hash = mix(page);
        let index = self.shard(hash);
        let shard = &mut self.shards[index];
        if shard.lines.is_empty() {
            return;
        }
        let slot = shard.find(page, remix(hash));
        if shard.get(slot).page == page {
            shard.vacate(slot);
            self.tracked -= 1;
        }
    }

    /// Returns every tracked page with its value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.shards.iter().flat_map(Shard::iter).map(|entry| (entry.page, entry.value))
    }

    /// Returns the number of tracked pages.
    pub fn len(&self) -> usize {
        self.tracked
    }

    /// Returns whether no page is tracked.
    pub fn is_empty(&self) -> bool {
        self.tracked == 0
    }

    /// Returns the number of pages displaced because the table was full.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Returns the table's size in bytes.
    pub fn bytes(&self) -> usize {
        let lines: usize = self.shards.iter().map(|shard| size_of_val(&*shard.lines)).sum();
        lines + size_of_val(&*self.shards) + self.places.capacity() * size_of::<Place>()
    }
}

#[cfg(test)]
mod tests;
