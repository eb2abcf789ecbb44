//! A program that changes its mappings all the time and knows each page's contents.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::memory::{Mapping, WORDS, pattern};
use crate::random::{Random, mix};
use crate::{Failure, ensure};

/// Most mappings.
const SLOTS: usize = 64;

/// A mapping and the seed of the pattern in each page, 0 for a page of zeros.
struct Slot {
    memory: Mapping,
    pages: Vec<u64>,
}

pub(crate) fn run(arguments: &mut Arguments) -> Result<(), Failure> {
    let limit = arguments.limit()?;
    let largest = (arguments.size("size", 8 << 20)? / SLOTS / 4096).max(4);
    let seed = arguments.number("seed", 1)?;
    arguments.finish()?;
    let mut storm = Storm { slots: (0..SLOTS).map(|_| None).collect(), random: Random::new(seed), largest };
    let (start, mut done, mut checksum) = (Instant::now(), 0, 0u64);
    while limit.goes_on(start, done) {
        done += 1;
        checksum = checksum.rotate_left(5).wrapping_add(storm.step()?);
    }
    for slot in storm.slots.iter().flatten() {
        slot.check_all()?;
    }
    println!("unmap-storm: operations {done} checksum {checksum:016x}");
    Ok(())
}

struct Storm {
    slots: Vec<Option<Slot>>,
    random: Random,
    /// Largest mapping in pages.
    largest: usize,
}

impl Storm {
    /// Changes one mapping and checks a page of it; returns the sum found there.
    fn step(&mut self) -> Result<u64, Failure> {
        let which = self.random.below(SLOTS);
        let slot = match self.slots[which].take() {
            None => Some(Slot::new(1 + self.random.below(self.largest), &mut self.random)?),
            Some(slot) => slot.change(&mut self.random, self.largest)?,
        };
        let found = slot.as_ref().map_or(Ok(0), |slot| slot.check(self.random.below(slot.pages.len())));
        self.slots[which] = slot;
        found
    }
}

impl Slot {
    fn new(pages: usize, random: &mut Random) -> io::Result<Self> {
        let mut slot = Self { memory: Mapping::new(pages * 4096)?, pages: vec![0; pages] };
        for page in 0..pages {
            slot.write(page, random.next() | 1);
        }
        Ok(slot)
    }

    /// Changes it in one of seven ways; `None` if that unmapped it.
    fn change(mut self, random: &mut Random, largest: usize) -> io::Result<Option<Self>> {
        let count = self.pages.len();
        match random.below(8) {
            0 => return Ok(None),
            1 if count > 1 => {
                let gone = 1 + random.below(count - 1);
                self.memory.truncate(gone)?;
                self.pages.truncate(count - gone);
            }
            2 => {
                let pages = 1 + random.below(largest);
                self.memory = self.memory.resize(pages)?;
                self.pages.resize(pages, 0);
            }
            3 => self.memory = self.memory.relocate()?,
            4 => {
                let first = random.below(count);
                let pages = 1 + random.below(count - first);
                self.memory.advise(first, pages, libc::MADV_DONTNEED)?;
                self.pages[first..first + pages].fill(0);
            }
            5 => {
                self.memory.protect(false)?;
                self.memory.protect(true)?;
            }
            _ => self.write(random.below(count), random.next() | 1),
        }
        Ok(Some(self))
    }

    fn write(&mut self, page: usize, seed: u64) {
        self.pages[page] = seed;
        for (at, word) in self.memory.words()[page * WORDS..][..WORDS].iter().enumerate() {
            word.store(pattern(seed, at), Relaxed);
        }
    }

    /// Checks every word of the page; returns their mixed sum.
    fn check(&self, page: usize) -> Result<u64, Failure> {
        let seed = self.pages[page];
        let mut sum = 0u64;
        for (at, word) in self.memory.words()[page * WORDS..][..WORDS].iter().enumerate() {
            let found = word.load(Relaxed);
            let expected = if seed == 0 { 0 } else { pattern(seed, at) };
            ensure(found == expected, || {
                format!("unmap-storm: page {page} word {at} holds {found:#x}, expected {expected:#x}")
            })?;
            sum = sum.wrapping_add(found);
        }
        Ok(mix(sum))
    }

    fn check_all(&self) -> Result<(), Failure> {
        (0..self.pages.len()).try_for_each(|page| self.check(page).map(drop))
    }
}
