//! The guest's side of the shared memory.

use core::sync::atomic::Ordering;

use crate::control::{self, get, set};
use crate::layout::{LayoutError, MAGIC, MAX_TIERS, RingPlace, VERSION, word};
use crate::{Control, Mailbox, Prices, Record, Snapshot, Words};

/// Guest's side: one driver takes samples, others may count. Requests hold once the doorbell is answered.
#[derive(Debug)]
pub struct Driver<W> {
    memory: W,
    ring: RingPlace,
    tail: u64,
    tiers: usize,
}

impl<W: Words> Driver<W> {
    /// Opens memory that the plugin has laid out. Samples in the ring stay there.
    ///
    /// # Errors
    /// If the plugin has laid out nothing, or another version.
    pub fn open(memory: W) -> Result<Self, LayoutError> {
        let words = memory.words();
        let bytes = words.len() * 8;
        let found = words.first().map_or(0, |_| get(words, word::MAGIC));
        if found != MAGIC {
            return Err(LayoutError::Magic { found });
        }
        let ring = RingPlace::read(&memory)?;
        let found = get(words, word::VERSION);
        if found != VERSION {
            return Err(LayoutError::Version { found });
        }
        let tiers = get(words, word::TIERS);
        if !(1..=MAX_TIERS as u64).contains(&tiers) {
            return Err(LayoutError::Field { field: "the number of tiers", found: tiers, bytes });
        }
        let tail = get(words, word::TAIL);
        Ok(Self { ring, tail, tiers: tiers as usize, memory })
    }

    pub fn tiers(&self) -> usize {
        self.tiers
    }

    pub fn vcpus(&self) -> u64 {
        get(self.memory.words(), word::VCPUS)
    }

    pub fn prices(&self) -> Prices {
        Prices::read(self.memory.words())
    }

    pub fn capacity(&self) -> u64 {
        self.ring.capacity
    }

    pub fn control(&self) -> Control {
        Control::read(self.memory.words())
    }

    /// Requests what is counted and sampled.
    pub fn set_control(&self, control: Control) {
        control.write(self.memory.words());
    }

    /// Requests other counting (`counting`, `children`), and keeps sampling and epoch.
    pub fn set_counting(&self, control: Control) {
        control.write_counting(self.memory.words());
    }

    /// Requests other samples (periods, events, `each_tier`, `exact`), and keeps counting and epoch.
    pub fn set_sampling(&self, control: Control) {
        control.write_sampling(self.memory.words());
    }

    /// Leaves a thread out, or none for 0.
    pub fn leave_out(&self, thread: u32) {
        set(self.memory.words(), word::LEFT_OUT, thread.into());
    }

    /// Requests a new epoch and returns its number.
    pub fn next_epoch(&self) -> u64 {
        self.memory.words()[word::WANTED_EPOCH].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Returns the thread groups requested last; an empty filter means all.
    pub fn filter(&self) -> impl Iterator<Item = u32> + '_ {
        control::filter(self.memory.words())
    }

    /// Tells where the kernel keeps processes.
    pub fn set_mailbox(&self, mailbox: Mailbox) {
        mailbox.write(self.memory.words());
    }

    /// Restricts counting to these thread groups, or to all if there are none. Returns how many did not fit.
    pub fn set_filter(&self, tgids: &[u32]) -> usize {
        control::write_filter(self.memory.words(), tgids)
    }

    /// Rings the doorbell, so that the plugin applies requests and publishes. Returns its number.
    pub fn ring(&self) -> u64 {
        self.memory.words()[word::DOORBELL].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Returns whether the plugin has answered that doorbell or a later one.
    pub fn is_answered(&self, doorbell: u64) -> bool {
        let answered = get(self.memory.words(), word::ANSWERED);
        answered.wrapping_sub(doorbell) < u64::MAX / 2
    }

    pub fn pop(&mut self) -> Option<Record> {
        self.ring.pop(&self.memory, &mut self.tail)
    }

    pub fn clear(&mut self) {
        let words = self.memory.words();
        self.tail = get(words, word::HEAD);
        set(words, word::TAIL, self.tail);
    }

    /// Returns the samples that found the ring full, since the machine's start.
    pub fn lost(&self) -> u64 {
        get(self.memory.words(), word::LOST)
    }

    /// Returns the samples whose process was unknown, since the machine's start.
    pub fn unresolved(&self) -> u64 {
        get(self.memory.words(), word::UNRESOLVED)
    }

    /// Returns the counters that the plugin published last, or `None` if it does not stop writing them.
    pub fn snapshot(&self) -> Option<Snapshot> {
        Snapshot::read(self.memory.words(), self.tiers)
    }
}
