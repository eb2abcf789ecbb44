//! Hits of caches of pages: no tiers, no time, every miss fetches its page. Other simulators of caches can be
//! compared with it access by access.

use isotherm_core::{PageId, Pages};
use isotherm_policies::replacement::{Arc, Lru, Replacement, TwoQ};

use crate::bounds::{NEVER, NextUses, Uses};
use crate::stream::Stream;

/// A replacement algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Least recently used.
    Lru,
    /// ARC.
    Arc,
    /// 2Q, with the shares that its paper recommends.
    TwoQ,
    /// Belady's MIN: the page that is used last leaves.
    Belady,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 4] = [Self::Lru, Self::Arc, Self::TwoQ, Self::Belady];

    /// Returns its name: that of the policy or bound that is made of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Arc => "arc",
            Self::TwoQ => "twoq",
            Self::Belady => "belady",
        }
    }

    /// Returns the algorithm of a name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// Returns the accesses of a stream that hit a cache of `capacity` pages, at least 1, which is empty at
/// first.
pub fn cache_hits(stream: &Stream, algorithm: Algorithm, capacity: Pages) -> u64 {
    let (pages, places) = (stream.pages.len(), capacity.0.max(1) as usize);
    match algorithm {
        Algorithm::Lru => replay(stream, Lru::new(pages, places)),
        Algorithm::Arc => replay(stream, Arc::new(pages, places)),
        Algorithm::TwoQ => replay(stream, TwoQ::new(pages, places, TwoQ::KIN, TwoQ::KOUT)),
        Algorithm::Belady => min(stream, places),
    }
}

fn replay(stream: &Stream, mut cache: impl Replacement) -> u64 {
    stream.accesses.iter().filter(|access| cache.access(PageId(access.page)).is_hit()).count() as u64
}

/// Replays MIN: on a miss in a full cache the page leaves that is used last.
fn min(stream: &Stream, capacity: usize) -> u64 {
    let mut kept = Uses::new(stream.accesses.len());
    // Pages in the cache, and those of them that are not used again.
    let (mut count, mut done, mut hits) = (0, 0, 0);
    NextUses::of(stream).visit(stream, |index, _, next| {
        if kept.contains(index) {
            hits += 1;
        } else if count < capacity {
            count += 1;
        } else if done > 0 {
            done -= 1;
        } else {
            kept.remove_latest();
        }
        match next {
            NEVER => done += 1,
            next => kept.insert(next as usize),
        }
    });
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Access;

    /// MIN as its author tells it: on a miss in a full cache the page leaves whose next use is furthest.
    fn by_hand(pages: &[u32], capacity: usize) -> u64 {
        let (mut cache, mut hits) = (Vec::new(), 0);
        for (index, page) in pages.iter().enumerate() {
            if cache.contains(page) {
                hits += 1;
                continue;
            }
            if cache.len() == capacity {
                let next = |page: &u32| pages[index..].iter().position(|other| other == page);
                let furthest =
                    (0..cache.len()).max_by_key(|&place| next(&cache[place]).unwrap_or(usize::MAX));
                cache.swap_remove(furthest.expect("a full cache"));
            }
            cache.push(*page);
        }
        hits
    }

    #[test]
    fn belady_is_min_at_every_capacity() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % 16 * (state >> 24) % 12
        };
        let pages: Vec<u32> = (0..400).map(|_| next()).collect();
        let access = |&page: &u32| Access { page, ..Access::default() };
        let stream = Stream {
            accesses: pages.iter().map(access).collect(),
            pages: (0..12)
                .filter(|page| pages.contains(page))
                .map(|page| (0, u64::from(page) << 12))
                .collect(),
            ..Stream::default()
        };
        assert_eq!(stream.pages.len(), 12, "pages are dense");
        for capacity in 1..=12 {
            let hits = cache_hits(&stream, Algorithm::Belady, Pages(capacity));
            assert_eq!(hits, by_hand(&pages, capacity as usize), "{capacity} pages");
            assert!(cache_hits(&stream, Algorithm::Lru, Pages(capacity)) <= hits);
        }
    }
}
