//! The samples kept for the run's end, when what each stands for is known best.

use isotherm_core::{PageId, TierId};

/// Most samples kept: with more, every second one is dropped, and so on. Half of them still give a share to
/// 0.2 points.
const MOST: usize = 1 << 17;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Since the run's start.
    pub(crate) milliseconds: u32,
    pub(crate) page: PageId,
    /// Nanoseconds of the window whose first touch it is; 0 of a sample of all accesses.
    pub(crate) window: f32,
    /// Accesses that the source says it stands for.
    pub(crate) weight: u32,
    /// Where the page was.
    pub(crate) tier: TierId,
    /// Whether it is the first touch of a huge page, which was armed as one.
    pub(crate) huge: bool,
    /// Samples that are worth one observation together with it: those of a region rest on the same look.
    pub(crate) alike: u16,
}

#[derive(Debug)]
pub(crate) struct Log {
    seen: Vec<Seen>,
    /// One sample of so many is kept.
    every: u32,
    passed: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { seen: Vec::new(), every: 1, passed: 0 }
    }
}

impl Log {
    #[inline]
    pub(super) fn push(&mut self, seen: Seen) {
        self.passed += 1;
        if self.passed < self.every {
            return;
        }
        self.passed = 0;
        if self.seen.len() == MOST {
            let mut at = 0;
            self.seen.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.every *= 2;
        }
        self.seen.push(seen);
    }

    pub(super) fn seen(&self) -> &[Seen] {
        &self.seen
    }

    pub(super) fn every(&self) -> u32 {
        self.every
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.capacity() * size_of::<Seen>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_keeps_an_even_share_of_all() {
        let mut log = Log::default();
        let all = 5 * MOST as u32;
        for milliseconds in 0..all {
            log.push(Seen {
                milliseconds,
                page: PageId(0),
                window: 0.0,
                weight: 1,
                tier: TierId(0),
                huge: false,
                alike: 1,
            });
        }
        assert_eq!(log.every(), 8);
        assert!(log.seen().len() > MOST / 2 && log.seen().len() <= MOST);
        let gaps: Vec<u32> =
            log.seen().windows(2).map(|pair| pair[1].milliseconds - pair[0].milliseconds).collect();
        assert!(gaps.iter().all(|&gap| gap <= 16), "{:?}", gaps.iter().max());
        let kept = log.seen().len() as u32 * log.every();
        assert!(kept.abs_diff(all) <= all / 100, "{kept} of {all}");
    }
}
