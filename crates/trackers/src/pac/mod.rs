//! Per-page access criticality (PAC): the processor's stall time for each page (PACT, sections 4.2, 4.3).
//!
//! Counters give a tier's misses, requests in flight and busy cycles, samples give pages; neither gives a
//! page's stall. Over a window `MLP = T1 / T2`, and stalls are `S = k x misses / MLP` (Equation 1,
//! [`Window::stall`]). Each sampled page gets a share of `S` proportional to its samples (Algorithm 1),
//! summed up in [`PacTable`]: an open-addressing hash table of 12-byte entries in shards that grow one at a
//! time by a quarter, so that it takes up to 20 bytes a tracked page, and no pause exceeds one shard's
//! growth.

use std::hint::black_box;

use crate::hash::{mix, reduce, remix};

/// Slots of a new shard.
const SMALLEST: usize = 16;
/// Largest load of a shard, in percent.
const FULL: usize = 80;
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

const VACANT: Entry = Entry { page: EMPTY, seen: 0, value: 0.0 };

/// Part of the table. A page's hash chooses the shard and its [`remix`] the slot, which are thus independent.
#[derive(Debug, Clone, Default)]
struct Shard {
    entries: Box<[Entry]>,
    used: usize,
}

impl Shard {
    /// Returns the slot of the page's entry, or the empty slot where it belongs.
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
            let slot = self.find(entry.page, remix(mix(entry.page)));
            self.entries[slot] = *entry;
        }
    }

    /// Empties a slot and moves up the entries that it had displaced.
    fn vacate(&mut self, mut hole: usize) {
        let length = self.entries.len();
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let page = self.entries[slot].page;
            if page == EMPTY {
                break;
            }
            // An entry may fill the hole unless its home lies behind the hole.
            let home = self.home(remix(mix(page)));
            if (slot + length - home) % length >= (slot + length - hole) % length {
                self.entries[hole] = self.entries[slot];
                hole = slot;
            }
        }
        self.entries[hole] = VACANT;
        self.used -= 1;
    }

    /// Returns the slot of the least value among the entries near `slot`.
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
    hashes: Vec<u64>,
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
            hashes: Vec::with_capacity(CHUNK),
        }
    }

    /// Adds to a page's value after cooling it if due. Returns the new value.
    pub fn add(&mut self, page: u32, amount: f32) -> f32 {
        self.add_hashed(page, amount, mix(page))
    }

    /// Adds to many pages' values and writes the new ones to `values`; cache misses within the batch overlap.
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

    /// Reads a page's home slot with nothing depending on it: a prefetch without `unsafe`.
    #[inline]
    fn peek(&self, hash: u64) -> u32 {
        let shard = &self.shards[self.shard(hash)];
        if shard.entries.is_empty() { 0 } else { shard.entries[shard.home(remix(hash))].page }
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
            let slot = shard.find(page, remix(hash));
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

    #[cold]
    fn enter(&mut self, index: usize, page: u32, amount: f32, hash: u64) {
        let shard = &mut self.shards[index];
        if shard.used == self.bound {
            let victim = shard.least_near(shard.home(remix(hash)));
            shard.vacate(victim);
            self.tracked -= 1;
            self.displaced += 1;
        } else if (shard.used + 1) * 100 > shard.entries.len() * FULL {
            shard.grow();
        }
        let slot = shard.find(page, remix(hash));
        shard.entries[slot] = Entry { page, seen: self.samples, value: amount };
        shard.used += 1;
        self.tracked += 1;
    }

    /// Returns the page's value, 0 if it is not tracked.
    pub fn get(&self, page: u32) -> f32 {
        let hash = mix(page);
        let shard = &self.shards[self.shard(hash)];
        // A vacant slot has the value 0.
        if shard.entries.is_empty() { 0.0 } else { shard.entries[shard.find(page, remix(hash))].value }
    }

    /// Forgets a page.
    pub fn remove(&mut self, page: u32) {
        let hash = mix(page);
        let index = self.shard(hash);
        let shard = &mut self.shards[index];
        if shard.entries.is_empty() {
            return;
        }
        let slot = shard.find(page, remix(hash));
        if shard.entries[slot].page == page {
            shard.vacate(slot);
            self.tracked -= 1;
        }
    }

    /// Returns every tracked page with its value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let entries = self.shards.iter().flat_map(|shard| shard.entries.iter());
        entries.filter(|entry| entry.page != EMPTY).map(|entry| (entry.page, entry.value))
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
        let entries: usize = self.shards.iter().map(|shard| size_of_val(&*shard.entries)).sum();
        entries + size_of_val(&*self.shards) + self.hashes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests;
