//! Per-page access criticality (PAC): how long the processor stood still for each page (PACT, sections 4.2 and 4.3).
//!
//! Problem: counters tell misses, requests in flight and busy cycles of a whole tier; samples tell pages. A page's stall is
//! in neither.
//!
//! Approach: over a window `MLP = T1 / T2`, stalls `S = k x misses / MLP` (Equation 1, [`Window::stall`]); each sampled page gets
//! its part of `S` by its part of the samples (Algorithm 1), which [`PacTable`] sums up. The table is an open-addressing
//! hash table of 12-byte entries, in shards that grow one by one by a quarter, so that it follows the pages tracked: at most
//! 20 bytes each, and no pause longer than one shard's.

use std::hint::black_box;

use crate::hash::{mix, reduce, remix};

/// The slots of an empty shard.
const SMALLEST: usize = 16;
/// A shard is at most so full, in percent.
const FULL: usize = 80;
/// By how much it grows, in percent.
const GROWTH: usize = 125;
/// Pages that share a shard when every page is tracked, about.
const SHARD: usize = 32_768;
/// Slots looked at for the page that gives way at the bound.
const NEIGHBOURS: usize = 16;
/// Updates whose slots are read ahead at once.
const CHUNK: usize = 64;
/// No page.
const EMPTY: u32 = u32::MAX;

/// What a tier's counters counted in a window, of loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Loads that missed the last-level cache and were served by the tier.
    pub misses: u64,
    /// Requests in flight, integrated over time (T1).
    pub occupancy: u64,
    /// Time with a request in flight, in the same unit (T2).
    pub busy: u64,
}

impl Window {
    /// Requests in flight while there were any, between 1 and `most`; `None` where the queue was never seen at work.
    pub fn parallelism(&self, most: f64) -> Option<f64> {
        let measured = self.occupancy > 0 && self.busy > 0;
        measured.then(|| (self.occupancy as f64 / self.busy as f64).clamp(1.0, most))
    }

    /// The stalls by Equation 1, in the unit of `k`, which is what one miss costs that nothing overlaps.
    ///
    /// `None` where there were misses but no occupancy: a part of the counters is missing.
    pub fn stall(&self, k: f64, most: f64) -> Option<f64> {
        match self.misses {
            0 => Some(0.0),
            misses => self.parallelism(most).map(|parallelism| k * misses as f64 / parallelism),
        }
    }
}

/// How values of pages that were not sampled for long are cooled when they are sampled again (section 4.3.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cooling {
    /// What is left of the value: 1 switches cooling off, 0.5 halves, 0 resets.
    pub keep: f32,
    /// Samples of all pages since the page's own, beyond which it is cooled.
    pub distance: u32,
}

impl Cooling {
    /// Pure accumulation.
    pub const OFF: Self = Self { keep: 1.0, distance: u32::MAX };
}

/// One page.
#[derive(Debug, Clone, Copy)]
struct Entry {
    page: u32,
    /// The table's sample count when the page was last sampled.
    seen: u32,
    value: f32,
}

const VACANT: Entry = Entry { page: EMPTY, seen: 0, value: 0.0 };

/// A part of the table.
#[derive(Debug, Clone, Default)]
struct Shard {
    entries: Box<[Entry]>,
    used: usize,
}

impl Shard {
    /// Where the page's entry is, or the empty slot where it belongs.
    #[inline]
    fn find(&self, page: u32, hash: u64) -> usize {
        let mut slot = self.home(hash);
        while self.entries[slot].page != page && self.entries[slot].page != EMPTY {
            slot = self.next(slot);
        }
        slot
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        reduce(hash, self.entries.len() as u64)
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.entries.len() { 0 } else { slot + 1 }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.entries.len() * GROWTH / 100).max(SMALLEST);
        let old = std::mem::replace(&mut self.entries, vec![VACANT; size].into_boxed_slice());
        for entry in old.iter().filter(|entry| entry.page != EMPTY) {
            let slot = self.find(entry.page, within(mix(entry.page)));
            self.entries[slot] = *entry;
        }
    }

    /// Empties a slot and moves up what was behind it for its sake.
    fn vacate(&mut self, mut hole: usize) {
        let length = self.entries.len();
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let page = self.entries[slot].page;
            if page == EMPTY {
                break;
            }
            // It may fill the hole if its home does not lie behind it.
            let home = self.home(within(mix(page)));
            if (slot + length - home) % length >= (slot + length - hole) % length {
                self.entries[hole] = self.entries[slot];
                hole = slot;
            }
        }
        self.entries[hole] = VACANT;
        self.used -= 1;
    }

    /// The least of the entries near a slot.
    fn least_near(&self, mut slot: usize) -> usize {
        let (mut least, mut looked) = (None, 0);
        for _ in 0..self.entries.len() {
            if self.entries[slot].page != EMPTY {
                let value = self.entries[slot].value;
                if least.is_none_or(|(_, smallest)| value < smallest) {
                    least = Some((slot, value));
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

/// The bits that place a page in its shard: independent of those that choose the shard.
#[inline]
fn within(hash: u64) -> u64 {
    remix(hash)
}

/// The summed-up value of each page that was sampled.
#[derive(Debug, Clone)]
pub struct PacTable {
    shards: Box<[Shard]>,
    /// Pages that a shard may hold.
    bound: usize,
    cooling: Cooling,
    tracked: usize,
    displaced: u64,
    samples: u32,
    hashes: Vec<u64>,
}

impl PacTable {
    /// An empty table for samples of at most `pages` pages, of which it tracks at most `most` at a time (about: the bound is
    /// that of each shard). Where it is full, a page that is not tracked displaces one of low value; [`Self::displaced`] counts.
    pub fn new(pages: usize, most: usize, cooling: Cooling) -> Self {
        let count = (pages.min(most) / SHARD).next_power_of_two();
        let shards = vec![Shard::default(); count].into_boxed_slice();
        Self {
            shards,
            bound: most.div_ceil(count).max(1),
            cooling,
            tracked: 0,
            displaced: 0,
            samples: 0,
            hashes: Vec::with_capacity(CHUNK),
        }
    }

    /// Adds to a page's value, which is cooled first if it is due; returns the new value.
    pub fn add(&mut self, page: u32, amount: f32) -> f32 {
        self.add_hashed(page, amount, mix(page))
    }

    /// Adds to many pages' values; the cache misses of neighbours in the batch overlap. New values go to `values`.
    pub fn add_batch(&mut self, updates: &[(u32, f32)], values: &mut Vec<f32>) {
        values.clear();
        let mut hashes = std::mem::take(&mut self.hashes);
        for chunk in updates.chunks(CHUNK) {
            hashes.clear();
            hashes.extend(chunk.iter().map(|&(page, _)| mix(page)));
            black_box(hashes.iter().fold(0, |sum, &hash| sum ^ self.peek(hash)));
            let added = chunk.iter().zip(&hashes);
            values.extend(added.map(|(&(page, amount), &hash)| self.add_hashed(page, amount, hash)));
        }
        self.hashes = hashes;
    }

    /// A read of a page's home that nothing waits for: a prefetch without `unsafe`.
    #[inline]
    fn peek(&self, hash: u64) -> u32 {
        let shard = &self.shards[self.shard(hash)];
        if shard.entries.is_empty() { 0 } else { shard.entries[shard.home(within(hash))].page }
    }

    #[inline]
    fn shard(&self, hash: u64) -> usize {
        reduce(hash, self.shards.len() as u64)
    }

    #[inline]
    fn add_hashed(&mut self, page: u32, amount: f32, hash: u64) -> f32 {
        self.samples = self.samples.wrapping_add(1);
        let index = self.shard(hash);
        let shard = &mut self.shards[index];
        if !shard.entries.is_empty() {
            let slot = shard.find(page, within(hash));
            let entry = &mut shard.entries[slot];
            if entry.page == page {
                let distance = self.samples.wrapping_sub(entry.seen);
                let kept = if distance > self.cooling.distance { self.cooling.keep } else { 1.0 };
                (entry.value, entry.seen) = (entry.value * kept + amount, self.samples);
                return entry.value;
            }
        }
        self.enter(index, page, amount, hash);
        amount
    }

    /// Enters a page that is not tracked.
    #[cold]
    fn enter(&mut self, index: usize, page: u32, amount: f32, hash: u64) {
        let shard = &mut self.shards[index];
        if shard.used == self.bound {
            let victim = shard.least_near(shard.home(within(hash)));
            shard.vacate(victim);
            self.tracked -= 1;
            self.displaced += 1;
        } else if (shard.used + 1) * 100 > shard.entries.len() * FULL {
            shard.grow();
        }
        let slot = shard.find(page, within(hash));
        shard.entries[slot] = Entry { page, seen: self.samples, value: amount };
        shard.used += 1;
        self.tracked += 1;
    }

    /// The page's value; 0 if it is not tracked.
    pub fn get(&self, page: u32) -> f32 {
        self.entry(page).map_or(0.0, |entry| entry.value)
    }

    fn entry(&self, page: u32) -> Option<Entry> {
        let hash = mix(page);
        let shard = &self.shards[self.shard(hash)];
        if shard.entries.is_empty() {
            return None;
        }
        let entry = shard.entries[shard.find(page, within(hash))];
        (entry.page == page).then_some(entry)
    }

    /// Forgets a page.
    pub fn remove(&mut self, page: u32) {
        let hash = mix(page);
        let index = self.shard(hash);
        let shard = &mut self.shards[index];
        if shard.entries.is_empty() {
            return;
        }
        let slot = shard.find(page, within(hash));
        if shard.entries[slot].page == page {
            shard.vacate(slot);
            self.tracked -= 1;
        }
    }

    /// Every tracked page and its value, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let entries = self.shards.iter().flat_map(|shard| shard.entries.iter());
        entries.filter(|entry| entry.page != EMPTY).map(|entry| (entry.page, entry.value))
    }

    /// Pages tracked.
    pub fn len(&self) -> usize {
        self.tracked
    }

    /// Whether no page is tracked.
    pub fn is_empty(&self) -> bool {
        self.tracked == 0
    }

    /// Pages that gave way to others because the table was full.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// The memory that it occupies.
    pub fn bytes(&self) -> usize {
        let entries: usize = self.shards.iter().map(|shard| size_of_val(&*shard.entries)).sum();
        entries + size_of_val(&*self.shards) + self.hashes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests;
