//! The prefetchers of a second-level cache: the streamer, which fetches a stream's next lines ahead of
//! requests, and the one that completes pairs of lines.
//!
//! The order of a thread's misses alone decides which lines it fetches, so this is computed once, when a
//! stream is built; what the prefetches save depends on the machine and is computed in a replay.
//!
//! Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetch to the L2 and Last
//! Level Cache": the streamer watches loads and stores that miss the first-level cache; keeps one stream,
//! forward or backward, in each of up to 32 pages of 4 KiB; sends up to two prefetches per request; runs up
//! to 20 lines ahead; stays within the page. The condition that starts a stream is not documented: here, two
//! consecutive requests for neighbouring lines. The spatial prefetcher "strives to complete every cache line
//! fetched to the L2 cache with the pair line that completes it to a 128-byte aligned chunk".

use crate::slots::Slots;

/// Pages in which a core follows a stream.
const PAGES: usize = 32;
const PER_REQUEST: usize = 2;
/// Lines that it runs ahead of the request.
const AHEAD: i8 = 20;
const LINES: i8 = 64;
/// No line neighbours it, so a page's first request starts no stream.
const NO_LINE: i8 = -2;

/// Position of an access in the whole stream and among its thread's accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Index in the stream.
    pub index: u32,
    /// Number among its thread's accesses.
    pub of_thread: u32,
}

/// Distances in the thread's accesses to those that prefetched a line; 0 for none, at most 255.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Triggers {
    /// To the one that the streamer followed.
    pub stream: u8,
    /// To the miss of the line's pair.
    pub pair: u8,
}

/// A line that was prefetched and never requested, with the index of the access that sent the prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wasted {
    /// By the streamer.
    Stream(u32),
    /// As the pair of a line.
    Pair(u32),
}

#[derive(Debug, Clone)]
struct Page {
    /// Bit N: line N was requested while the page is watched.
    seen: u64,
    /// Bit N: line N's pair was missed, and line N not requested yet.
    paired: u64,
    /// Bit N: line N was prefetched by the streamer and not requested yet.
    brought: u64,
    last: i8,
    /// 1 or -1 in a stream, 0 before there is one.
    direction: i8,
    /// Last prefetched line of the stream.
    front: i8,
    /// Request that prefetched each line of `brought`.
    triggers: [Position; LINES as usize],
    /// Miss of the pair of each line of `paired`.
    misses: [Position; LINES as usize],
}

/// One core's prefetchers.
#[derive(Debug, Clone)]
pub struct Streamer {
    /// Page of each entry; `u64::MAX` for none.
    keys: [u64; PAGES],
    /// Lower bits of `keys`, which every request compares.
    tags: [u32; PAGES],
    /// Last use of each entry: the thread's access, from 1.
    used: Slots,
    /// Entry of the last request, which often serves the next.
    last: usize,
    pages: Vec<Page>,
}

impl Default for Streamer {
    fn default() -> Self {
        let page = Page {
            seen: 0,
            paired: 0,
            brought: 0,
            last: NO_LINE,
            direction: 0,
            front: 0,
            triggers: [Position::default(); LINES as usize],
            misses: [Position::default(); LINES as usize],
        };
        Self {
            keys: [u64::MAX; PAGES],
            tags: [u32::MAX; PAGES],
            used: Slots::new(PAGES),
            last: 0,
            pages: vec![page; PAGES],
        }
    }
}

impl Streamer {
    /// Handles a request for a line (its address divided by 64). Returns what prefetched it. Calls `wasted`
    /// for each line that was prefetched and never used.
    pub fn request(
        &mut self,
        process: u32,
        line: u64,
        at: Position,
        wasted: &mut dyn FnMut(Wasted),
    ) -> Triggers {
        let key = u64::from(process) << 44 | line >> 6;
        let entry = self.entry(key, at, wasted);
        let line = (line & 63) as i8;
        let page = &mut self.pages[entry];
        let bit = 1 << line;
        let distance = |lines: &mut u64, by: &Position| {
            let found = *lines & bit != 0;
            *lines &= !bit;
            if found { at.of_thread.wrapping_sub(by.of_thread).min(255) as u8 } else { 0 }
        };
        let triggers = Triggers {
            stream: distance(&mut page.brought, &page.triggers[line as usize]),
            pair: distance(&mut page.paired, &page.misses[line as usize]),
        };
        page.seen |= bit;
        if triggers == Triggers::default() {
            page.complete_pair(line, at);
        }
        page.follow(line);
        page.prefetch(at);
        triggers
    }

    /// Reports the lines that were prefetched and never requested.
    pub fn finish(&mut self, wasted: &mut dyn FnMut(Wasted)) {
        self.pages.iter_mut().for_each(|page| page.give_up(wasted));
    }

    /// Returns the page's entry, replacing the least recently used one if the page is not watched.
    fn entry(&mut self, key: u64, at: Position, wasted: &mut dyn FnMut(Wasted)) -> usize {
        if self.keys[self.last] != key {
            self.last = self.watched(key).unwrap_or_else(|| {
                let (oldest, _) = self.used.earliest();
                self.pages[oldest].give_up(wasted);
                (self.keys[oldest], self.tags[oldest]) = (key, key as u32);
                oldest
            });
        }
        self.used.set(self.last, u64::from(at.of_thread) + 1);
        self.last
    }

    /// Finds the page's entry, comparing all tags at once.
    fn watched(&self, key: u64) -> Option<usize> {
        let equal = |(entry, &tag): (usize, &u32)| u32::from(tag == key as u32) << entry;
        let mut alike: u32 = self.tags.iter().enumerate().map(equal).sum();
        while alike != 0 {
            let entry = alike.trailing_zeros() as usize;
            if self.keys[entry] == key {
                return Some(entry);
            }
            alike &= alike - 1;
        }
        None
    }
}

impl Page {
    fn follow(&mut self, line: i8) {
        let step = line - self.last;
        let goes_on =
            self.direction != 0 && step * self.direction >= 0 && (self.front - line) * self.direction >= 0;
        if !goes_on {
            self.direction = if step.abs() == 1 { step } else { 0 };
            self.front = line;
        }
        self.last = line;
    }

    fn prefetch(&mut self, at: Position) {
        if self.direction == 0 {
            return;
        }
        for _ in 0..PER_REQUEST {
            let next = self.front + self.direction;
            if !(0..LINES).contains(&next) || (next - self.last).abs() > AHEAD {
                return;
            }
            self.front = next;
            self.brought |= 1 << next;
            self.triggers[next as usize] = at;
        }
    }

    /// Fetches the pair of a line that missed, unless it came before.
    fn complete_pair(&mut self, line: i8, at: Position) {
        let pair = line ^ 1;
        if (self.seen | self.brought) & 1 << pair == 0 {
            self.paired |= 1 << pair;
            self.misses[pair as usize] = at;
        }
    }

    /// Drops the page's stream and pairs, and reports their unused lines.
    fn give_up(&mut self, wasted: &mut dyn FnMut(Wasted)) {
        // The streamer's line is the pair's as well.
        self.paired &= !self.brought;
        while self.brought != 0 {
            wasted(Wasted::Stream(self.triggers[self.brought.trailing_zeros() as usize].index));
            self.brought &= self.brought - 1;
        }
        while self.paired != 0 {
            wasted(Wasted::Pair(self.misses[self.paired.trailing_zeros() as usize].index));
            self.paired &= self.paired - 1;
        }
        self.seen = 0;
        self.direction = 0;
        self.last = NO_LINE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(useless: &mut [u8], wasted: Wasted) {
        if let Wasted::Stream(index) = wasted {
            useless[index as usize] += 1;
        }
    }

    /// Returns each request's trigger, and how many lines each request prefetched in vain.
    fn run(lines: impl IntoIterator<Item = u64>) -> (Vec<u8>, Vec<u8>) {
        let mut streamer = Streamer::default();
        let (mut triggers, mut useless) = (Vec::new(), Vec::new());
        for (index, line) in lines.into_iter().enumerate() {
            useless.push(0);
            let at = Position { index: index as u32, of_thread: index as u32 };
            triggers.push(streamer.request(0, line, at, &mut |line| count(&mut useless, line)).stream);
        }
        streamer.finish(&mut |line| count(&mut useless, line));
        (triggers, useless)
    }

    #[test]
    fn a_stream_is_found_at_its_second_line_and_run_ahead_of_by_twenty() {
        let (triggers, useless) = run(0..64);
        assert_eq!(triggers[..8], [0, 0, 1, 2, 2, 3, 3, 4]);
        assert!(triggers[40..].iter().all(|&distance| distance == 20), "{triggers:?}");
        assert_eq!(useless, [0; 64]);
        assert_eq!(run((0..64).rev()).0, triggers, "backward as forward");
    }

    #[test]
    fn a_stream_ends_with_its_page() {
        let (triggers, _) = run(0..192);
        let missed: Vec<usize> = (0..192).filter(|&index| triggers[index] == 0).collect();
        assert_eq!(missed, [0, 1, 64, 65, 128, 129]);
    }

    #[test]
    fn what_a_broken_stream_brought_is_counted_to_who_asked_for_it() {
        let (_, useless) = run(0..=10);
        // Requests 1 to 10 sent two lines each, 2 to 21; nobody requested 11 and above.
        assert_eq!(useless, [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn scattered_requests_make_no_stream() {
        let (triggers, useless) = run((0..64).map(|index| index * 37 % 64));
        assert_eq!((triggers, useless), (vec![0; 64], vec![0; 64]));
    }

    #[test]
    fn as_many_pages_are_followed_as_there_are_entries() {
        let in_turn = |pages: u64| (0..64 * pages).map(move |index| index % pages * 64 + index / pages);
        let prefetched =
            |pages| run(in_turn(pages)).0.iter().filter(|&&distance| distance > 0).count() as u64;
        assert_eq!(prefetched(PAGES as u64), 62 * PAGES as u64);
        assert_eq!(prefetched(PAGES as u64 + 1), 0);
    }

    #[test]
    fn a_line_of_another_process_is_another_line() {
        let mut streamer = Streamer::default();
        let mut request = |process, line, index| {
            streamer.request(process, line, Position { index, of_thread: index }, &mut |_| ()).stream
        };
        assert_eq!((request(0, 0, 0), request(0, 1, 1), request(1, 2, 2), request(0, 2, 3)), (0, 0, 0, 2));
    }

    #[test]
    fn a_miss_brings_its_pair_and_what_nobody_uses_is_counted_to_it() {
        let mut streamer = Streamer::default();
        let mut lone = Vec::new();
        // Pairs are (4, 5), (8, 9) and (30, 31): the second line of the first two is used, backward too.
        let lines = [4, 9, 20, 5, 8, 30];
        let pairs = lines.iter().enumerate().map(|(index, &line)| {
            let at = Position { index: index as u32, of_thread: index as u32 };
            streamer.request(0, line, at, &mut |wasted| lone.push(wasted)).pair
        });
        assert_eq!(pairs.collect::<Vec<_>>(), [0, 0, 0, 3, 3, 0]);
        streamer.finish(&mut |wasted| lone.push(wasted));
        assert_eq!(lone, [Wasted::Pair(2), Wasted::Pair(5)]);
    }

    proptest! {
        #[test]
        fn a_trigger_is_an_earlier_request_of_the_page_within_reach(
            lines in prop::collection::vec(0u64..256, 1..400),
        ) {
            let (triggers, useless) = run(lines.iter().copied());
            let found = triggers.iter().enumerate().filter(|&(_, distance)| (1..255).contains(distance));
            for (index, &distance) in found {
                let trigger = lines[index - usize::from(distance)];
                prop_assert_eq!(trigger / 64, lines[index] / 64);
                prop_assert!(trigger.abs_diff(lines[index]) <= AHEAD as u64);
            }
            let useful = triggers.iter().filter(|&&distance| distance > 0).count();
            let sent = useful + useless.iter().map(|&lines| usize::from(lines)).sum::<usize>();
            prop_assert!(sent <= PER_REQUEST * lines.len());
        }
    }
}
