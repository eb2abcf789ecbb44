//! Settled memory: pages whose tier is beyond doubt, on which few windows are spent.
//!
//! A touch costs the program the same wherever it is, and the budget allows few. Most would be of pages that
//! are known to be hot. So the engine names memory that is settled ([`AccessSource::set_settled`]), and each
//! settled page is armed in one of [`SETTLED_EVERY`] passes, at its turn. Its touches then stand for as many.
//!
//! [`AccessSource::set_settled`]: crate::source::AccessSource::set_settled

use std::ops::Range;

use super::protocol::{SETTLED, Shared};
use crate::source::SETTLED_EVERY;
use crate::sys::pages::PAGE;
use crate::sys::plain::plain;

/// Most pages of a word.
const PAGES: u64 = PAGE - 1;

/// Splits a range into the protocol's words.
pub(super) fn words(range: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let (start, end) = (range.start & !(PAGE - 1), range.end);
    (start..end).step_by((PAGES * PAGE) as usize).map(move |at| at | ((end - at) / PAGE).min(PAGES))
}

fn range(word: u64) -> Range<u64> {
    let start = word & !(PAGE - 1);
    start..start.saturating_add((word & (PAGE - 1)) * PAGE)
}

/// The agent's copy. All zero is the start.
pub(super) struct Settled {
    words: [u64; SETTLED],
    count: usize,
    /// Number of the pass.
    pass: u64,
}

plain!(Zeroed for Settled { words, count, pass });

/// Pages of a window, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) settled: u64,
    /// Those of them whose turn it is not.
    pub(super) without: u64,
}

plain!(Zeroed for Share { settled, without });

impl Settled {
    /// Begins a pass with what the engine names now.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.pass += 1;
        self.count = match shared.settled(&mut self.words) {
            Some(_) => self.words.iter().position(|word| *word == 0).unwrap_or(SETTLED),
            None => 0,
        };
    }

    /// Returns which of a window's pages are settled, at most 64 from `start` on.
    pub(super) fn of(&self, start: u64, pages: u64) -> Share {
        let end = start.saturating_add(pages * PAGE);
        let words = &self.words[..self.count];
        let first = words.partition_point(|word| range(*word).end <= start);
        let mut share = Share::default();
        for word in &words[first..] {
            let part = range(*word);
            if part.start >= end {
                break;
            }
            for page in (part.start.max(start)..part.end.min(end)).step_by(PAGE as usize) {
                let bit = 1 << ((page - start) / PAGE % 64);
                share.settled |= bit;
                share.without |= if self.is_due(page / PAGE) { 0 } else { bit };
            }
        }
        share
    }

    /// Returns the same of a huge page, which is settled if all of it is: all bits or none.
    pub(super) fn of_huge(&self, start: u64, pages: u64) -> Share {
        let end = start.saturating_add(pages * PAGE);
        let words = &self.words[..self.count];
        let first = words.partition_point(|word| range(*word).end <= start);
        let mut covered = start;
        for word in &words[first..] {
            let part = range(*word);
            if part.start > covered || covered >= end {
                break;
            }
            covered = part.end;
        }
        if covered < end {
            return Share::default();
        }
        let without = if self.is_due(start / (pages * PAGE).max(1)) { 0 } else { u64::MAX };
        Share { settled: u64::MAX, without }
    }

    fn is_due(&self, number: u64) -> bool {
        (number + self.pass).is_multiple_of(u64::from(SETTLED_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settled(ranges: &[Range<u64>]) -> Box<Settled> {
        let mut settled = Box::new(Settled { words: [0; SETTLED], count: 0, pass: 0 });
        for word in ranges.iter().flat_map(words) {
            settled.words[settled.count] = word;
            settled.count += 1;
        }
        settled
    }

    proptest! {
        /// Every settled page of every window has its turn in one of four passes, and others always.
        #[test]
        fn settled_pages_take_turns(
            runs in proptest::collection::vec((1u64..300, 1u64..9000), 1..20),
            place in 0u64..20_000,
            pages in 1u64..=64,
        ) {
            let mut next = 0x1000;
            let ranges: Vec<Range<u64>> = runs
                .iter()
                .map(|&(gap, length)| {
                    let start = next + gap * PAGE;
                    next = start + length * PAGE;
                    start..next
                })
                .collect();
            let mut all = settled(&ranges);
            let start = 0x1000 + place * PAGE;
            let mut armed = [0; 64];
            for _ in 0..SETTLED_EVERY {
                all.pass += 1;
                let share = all.of(start, pages);
                prop_assert_eq!(share.without & !share.settled, 0);
                for (at, armed) in armed.iter_mut().enumerate() {
                    *armed += 1 - (share.without >> at & 1);
                    let page = start + at as u64 * PAGE;
                    let expected = at < pages as usize && ranges.iter().any(|range| range.contains(&page));
                    prop_assert_eq!(share.settled >> at & 1 != 0, expected, "page {}", at);
                }
            }
            for (at, armed) in armed.into_iter().enumerate() {
                let settled = all.of(start, pages).settled >> at & 1 != 0;
                prop_assert_eq!(armed, if settled { 1 } else { u64::from(SETTLED_EVERY) });
            }
        }
    }

    #[test]
    fn a_huge_page_is_settled_as_a_whole() {
        let huge = 512 * PAGE;
        let mut all = settled(&[huge..3 * huge - PAGE, 3 * huge - PAGE..3 * huge, 4 * huge..5 * huge - PAGE]);
        for (at, expected) in [(0, 0), (1, u64::MAX), (2, u64::MAX), (3, 0), (4, 0)] {
            assert_eq!(all.of_huge(at * huge, 512).settled, expected, "huge page {at}");
        }
        let armed = (0..SETTLED_EVERY).filter(|_| {
            all.pass += 1;
            all.of_huge(huge, 512).without == 0
        });
        assert_eq!(armed.count(), 1);
    }
}
