//! The outcome of a look-up of a page's address, and the time that it takes.

use crate::profile::Profile;

/// Counts of page walks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walks {
    /// Accesses whose page was in no TLB.
    pub walks: u64,
    /// Those of them whose page-table line was in no cache.
    pub from_memory: u64,
}

/// Where an access finds its page's address: one byte, since a run keeps one for each of its accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Lookup(u8);

impl Lookup {
    /// The first-level TLB.
    pub(crate) const FIRST: Self = Self(0);
    pub(crate) const SECOND: Self = Self(1);
    /// A walk after a shootdown dropped the page's translation: the line was read lately, and another core
    /// has just written it.
    pub const SHOT_DOWN: Self = Self::walk(Directory::Unknown(Place::SecondLevel), Place::LastLevel);
    /// Bound on the number of different ones.
    pub(crate) const KINDS: usize = 16;

    pub(crate) const fn walk(directory: Directory, leaf: Place) -> Self {
        let above = match directory {
            Directory::Known => 0,
            Directory::Unknown(Place::SecondLevel) => 1,
            // The directories of a terabyte take 4 MiB, and every thread's walks use them.
            Directory::Unknown(Place::LastLevel | Place::Memory) => 2,
        };
        Self(2 + 3 * above + leaf as u8)
    }

    /// Returns whether the page is in no TLB.
    #[inline]
    pub fn walks(self) -> bool {
        self.0 > Self::SECOND.0
    }

    /// Returns its number, below [`Self::KINDS`].
    #[inline]
    pub(crate) fn kind(self) -> usize {
        usize::from(self.0) % Self::KINDS
    }
}

/// Whether the walkers' cache knows the page's directory, and where its line is if not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Directory {
    Known,
    Unknown(Place),
}

/// The nearest place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    SecondLevel,
    LastLevel,
    Memory,
}

/// Time that an access waits for its page's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Translation {
    /// Picoseconds, without the wait for a walker.
    pub latency: u32,
    /// Whether a walker is busy for that time.
    pub walks: bool,
    /// Whether a page-table line is read from memory.
    pub from_memory: bool,
}

/// Latencies of a machine's TLBs and of the caches that hold page tables, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookupTimes {
    second_tlb: u64,
    second_level: u64,
    last_level: u64,
}

impl LookupTimes {
    pub(crate) fn new(profile: &Profile) -> Self {
        let cycles = |cycles: u32| (f64::from(cycles) * 1e12 / profile.clock.frequency.max(1) as f64) as u64;
        Self {
            second_tlb: cycles(profile.tlb.second_latency),
            second_level: cycles(profile.core.l2_latency),
            last_level: profile.costs.cached_touch.0 * 1000,
        }
    }

    /// Returns the translation of each kind of look-up; `memory` is the latency of the tier that holds the
    /// page tables.
    pub(crate) fn translations(&self, memory: u64) -> [Translation; Lookup::KINDS] {
        let mut all = [Translation::default(); Lookup::KINDS];
        all[Lookup::SECOND.kind()].latency = few(self.second_tlb);
        let above = [
            (Directory::Known, 0),
            (Directory::Unknown(Place::SecondLevel), self.second_level),
            (Directory::Unknown(Place::LastLevel), self.last_level),
        ];
        let leaves = [
            (Place::SecondLevel, self.second_level),
            (Place::LastLevel, self.last_level),
            (Place::Memory, memory),
        ];
        for (directory, read_above) in above {
            for (leaf, read) in leaves {
                all[Lookup::walk(directory, leaf).kind()] = Translation {
                    latency: few(self.second_tlb + read_above + read),
                    walks: true,
                    from_memory: leaf == Place::Memory,
                };
            }
        }
        all
    }
}

/// Returns picoseconds that fit, up to 4 ms.
fn few(latency: u64) -> u32 {
    u32::try_from(latency).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shootdown_costs_a_walk_of_lines_that_are_near() {
        let times = LookupTimes { second_tlb: 1, second_level: 10, last_level: 100 };
        let Translation { latency, walks, from_memory } = times.translations(1000)[Lookup::SHOT_DOWN.kind()];
        assert_eq!((latency, walks, from_memory), (1 + 10 + 100, true, false));
    }
}
