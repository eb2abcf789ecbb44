//! The plugin's side of the shared memory.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::control::{self, get, set};
use crate::layout::{LayoutError, MAGIC, MAX_TIERS, RingPlace, VERSION, word};
use crate::{Control, Mailbox, Record, Snapshot, Words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Number of counted tiers, 1 to [`MAX_TIERS`].
    pub tiers: usize,
    pub vcpus: usize,
    pub prices: Prices,
}

/// Costs of tiering on the modelled machine, in nanoseconds: what they take in the guest tells nothing of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prices {
    /// A sample that takes an interrupt of its own, and one that the processor buffers.
    pub sample: u64,
    pub buffered_sample: u64,
    /// A `move_pages` call, and each page that it moves, copy included.
    pub move_call: u64,
    pub move_page: u64,
}

impl Prices {
    pub(crate) fn read(words: &[AtomicU64]) -> Self {
        let [sample, buffered_sample, move_call, move_page] =
            core::array::from_fn(|index| get(words, word::PRICES + index));
        Self { sample, buffered_sample, move_call, move_page }
    }

    fn write(self, words: &[AtomicU64]) {
        let Self { sample, buffered_sample, move_call, move_page } = self;
        for (index, price) in [sample, buffered_sample, move_call, move_page].into_iter().enumerate() {
            set(words, word::PRICES + index, price);
        }
    }
}

/// Plugin's side: it obeys requests, counts and writes samples.
#[derive(Debug)]
pub struct Device<W> {
    memory: W,
    ring: RingPlace,
    head: u64,
    tiers: usize,
}

impl<W: Words> Device<W> {
    /// Lays the memory out, whatever it held.
    ///
    /// # Errors
    /// If the memory is too small or there are too many tiers.
    pub fn new(memory: W, identity: Identity) -> Result<Self, LayoutError> {
        let Identity { tiers, vcpus, prices } = identity;
        if !(1..=MAX_TIERS).contains(&tiers) {
            return Err(LayoutError::Tiers { tiers });
        }
        let words = memory.words();
        let ring = RingPlace::of(words.len())?;
        words[..ring.first].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        set(words, word::VERSION, VERSION);
        set(words, word::BYTES, words.len() as u64 * 8);
        set(words, word::RING_OFFSET, ring.first as u64 * 8);
        set(words, word::RING_CAPACITY, ring.capacity);
        set(words, word::TIERS, tiers as u64);
        set(words, word::VCPUS, vcpus as u64);
        prices.write(words);
        // A guest that finds the magic word finds the rest.
        set(words, word::MAGIC, MAGIC);
        Ok(Self { memory, ring, head: 0, tiers })
    }

    /// Returns the doorbell, to be compared with the last one answered: a plain load.
    #[inline(always)]
    pub fn doorbell(&self) -> u64 {
        self.memory.words()[word::DOORBELL].load(Ordering::Acquire)
    }

    /// Answers a doorbell: all requests up to it are in force.
    pub fn answer(&self, doorbell: u64) {
        set(self.memory.words(), word::ANSWERED, doorbell);
    }

    pub fn control(&self) -> Control {
        Control::read(self.memory.words())
    }

    /// Returns where the guest's kernel keeps processes; `None` until the guest has told it.
    pub fn mailbox(&self) -> Option<Mailbox> {
        Mailbox::read(self.memory.words())
    }

    /// Returns the thread groups to count; an empty filter means all.
    pub fn filter(&self) -> impl Iterator<Item = u32> + '_ {
        control::filter(self.memory.words())
    }

    /// Writes a sample, or counts it as lost if the ring is full. Returns whether it was written.
    #[inline]
    pub fn push(&mut self, record: Record) -> bool {
        let fits = self.ring.push(&self.memory, &mut self.head, record);
        if !fits {
            self.add(word::LOST);
        }
        fits
    }

    pub fn count_unresolved(&self) {
        self.add(word::UNRESOLVED);
    }

    pub fn publish(&self, snapshot: &Snapshot) {
        set(self.memory.words(), word::EPOCH, snapshot.epoch);
        snapshot.write(self.memory.words(), self.tiers);
    }

    pub fn capacity(&self) -> u64 {
        self.ring.capacity
    }

    fn add(&self, index: usize) {
        let words = self.memory.words();
        words[index].store(get(words, index).wrapping_add(1), Ordering::Relaxed);
    }
}
