//! Defines the guest's side.

use core::sync::atomic::Ordering;

use crate::control::{self, get, set};
use crate::layout::{LayoutError, MAGIC, MAX_TIERS, RingPlace, VERSION, word};
use crate::{Control, Mailbox, Record, Snapshot, Words};

/// The guest's side of the memory: it asks, and reads samples and counters. One at a time takes samples; others may count.
#[derive(Debug)]
pub struct Driver<W> {
    memory: W,
    ring: RingPlace,
    tail: u64,
    tiers: usize,
}

impl<W: Words> Driver<W> {
    /// Takes up what the plugin has laid out. Samples that are in the ring stay there.
    ///
    /// # Errors
    /// If the plugin has laid out nothing, or something else.
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

    /// Tiers that the plugin counts.
    pub fn tiers(&self) -> usize {
        self.tiers
    }

    /// Processors of the guest, as the plugin knows it.
    pub fn vcpus(&self) -> u64 {
        get(self.memory.words(), word::VCPUS)
    }

    /// Records that the ring holds.
    pub fn capacity(&self) -> u64 {
        self.ring.capacity
    }

    /// What was asked for last.
    pub fn control(&self) -> Control {
        Control::read(self.memory.words())
    }

    /// Asks for something else; in force once the doorbell is answered.
    pub fn set_control(&self, control: Control) {
        control.write(self.memory.words());
    }

    /// Asks for other counting (`counting`, `children`); sampling and epoch stay. In force once the doorbell is answered.
    pub fn set_counting(&self, control: Control) {
        control.write_counting(self.memory.words());
    }

    /// Asks for other samples (periods, events, `each_tier`, `exact`); counting and epoch stay. In force once the doorbell
    /// is answered.
    pub fn set_sampling(&self, control: Control) {
        control.write_sampling(self.memory.words());
    }

    /// Leaves a thread out, 0 for none; in force once the doorbell is answered.
    pub fn leave_out(&self, thread: u32) {
        set(self.memory.words(), word::LEFT_OUT, thread.into());
    }

    /// Asks for a new epoch, and returns its number; in force once the doorbell is answered.
    pub fn next_epoch(&self) -> u64 {
        self.memory.words()[word::WANTED_EPOCH].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// The thread groups that were asked for last; none means all.
    pub fn filter(&self) -> impl Iterator<Item = u32> + '_ {
        control::filter(self.memory.words())
    }

    /// Says where the kernel keeps processes; in force once the doorbell is answered.
    pub fn set_mailbox(&self, mailbox: Mailbox) {
        mailbox.write(self.memory.words());
    }

    /// Counts only these thread groups, or all if there are none; in force once the doorbell is answered. Returns how many
    /// did not fit.
    pub fn set_filter(&self, tgids: &[u32]) -> usize {
        control::write_filter(self.memory.words(), tgids)
    }

    /// Rings the doorbell: the plugin takes over what was asked, and hands the counters over. Returns what
    /// [`Self::is_answered`] is to be asked with.
    pub fn ring(&self) -> u64 {
        self.memory.words()[word::DOORBELL].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Whether the plugin has answered that doorbell, or one that was rung after it.
    pub fn is_answered(&self, doorbell: u64) -> bool {
        let answered = get(self.memory.words(), word::ANSWERED);
        answered.wrapping_sub(doorbell) < u64::MAX / 2
    }

    /// Takes the oldest sample out of the ring.
    pub fn pop(&mut self) -> Option<Record> {
        self.ring.pop(&self.memory, &mut self.tail)
    }

    /// Drops every sample in the ring.
    pub fn clear(&mut self) {
        let words = self.memory.words();
        self.tail = get(words, word::HEAD);
        set(words, word::TAIL, self.tail);
    }

    /// Samples that found the ring full, since the machine's start.
    pub fn lost(&self) -> u64 {
        get(self.memory.words(), word::LOST)
    }

    /// Samples whose process was not known, since the machine's start.
    pub fn unresolved(&self) -> u64 {
        get(self.memory.words(), word::UNRESOLVED)
    }

    /// The counters, as the plugin handed them over last; `None` if it does not stop writing them.
    pub fn snapshot(&self) -> Option<Snapshot> {
        Snapshot::read(self.memory.words(), self.tiers)
    }
}
