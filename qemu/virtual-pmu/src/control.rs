//! The guest's requests to the plugin.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{FILTER_ENTRIES, MAX_TIERS, flag, word};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// Counters restart when this changes.
    pub epoch: u64,
    pub counting: bool,
    /// Misses between samples, 0 for none: of each tier with [`Self::each_tier`], else the first for all.
    pub periods: [u64; MAX_TIERS],
    /// Misses that count towards samples: bit `2 x tier + store`.
    pub events: u64,
    /// Whether each tier has its own countdown, loads and stores together.
    pub each_tier: bool,
    /// Whether periods are exact. Otherwise each differs by up to an eighth, so that it cannot lock onto a
    /// program's rhythm; the mean is the period.
    pub exact: bool,
    /// Whether children of processes in the filter belong to it, from their first instruction on.
    pub children: bool,
    /// Thread that is neither counted nor sampled, such as that of an engine inside a program; 0 for none.
    pub left_out: u32,
}

/// Places in the guest's kernel that name a process; offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mailbox {
    /// Offset of the current task's address from the processor's base of per-CPU data.
    pub current_task: u64,
    pub tgid: u64,
    pub parent: u64,
    /// `task_struct.pid`: a thread's id.
    pub thread: u64,
}

impl Control {
    pub fn all_events(stores: bool) -> u64 {
        let loads = (0..MAX_TIERS).fold(0, |bits, tier| bits | Self::event(tier, false));
        if stores { loads | loads << 1 } else { loads }
    }

    /// Returns the bit of [`Self::events`] for a tier's loads or stores.
    pub fn event(tier: usize, store: bool) -> u64 {
        1 << (2 * tier + usize::from(store))
    }

    pub(crate) fn write(self, words: &[AtomicU64]) {
        set(words, word::WANTED_EPOCH, self.epoch);
        set(words, word::LEFT_OUT, self.left_out.into());
        self.write_counting(words);
        self.write_sampling(words);
    }

    pub(crate) fn write_counting(self, words: &[AtomicU64]) {
        set_flags(words, [(self.counting, flag::COUNTING), (self.children, flag::CHILDREN)]);
    }

    pub(crate) fn write_sampling(self, words: &[AtomicU64]) {
        set_flags(words, [(self.each_tier, flag::EACH_TIER), (self.exact, flag::EXACT)]);
        self.periods.iter().enumerate().for_each(|(tier, &period)| set(words, word::PERIODS + tier, period));
        set(words, word::EVENTS, self.events);
    }

    pub(crate) fn read(words: &[AtomicU64]) -> Self {
        let flags = get(words, word::FLAGS);
        Self {
            epoch: get(words, word::WANTED_EPOCH),
            counting: flags & flag::COUNTING != 0,
            periods: core::array::from_fn(|tier| get(words, word::PERIODS + tier)),
            events: get(words, word::EVENTS),
            each_tier: flags & flag::EACH_TIER != 0,
            exact: flags & flag::EXACT != 0,
            children: flags & flag::CHILDREN != 0,
            left_out: get(words, word::LEFT_OUT) as u32,
        }
    }
}

impl Mailbox {
    pub(crate) fn write(self, words: &[AtomicU64]) {
        set(words, word::CURRENT_TASK, self.current_task);
        set(words, word::TASK_PARENT, self.parent);
        set(words, word::TASK_THREAD, self.thread);
        set(words, word::TASK_TGID, self.tgid);
    }

    pub(crate) fn read(words: &[AtomicU64]) -> Option<Self> {
        let [tgid, current_task, parent, thread] =
            [word::TASK_TGID, word::CURRENT_TASK, word::TASK_PARENT, word::TASK_THREAD]
                .map(|at| get(words, at));
        (tgid != 0).then_some(Self { current_task, tgid, parent, thread })
    }
}

fn set_flags(words: &[AtomicU64], bits: [(bool, u64); 2]) {
    let flags = &words[word::FLAGS];
    for (on, bit) in bits {
        if on {
            flags.fetch_or(bit, Ordering::AcqRel)
        } else {
            flags.fetch_and(!bit, Ordering::AcqRel)
        };
    }
}

pub(crate) fn write_filter(words: &[AtomicU64], tgids: &[u32]) -> usize {
    let count = tgids.len().min(FILTER_ENTRIES);
    for (place, &tgid) in words[word::FILTER..].iter().zip(&tgids[..count]) {
        place.store(tgid.into(), Ordering::Relaxed);
    }
    set(words, word::FILTER_COUNT, count as u64);
    tgids.len() - count
}

pub(crate) fn filter(words: &[AtomicU64]) -> impl Iterator<Item = u32> + '_ {
    let count = get(words, word::FILTER_COUNT).min(FILTER_ENTRIES as u64) as usize;
    words[word::FILTER..word::FILTER + count].iter().map(|place| place.load(Ordering::Relaxed) as u32)
}

pub(crate) fn get(words: &[AtomicU64], index: usize) -> u64 {
    words[index].load(Ordering::Acquire)
}

pub(crate) fn set(words: &[AtomicU64], index: usize, value: u64) {
    words[index].store(value, Ordering::Release);
}
