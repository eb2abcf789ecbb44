//! The model of a unit: one instance, with a counter for each unit of memory.

use isotherm_neoprof::{Registers, Request};

use crate::Block;
use crate::registers as at;
use crate::registers::{bits, epoch_ns};

/// Bytes of a request's page, as a power of two.
const PAGE_SHIFT: u32 = 12;
/// Sizes of units as powers of two: a page to 2 MiB.
const UNITS: std::ops::RangeInclusive<u32> = PAGE_SHIFT..=21;
/// Down-sampling factors that are supported, as a power of two: all that a register can tell.
const MAX_FACTOR: u64 = 15;
/// Epochs from 100 ms to 100 s, as QEMU's emulation has: time scale and how often that.
const SHORTEST_EPOCH: u64 = 4 | 1 << 4;
const LONGEST_EPOCH: u64 = 5 | 100 << 4;
/// Greatest length of an instance, whose register has 16 bits.
const LONGEST_INSTANCE: u64 = 0xffff;
const WORD: u64 = 8;

/// An impossible size of a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} of a hotness monitoring unit: expected {expected}, not {value}")]
pub struct SizeError {
    name: &'static str,
    expected: &'static str,
    value: u64,
}

/// Sizes of a unit, fixed when it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Bytes of the memory behind it: 4 KiB to 1 TiB.
    pub memory: u64,
    /// Entries of the hot list, one of which stays free: 2 to 7,000.
    pub entries: u16,
    /// Bits of a count, which saturates: 4 to 24.
    pub count_bits: u32,
    /// Whether it can report at once, too; if not, only at the end of an epoch.
    pub always_on: bool,
}

impl Sizes {
    /// Returns a unit as QEMU's emulation has it before this much memory, which reports at once, too.
    #[must_use]
    pub const fn of_memory(memory: u64) -> Self {
        Self { memory, entries: 1024, count_bits: 16, always_on: true }
    }

    /// Returns the same sizes, checked.
    ///
    /// # Errors
    /// [`SizeError`] for the first impossible size.
    pub fn checked(self) -> Result<Self, SizeError> {
        let wrong = |name, expected, value| Err(SizeError { name, expected, value });
        if !(1 << PAGE_SHIFT..=1 << 40).contains(&self.memory) {
            return wrong("memory", "4 KiB to 1 TiB", self.memory);
        }
        if !(2..=7000).contains(&self.entries) {
            return wrong("hot list", "2 to 7,000 entries", self.entries.into());
        }
        if !(4..=24).contains(&self.count_bits) {
            return wrong("count", "4 to 24 bits", self.count_bits.into());
        }
        Ok(self)
    }

    const fn ranges(&self) -> u64 {
        self.memory.div_ceil(at::RANGE * 64)
    }

    /// Returns where the hot list begins in the instance.
    const fn hot_list(&self) -> u64 {
        at::RANGE_BITMAP_AT + self.ranges() * WORD
    }

    /// Returns the bytes of the block.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        at::FIRST_INSTANCE + self.hot_list() + self.entries as u64 * WORD
    }
}

/// A unit whose operations take effect at once. Time passes by [`elapse`](Self::elapse) only.
#[derive(Debug, Clone)]
pub struct Model {
    sizes: Sizes,
    enabled: bool,
    what: u64,
    threshold: u64,
    unit_shift: u32,
    /// Power of two of the requests of which one is counted.
    factor: u64,
    always_on: bool,
    /// The epoch's length, as its register has it, and the nanoseconds that are left of it.
    epoch: u64,
    left: u64,
    /// Requests since the last counted one.
    skipped: u64,
    ranges: Vec<u64>,
    counts: Vec<u32>,
    list: Vec<u64>,
    head: u16,
    tail: u16,
    overflow: bool,
    refused: u64,
}

impl Model {
    /// Creates a unit after power-on: disabled, without a range.
    ///
    /// # Errors
    /// [`SizeError`] if a unit cannot have these sizes.
    pub fn new(sizes: Sizes) -> Result<Self, SizeError> {
        let sizes = sizes.checked()?;
        let mut model = Self {
            sizes,
            enabled: false,
            what: 0,
            threshold: 0,
            unit_shift: *UNITS.start(),
            factor: 0,
            always_on: false,
            epoch: SHORTEST_EPOCH,
            left: 0,
            skipped: 0,
            ranges: vec![0; sizes.ranges() as usize],
            counts: Vec::new(),
            list: vec![0; sizes.entries.into()],
            head: 0,
            tail: 0,
            overflow: false,
            refused: 0,
        };
        model.reset_counters();
        Ok(model)
    }

    /// Returns how often a hot unit has found the list full. No register tells.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Counts requests to the memory behind the unit.
    pub fn accesses(&mut self, requests: &[Request]) {
        if self.enabled {
            requests.iter().for_each(|&request| self.access(request));
        }
    }

    #[inline]
    fn access(&mut self, Request { page, write }: Request) {
        let kind = if write { at::WRITES } else { at::READS };
        let range = page / (at::RANGE >> PAGE_SHIFT);
        let bitmap = self.ranges.get((range / 64) as usize).copied().unwrap_or(0);
        if self.what & kind == 0 || bitmap >> (range % 64) & 1 == 0 {
            return;
        }
        self.skipped += 1;
        if self.skipped < 1 << self.factor {
            return;
        }
        self.skipped = 0;
        let unit = page >> (self.unit_shift - PAGE_SHIFT);
        let greatest = (1 << self.sizes.count_bits) - 1;
        let Some(count) = self.counts.get_mut(unit as usize) else { return };
        *count = (*count + 1).min(greatest);
        let counted = *count;
        // A reported unit's counter is free again; one that found no room keeps it for its next access.
        if self.always_on && u64::from(counted) > self.threshold && self.insert(unit, counted) {
            self.counts[unit as usize] = 0;
        }
    }

    /// Appends an entry to the hot list, if it has room.
    fn insert(&mut self, unit: u64, count: u32) -> bool {
        let next = (self.tail + 1) % self.sizes.entries;
        if next == self.head {
            self.overflow = true;
            self.refused += 1;
            return false;
        }
        self.list[usize::from(self.tail)] = unit << self.sizes.count_bits | u64::from(count);
        self.tail = next;
        true
    }

    /// Lets time pass; each epoch that ends reports its hot units, in order, and begins the next.
    pub fn elapse(&mut self, nanoseconds: u64) {
        if !self.enabled || self.always_on {
            return;
        }
        if nanoseconds < self.left {
            self.left -= nanoseconds;
            return;
        }
        let length = epoch_ns(self.epoch);
        let over = (nanoseconds - self.left) % length;
        for unit in 0..self.counts.len() {
            let count = self.counts[unit];
            if u64::from(count) > self.threshold {
                self.insert(unit as u64, count);
            }
        }
        self.reset_counters();
        self.left -= over;
    }

    /// Forgets all counts and begins an epoch.
    fn reset_counters(&mut self) {
        self.counts.clear();
        self.counts.resize((self.sizes.memory >> self.unit_shift).max(1) as usize, 0);
        self.left = epoch_ns(self.epoch);
        self.skipped = 0;
    }

    fn control(&mut self, word: u64) {
        // Only a disabled unit can be configured.
        if !self.enabled {
            (self.what, self.threshold) = (bits(word, 0, 7) & at::READS_AND_WRITES, word >> 32);
        }
        let enable = word & at::ENABLE != 0;
        if word & at::RESET_COUNTERS != 0 || enable && !self.enabled {
            self.reset_counters();
        }
        self.enabled = enable;
    }

    /// Takes unit, factor, mode and epoch, each only if it is supported.
    fn configure(&mut self, word: u64) {
        if self.enabled {
            return;
        }
        let (unit, factor, epoch) = (bits(word, 0, 31) as u32, bits(word, 32, 39), bits(word, 48, 63));
        if UNITS.contains(&unit) {
            self.unit_shift = unit;
        }
        if factor <= MAX_FACTOR {
            self.factor = factor;
        }
        match bits(word, 40, 47) {
            0 => self.always_on = false,
            1 if self.sizes.always_on => self.always_on = true,
            _ => {}
        }
        if (epoch_ns(SHORTEST_EPOCH)..=epoch_ns(LONGEST_EPOCH)).contains(&epoch_ns(epoch)) {
            self.epoch = epoch;
        }
        self.reset_counters();
    }

    fn unit_and_epoch(&self) -> u64 {
        let mode = if self.always_on { at::MODE_ALWAYS_ON } else { 0 };
        u64::from(self.unit_shift) | self.factor << 32 | mode | self.epoch << 48
    }

    fn units(&self) -> u64 {
        let sizes = UNITS.fold(0, |sizes, unit| sizes | 1 << (unit - at::SMALLEST_UNIT));
        let mode = at::EPOCHS | if self.sizes.always_on { at::ALWAYS_ON } else { 0 };
        sizes | 0xffff << 32 | mode
    }

    fn word(&self, offset: u64) -> u64 {
        let (ranges, list) = (at::RANGE_BITMAP_AT, self.sizes.hot_list());
        match offset {
            at::CAPABILITIES => {
                let counts = at::COUNTS.iter().fold(0, |counts, (bit, _)| counts | 1 << bit);
                counts | LONGEST_EPOCH << 16 | SHORTEST_EPOCH << 32 | u64::from(self.sizes.entries) << 48
            }
            at::UNITS => self.units(),
            at::RANGE_BITMAP => ranges,
            at::HOT_LIST => list,
            at::CONFIGURATION => self.what | if self.enabled { at::ENABLE } else { 0 } | self.threshold << 32,
            at::UNIT_AND_EPOCH => self.unit_and_epoch(),
            at::STATUS => {
                let overflow = if self.overflow { at::OVERFLOW } else { 0 };
                u64::from(self.enabled) | u64::from(self.sizes.count_bits) << 32 | overflow
            }
            at::HEAD => u64::from(self.head) | u64::from(self.tail) << 16,
            _ if offset >= list => self.list.get(((offset - list) / WORD) as usize).copied().unwrap_or(0),
            _ if offset >= ranges => self.ranges[((offset - ranges) / WORD) as usize],
            _ => 0,
        }
    }
}

impl Registers for Model {
    fn read(&mut self, offset: u64) -> u64 {
        match offset {
            at::CAPABILITY => at::VERSION | 1 << 8,
            at::INSTANCE_LENGTH => self.sizes.bytes() - at::FIRST_INSTANCE,
            _ => self.word(offset.saturating_sub(at::FIRST_INSTANCE)),
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        let Some(offset) = offset.checked_sub(at::FIRST_INSTANCE) else { return };
        match offset {
            at::CONFIGURATION => self.control(value),
            at::UNIT_AND_EPOCH => self.configure(value),
            at::STATUS => self.overflow &= value & at::OVERFLOW == 0,
            _ if !self.enabled && (at::RANGE_BITMAP_AT..self.sizes.hot_list()).contains(&offset) => {
                self.ranges[((offset - at::RANGE_BITMAP_AT) / WORD) as usize] = value;
            }
            _ => {}
        }
    }
}

impl Block for Model {
    fn read_half(&mut self, offset: u64) -> u16 {
        match offset.checked_sub(at::FIRST_INSTANCE) {
            Some(at::HEAD) => self.head,
            Some(at::TAIL) => self.tail,
            _ => 0,
        }
    }

    fn write_half(&mut self, offset: u64, value: u16) {
        if offset == at::FIRST_INSTANCE + at::HEAD && value < self.sizes.entries {
            self.head = value;
        }
    }
}

// The longest instance fits its length's register, and the memory that stands for the unit.
const _: () = assert!(
    Sizes { memory: 1 << 40, entries: 7000, count_bits: 16, always_on: true }.bytes() <= LONGEST_INSTANCE
        && at::STAND_IN_BLOCK + LONGEST_INSTANCE <= at::STAND_IN_BYTES
);
